import { describe, expect, test } from "vitest";
import { Agent, openRuntime, tool, type Extension } from "../../../../src/entries/index.ts";
import {
  messageText,
  userMessage,
  type Event,
  type ExtensionApi,
  type SessionEntry,
} from "../../../../src/kernel/index.ts";
import { scriptedModel } from "../../../../src/testing/index.ts";

const extension = (name: string, setup: (api: ExtensionApi) => void): Extension => ({ name, setup });

const textsOf = (entries: readonly SessionEntry[]): readonly string[] =>
  entries.flatMap((entry) => (entry.type === "message" ? [messageText(entry.message)] : []));

describe("the event input of an extension", () => {
  test("an input that an extension transforms reaches the next handler, the model and the session in place of the original", async () => {
    const seen: string[] = [];
    const model = scriptedModel(["First.", "Second."]);
    const agent = new Agent({
      name: "scout",
      model,
      extensions: [
        extension("one", (api) =>
          api.on("input", ({ text }) => ({ action: "transform", input: `${text}!` })),
        ),
        extension("two", (api) =>
          api.on("input", ({ text }) => {
            seen.push(text);
            return { action: "continue" };
          }),
        ),
      ],
    });
    await using runtime = await openRuntime();
    const { sessionId } = await agent.invoke("go", { runtime });
    await agent.invoke("on", { runtime, sessionId });
    expect(seen).toEqual(["go!", "on!"]);
    expect(model.calls.at(-1)?.messages.map(messageText)).toEqual(["go!", "First.", "on!"]);
    expect(textsOf(await runtime.sessions.path(sessionId))).toEqual(["go!", "First.", "on!", "Second."]);
  });

  test("an input that an extension handles with a reply calls no model, and the session gets the message and the reply", async () => {
    const model = scriptedModel(["Never."]);
    const agent = new Agent({
      name: "scout",
      model,
      extensions: [
        extension("help", (api) =>
          api.on("input", ({ text }) =>
            text === "/help" ? { action: "handled", reply: "Ask me anything." } : undefined,
          ),
        ),
      ],
    });
    await using runtime = await openRuntime();
    const run = await agent.submit("/help", { runtime });
    expect(await run.result()).toMatchObject({ status: "completed", output: "Ask me anything." });
    expect(model.calls).toHaveLength(0);
    expect(textsOf(await runtime.sessions.path(run.sessionId))).toEqual(["/help", "Ask me anything."]);
    const types: string[] = [];
    for await (const event of run.events()) if ("seq" in event) types.push(event.type);
    expect(types).toEqual([
      "run_start",
      "task_start",
      "input",
      "agent_end",
      "save_point",
      "settled",
      "task_end",
      "run_end",
    ]);
  });

  test("an input that an extension handles without a reply leaves no entry in the session", async () => {
    const agent = new Agent({
      name: "scout",
      model: scriptedModel(["Never."]),
      extensions: [extension("mute", (api) => api.on("input", () => ({ action: "handled" })))],
    });
    await using runtime = await openRuntime();
    const { sessionId, output } = await agent.invoke("go", { runtime });
    expect(output).toBe("");
    expect(await runtime.sessions.get(sessionId)).toBeUndefined();
    expect(await agent.phase(sessionId, { runtime })).toBe("idle");
  });
});

test("before_agent_start of an extension replaces the system prompt, context replaces the history, and the session stays the same", async () => {
  const model = scriptedModel(["First.", "Second."]);
  const prompts: string[] = [];
  const agent = new Agent({
    name: "scout",
    model,
    instructions: "Be kind.",
    extensions: [
      extension("one", (api) => {
        api.on("before_agent_start", ({ systemPrompt }) => ({ systemPrompt: `${systemPrompt} Be short.` }));
        api.on("context", ({ messages }) =>
          messages.length === 0 ? undefined : { messages: [userMessage("Earlier, briefly.")] },
        );
      }),
      extension("two", (api) => {
        api.on("before_agent_start", ({ systemPrompt }) => void prompts.push(systemPrompt));
        api.on("tool_call", (_event, ctx) => void prompts.push(ctx.getSystemPrompt()));
      }),
    ],
  });
  await using runtime = await openRuntime();
  const { sessionId } = await agent.invoke("go", { runtime });
  await agent.invoke("on", { runtime, sessionId });
  expect(prompts).toEqual(["Be kind. Be short.", "Be kind. Be short."]);
  expect(model.calls.at(-1)?.messages.map(messageText)).toEqual([
    "Be kind. Be short.",
    "Earlier, briefly.",
    "on",
  ]);
  expect(textsOf(await runtime.sessions.path(sessionId))).toEqual(["go", "First.", "on", "Second."]);
});

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

const calls = [{ toolCalls: [{ name: "wipe", input: {} }] }, "Done."];

describe("handlers of extensions that fail", () => {
  const wrong = {
    throws: () => {
      throw new Error("boom");
    },
    rejects: () => Promise.reject(new Error("boom")),
    "returns a text": () => "yes",
    "returns an unknown field": () => ({ action: "continue", extra: 1 }),
    "returns an invalid shape": () => ({
      action: "transform",
      input: 7,
      systemPrompt: 7,
      messages: "none",
      block: 1,
    }),
    "returns empty values": () => ({
      action: "transform",
      input: " ",
      systemPrompt: null,
      messages: null,
      output: null,
      block: null,
    }),
  };
  const types = ["input", "before_agent_start", "context"] as const;

  test.each(
    Object.entries(wrong).flatMap(([what, handler]) => types.map((type) => [type, what, handler] as const)),
  )(
    "S4: an error of an extension handler of %s that %s is recorded and changes nothing, and the run completes",
    async (type, _what, handler) => {
      const done: string[] = [];
      const agent = new Agent({
        name: "scout",
        model: scriptedModel(calls),
        tools: [wipe(done)],
        extensions: [extension("bad", (api) => api.on(type, handler as never))],
      });
      await using runtime = await openRuntime();
      const run = await agent.submit("go", { runtime });
      expect(await run.result()).toMatchObject({ status: "completed", output: "Done." });
      expect(done).toEqual(["wiped"]);
      const errors: Event[] = [];
      for await (const event of run.events()) if (event.type === "extension_error") errors.push(event);
      expect(errors).toMatchObject([{ data: { extension: "bad", event: type } }]);
      expect(runtime.extensionErrors()).toMatchObject([
        { extension: "bad", event: type, runId: run.runId, sessionId: run.sessionId, agentId: agent.id },
      ]);
    },
  );

  test.each(Object.entries(wrong))(
    "S4: an extension handler of tool_result that %s is recorded, the model receives no result, and the run completes",
    async (_what, handler) => {
      const done: string[] = [];
      const model = scriptedModel(calls);
      const agent = new Agent({
        name: "scout",
        model,
        tools: [wipe(done)],
        extensions: [extension("bad", (api) => api.on("tool_result", handler as never))],
      });
      await using runtime = await openRuntime();
      expect(await agent.invoke("go", { runtime })).toMatchObject({ status: "completed", output: "Done." });
      expect(done).toEqual(["wiped"]);
      const sent = JSON.stringify(model.calls.at(-1)?.messages.at(-1));
      expect(sent).toContain("[withheld: an extension failed to process this result]");
      expect(sent).not.toContain("gone");
      expect(runtime.extensionErrors()).toMatchObject([{ extension: "bad", event: "tool_result" }]);
    },
  );

  test("S4: an extension handler of tool_result may give a text as the output, which the next handler receives", async () => {
    const model = scriptedModel(calls);
    const seen: unknown[] = [];
    const agent = new Agent({
      name: "scout",
      model,
      tools: [wipe([])],
      extensions: [
        extension("short", (api) => api.on("tool_result", () => ({ output: "[redacted]" }))),
        extension("next", (api) => api.on("tool_result", ({ result }) => void seen.push(result.output))),
      ],
    });
    await using runtime = await openRuntime();
    await agent.invoke("go", { runtime });
    const output = { type: "text", text: "[redacted]" };
    expect(seen).toEqual([output]);
    expect(model.calls.at(-1)?.messages.at(-1)).toMatchObject({ content: [{ output, isError: false }] });
    expect(runtime.extensionErrors()).toEqual([]);
  });

  test.each(Object.entries(wrong))(
    "S4: an extension handler of tool_call that %s denies the call",
    async (_what, handler) => {
      const done: string[] = [];
      const agent = new Agent({
        name: "scout",
        model: scriptedModel(calls),
        tools: [wipe(done)],
        extensions: [extension("bad", (api) => api.on("tool_call", handler as never))],
      });
      await using runtime = await openRuntime();
      expect(await agent.invoke("go", { runtime })).toMatchObject({ status: "completed", output: "Done." });
      expect(done).toEqual([]);
      expect(runtime.extensionErrors()).toMatchObject([{ extension: "bad", event: "tool_call" }]);
    },
  );
});
