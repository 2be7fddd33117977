import { describe, expect, test } from "vitest";
import { Agent, CancellationError, openRuntime, tool } from "../../../../src/entries/index.ts";
import type { ExtensionApi, Guardrail, JsonObject, Memory } from "../../../../src/kernel/index.ts";
import { FakeClock, scriptedModel } from "../../../../src/testing/index.ts";

const look = tool({
  name: "look",
  description: "Looks",
  inputSchema: { type: "object", properties: {} } as const,
  execute: () => "rain",
});

/** Runs an agent that calls a tool once, with one extension. Returns the last request and the errors of the extension. */
async function run(setup: (api: ExtensionApi) => void) {
  const model = scriptedModel([{ toolCalls: [{ name: "look", input: {}, callId: "c1" }] }, "It rains."]);
  const agent = new Agent({
    name: "scout",
    model,
    instructions: "Be brief.",
    tools: [look],
    extensions: [{ name: "bad", setup }],
  });
  await using runtime = await openRuntime();
  const { status, output } = await agent.invoke("Where?", { runtime });
  const errors = runtime.extensionErrors().map(({ event }) => event);
  return { status, output, errors, sent: model.calls.at(-1)?.messages };
}

/** Assigns to a property that the type declares as read-only. */
const assign = (target: object, name: string, value: unknown): void => {
  (target as Record<string, unknown>)[name] = value;
};

describe("a badly written extension", () => {
  const changes: Readonly<Record<string, (api: ExtensionApi) => void>> = {
    input: (api) => api.on("input", (event) => assign(event, "text", 7)),
    before_agent_start: (api) => api.on("before_agent_start", (event) => assign(event, "systemPrompt", 7)),
    context: (api) => api.on("context", (event) => assign(event, "messages", "none")),
  };

  test.each(Object.entries(changes))(
    "a badly written extension changes nothing by assigning to its event %s, and the run completes",
    async (type, setup) => {
      const good = await run(() => undefined);
      expect(await run(setup)).toEqual({ ...good, errors: [type] });
    },
  );

  const answers: Readonly<Record<string, (api: ExtensionApi) => void>> = {
    context: (api) =>
      api.on("context", () => ({ messages: [{ role: "user", content: [{ type: "text" }] }] }) as never),
  };

  test.each(Object.entries(answers))(
    "a badly written extension changes nothing by answering %s with an incomplete part, and the run completes",
    async (type, setup) => {
      const good = await run(() => undefined);
      expect(await run(setup)).toEqual({ ...good, errors: [type] });
    },
  );

  test.each<[string, (api: ExtensionApi) => void]>([
    ["assigning to its event", (api) => api.on("tool_result", (event) => assign(event, "result", "none"))],
    [
      "answering with an incomplete part",
      (api) =>
        api.on("tool_result", () => ({ output: { type: "content", parts: [{ type: "text" }] } }) as never),
    ],
    [
      "answering with an output that is undefined",
      (api) => api.on("tool_result", () => ({ output: undefined }) as never),
    ],
    ["answering with a number", (api) => api.on("tool_result", () => ({ output: 7 }) as never)],
  ])("a badly written extension withholds the result by %s, and the run completes", async (_how, setup) => {
    const bad = await run(setup);
    expect(bad).toMatchObject({ status: "completed", output: "It rains.", errors: ["tool_result"] });
    expect(bad.sent?.at(-1)).toMatchObject({
      content: [{ output: { text: expect.stringContaining("[withheld: ") }, isError: true }],
    });
  });

  test("an extension whose setup fails after it has registered a handler of tool_result lets no tool call pass", async () => {
    const bad = await run((api) => {
      api.on("tool_result", () => ({ output: "[redacted]" }));
      throw new Error("no key");
    });
    expect(bad).toMatchObject({ status: "completed", errors: ["setup"] });
    expect(JSON.stringify(bad.sent?.at(-1))).toContain("could not be set up: no key");
  });

  test.each<[string, () => string | Promise<string>]>([
    [
      "throws",
      () => {
        throw new Error("no prompt");
      },
    ],
    ["returns no text", () => 7 as never],
    ["rejects", () => Promise.reject(new Error("no prompt"))],
  ])(
    "a badly written extension adds nothing to the system prompt if a registered part %s, and the run completes",
    async (_how, text) => {
      const good = await run(() => undefined);
      const bad = await run((api) => api.registerPrompt({ name: "part", text }));
      expect(bad).toEqual({ ...good, errors: ["prompt part"] });
    },
  );

  test("a badly written extension delays the run by at most its time limit with a registered part of the prompt", async () => {
    const clock = new FakeClock();
    let isBuilding = (): void => undefined;
    const building = new Promise<void>((resolve) => (isBuilding = resolve));
    const text = (): Promise<string> => (isBuilding(), new Promise<string>(() => undefined));
    const agent = new Agent({
      name: "scout",
      model: scriptedModel(["Done."]),
      extensions: [{ name: "slow", setup: (api) => api.registerPrompt({ name: "part", text }) }],
    });
    await using runtime = await openRuntime({ clock });
    const ended = agent.invoke("go", { runtime });
    await building;
    await clock.advance(5_000);
    expect(await ended).toMatchObject({ output: "Done." });
    expect(runtime.extensionErrors()).toMatchObject([{ extension: "slow", event: "prompt part" }]);
  });

  test("a badly written extension does not end the process by a guardrail whose asynchronous onTurnStart rejects", async () => {
    const late: unknown = () => Promise.reject(new Error("late"));
    const guardrail = { name: "late", onTurnStart: late } as Guardrail;
    expect(await run((api) => api.registerGuardrail(guardrail))).toMatchObject({ status: "completed" });
  });

  test("a badly written extension cannot change an answer after it has returned the answer", async () => {
    const output: JsonObject & { type: "text"; text: string } = { type: "text", text: "sun" };
    const { sent, status } = await run((api) => {
      api.on("tool_result", () => ({ output }));
      api.on("tool_result", () => assign(output, "text", 7));
    });
    expect(status).toBe("completed");
    expect(sent?.at(-1)).toMatchObject({ content: [{ output: { type: "text", text: "sun" } }] });
  });

  test("a badly written extension does not cancel the run by an error of other work that was cancelled", async () => {
    const cancelled = await run((api) =>
      api.on("before_agent_start", () => {
        throw new CancellationError("the other work was cancelled");
      }),
    );
    expect(cancelled).toMatchObject({
      status: "completed",
      output: "It rains.",
      errors: ["before_agent_start"],
    });
  });

  test("errors of the memory and the ephemeral source of an extension are in its list of errors, and the run completes", async () => {
    const fails = (): never => {
      throw new Error("broken");
    };
    const memory = { blocks: fails, recall: fails, remember: fails } as unknown as Memory;
    const register = (api: ExtensionApi): void => {
      api.registerMemory(memory);
      api.registerEphemeral({ name: "weather", messages: fails });
    };
    const { status, errors } = await run(register);
    expect(status).toBe("completed");
    expect(errors).toEqual(["memory", "ephemeral weather", "ephemeral weather"]);
  });

  test("errors of the memory and the sources of the agent itself are not in the list of errors of an extension", async () => {
    const memory = {
      blocks: () => Promise.reject(new Error("broken")),
      recall: async () => ({ episodes: [], facts: [] }),
      remember: async () => undefined,
    } as unknown as Memory;
    const agent = new Agent({
      name: "scout",
      model: scriptedModel(["It rains."]),
      memory,
      ephemeral: [{ name: "own", messages: () => Promise.reject(new Error("broken")) }],
      extensions: [{ name: "good", setup: (api) => api.registerMemory(memory) }],
    });
    await using runtime = await openRuntime();
    expect((await agent.invoke("Where?", { runtime })).status).toBe("completed");
    expect(runtime.extensionErrors()).toEqual([]);
  });
});
