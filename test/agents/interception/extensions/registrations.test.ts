import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { Agent, openRuntime, tool, type Extension } from "../../../../src/entries/index.ts";
import {
  messageText,
  userMessage,
  type Architecture,
  type ExtensionApi,
} from "../../../../src/kernel/index.ts";
import { openMemory } from "../../../../src/assembly/memory.ts";
import { scriptedModel } from "../../../../src/testing/index.ts";

const extension = (setup: (api: ExtensionApi) => void): Extension => ({ name: "adder", setup });

const wipe = (done: string[]) =>
  tool({
    name: "wipe",
    description: "Deletes",
    inputSchema: { type: "object" },
    execute: () => {
      done.push("wiped");
      return "gone";
    },
  });

/** Calls the model once with a question of its own. */
const single: Architecture = {
  name: "single",
  declaredWorkers: () => ({}),
  async *run(session, deps) {
    session.messages = session.messages.append(userMessage("Asked once."));
    const { message } = await deps.ctx.llm({ transcript: session.messages });
    session.messages = session.messages.append(message);
    session.output = messageText(message);
    yield { type: "architecture_event", data: { architecture: "single", name: "answered", data: {} } };
  },
};

describe("what an extension registers", () => {
  test("extension handlers of message_update and tool_execution_update receive what readers of the run receive, in order", async () => {
    const count = tool({
      name: "count",
      description: "Counts",
      inputSchema: { type: "object" },
      execute: (_input, { progress }) => {
        const update = { done: 1 };
        progress(update);
        update.done = 2;
        progress(update);
        return "counted";
      },
    });
    const seen: string[] = [];
    const agent = new Agent({
      name: "scout",
      model: scriptedModel([{ toolCalls: [{ name: "count", input: {} }] }, { deltas: ["One ", "two."] }]),
      tools: [count],
      extensions: [
        extension((api) => {
          api.on("message_update", ({ kind, text }) => void (kind === "text" && seen.push(text)));
          api.on("tool_execution_update", ({ update }) => void seen.push(JSON.stringify(update)));
          api.on("tool_execution_end", () => void seen.push("tool ends"));
          api.on("message_end", () => void seen.push("message ends"));
        }),
      ],
    });
    await using runtime = await openRuntime();
    const run = await agent.submit("go", { runtime, streaming: true });
    expect((await run.result()).output).toBe("One two.");
    const joined = seen.join("|").replace("One |two.", "One two.");
    expect(joined).toBe('message ends|{"done":1}|{"done":2}|tool ends|One two.|message ends');
  });

  test("an extension handler of message_update that fails is recorded once and receives no further pieces of the run", async () => {
    let calls = 0;
    const agent = new Agent({
      name: "scout",
      model: scriptedModel([{ deltas: ["One ", "two ", "three."], toolCalls: [] }]),
      extensions: [
        extension((api) =>
          api.on("message_update", () => {
            calls += 1;
            throw new Error("no screen");
          }),
        ),
      ],
    });
    await using runtime = await openRuntime();
    const run = await agent.submit("go", { runtime, streaming: true });
    expect((await run.result()).status).toBe("completed");
    expect(calls).toBe(1);
    expect(runtime.extensionErrors()).toMatchObject([
      { extension: "adder", event: "message_update", failure: { message: "no screen" } },
    ]);
  });

  test("a guardrail that an extension registers blocks a tool call of the agent", async () => {
    const done: string[] = [];
    const agent = new Agent({
      name: "scout",
      model: scriptedModel([{ toolCalls: [{ name: "wipe", input: {} }] }, "Done."]),
      tools: [wipe(done)],
      extensions: [
        extension((api) =>
          api.registerGuardrail({
            name: "careful",
            beforeCall: () => ({ decision: "block", reason: "Wiping is not allowed." }),
          }),
        ),
      ],
    });
    await using runtime = await openRuntime();
    const { status, messages } = await agent.invoke("go", { runtime });
    expect(status).toBe("completed");
    expect(done).toEqual([]);
    expect(JSON.stringify(messages)).toContain("Wiping is not allowed.");
  });

  test("a memory that an extension registers is recalled into the prompt, and the agent's own memory takes precedence", async () => {
    const folder = await mkdtemp(join(tmpdir(), "reeve-registered-"));
    onTestFinished(() => rm(folder, { recursive: true }));
    const ofExtension = await openMemory({ path: join(folder, "extension.db") });
    const ofAgent = await openMemory({ path: join(folder, "agent.db") });
    const ada = { userId: "ada" };
    await ofExtension.remember(ada, { type: "block", block: { name: "style", text: "Brief answers." } });
    await ofAgent.remember(ada, { type: "block", block: { name: "style", text: "Long tales." } });
    const model = scriptedModel(["One.", "Two."]);
    const extended = {
      name: "scout",
      model,
      extensions: [extension((api) => api.registerMemory(ofExtension))],
    };
    await using runtime = await openRuntime();
    await new Agent(extended).invoke("go", { runtime, userId: "ada" });
    await new Agent({ ...extended, name: "ranger", memory: ofAgent }).invoke("go", {
      runtime,
      userId: "ada",
    });
    const [first, second] = model.calls.map(({ messages }) => JSON.stringify(messages));
    expect(first).toContain("Brief answers.");
    expect(second).toContain("Long tales.");
    expect(second).not.toContain("Brief answers.");
    await ofExtension.close();
    await ofAgent.close();
  });

  test("a source of live state that an extension registers is sent with every turn and never stored", async () => {
    let reads = 0;
    const model = scriptedModel([{ toolCalls: [{ name: "wipe", input: {} }] }, "Done."]);
    const agent = new Agent({
      name: "scout",
      model,
      tools: [wipe([])],
      extensions: [
        extension((api) =>
          api.registerEphemeral({
            name: "tabs",
            messages: async () => [userMessage(`Open tabs: ${++reads}`)],
          }),
        ),
      ],
    });
    await using runtime = await openRuntime();
    const { sessionId } = await agent.invoke("go", { runtime });
    const last = model.calls.map(({ messages }) => messages.at(-1));
    expect(last.map((message) => message && messageText(message))).toEqual(["Open tabs: 1", "Open tabs: 2"]);
    expect(JSON.stringify(await runtime.sessions.path(sessionId))).not.toContain("Open tabs");
  });

  test("an agent uses the architecture that an extension registers under the name of its option", async () => {
    const model = scriptedModel(["42."]);
    const agent = new Agent({
      name: "scout",
      model,
      architecture: "single",
      extensions: [extension((api) => api.registerArchitecture("single", () => single))],
    });
    await using runtime = await openRuntime();
    expect(await agent.invoke("go", { runtime })).toMatchObject({ status: "completed", output: "42." });
    expect(JSON.stringify(model.calls[0]?.messages)).toContain("Asked once.");
  });
});
