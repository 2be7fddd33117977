import { describe, expect, test } from "vitest";
import {
  Agent,
  memoryStore,
  openRuntime,
  sha256,
  tool,
  type AgentOptions,
} from "../../../src/entries/index.ts";
import type { Guardrail, JsonValue, RunResult, Store, ToolResultPart } from "../../../src/kernel/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";

function sender(sent: string[]) {
  return tool({
    name: "send",
    description: "Sends mail",
    inputSchema: { type: "object", properties: { to: { type: "string" } }, required: ["to"] } as const,
    execute: ({ to }) => {
      sent.push(to);
      return `sent to ${to}`;
    },
  });
}

const three = {
  toolCalls: ["ann", "bob", "cid"].map((to) => ({ name: "send", input: { to }, callId: "call" })),
};

const noBob: Guardrail = {
  name: "no_bob",
  beforeCall: ({ input }) =>
    JSON.stringify(input).includes("bob")
      ? { decision: "halt", reason: "not to bob" }
      : { decision: "allow" },
};

async function play(
  options: Partial<AgentOptions>,
  store: Store = memoryStore({ hash: sha256 }),
): Promise<{ result: RunResult<JsonValue>; results: readonly string[]; said: readonly string[] }> {
  const runtime = await openRuntime({ store, unknownPrice: "ignore" });
  const handle = await runtime.submit(
    new Agent({ name: "clerk", model: scriptedModel([three]), ...options }),
    "Send it to all.",
  );
  const result = await handle.result();
  await runtime.close();
  return { result, ...(await sessionOf(store, result)) };
}

async function sessionOf(
  store: Store,
  { sessionId }: RunResult<JsonValue>,
): Promise<{ results: readonly string[]; said: readonly string[] }> {
  const messages = (await store.sessions.read(sessionId)).flatMap(({ entry }) =>
    entry.type === "message" ? [entry.message] : [],
  );
  const results = messages.flatMap((message) => (message.role === "tool" ? message.content : []));
  return {
    results: results.map(({ output }: ToolResultPart) =>
      output.type === "text" ? output.text : output.type,
    ),
    said: messages.flatMap((message) =>
      message.role === "assistant"
        ? message.content.flatMap((part) => (part.type === "text" ? [part.text] : []))
        : [],
    ),
  };
}

describe("a batch of tool calls that is stopped halfway", () => {
  test("S1: finished calls of a stopped batch keep their results, and only the stopped call is marked as not executed", async () => {
    const sent: string[] = [];
    const { result, results } = await play({ tools: [sender(sent)], guardrails: [noBob] });
    expect(result.status).toBe("guardrail_tripped");
    expect(sent).toEqual(["ann", "cid"]);
    expect(results).toEqual(["sent to ann", "[not executed: not to bob]", "sent to cid"]);
  });

  test("S1: a call whose result stops the run is marked as withheld and not as not executed", async () => {
    const sent: string[] = [];
    const afterBob: Guardrail = {
      name: "after_bob",
      afterCall: (_call, { output }) =>
        JSON.stringify(output).includes("bob")
          ? { decision: "halt", reason: "bob knows" }
          : { decision: "allow" },
    };
    const calls = ["ann", "bob"].map((to) => ({ name: "send", input: { to }, callId: to }));
    const { result, results } = await play({
      model: scriptedModel([{ toolCalls: calls }]),
      tools: [sender(sent)],
      guardrails: [afterBob],
    });
    expect(result).toMatchObject({ status: "guardrail_tripped", error: { message: "bob knows" } });
    expect(sent).toEqual(["ann", "bob"]);
    expect(results).toEqual(["sent to ann", "[withheld: bob knows]"]);
  });

  test("S1: if middleware answers instead of a failed agent, every call has a result", async () => {
    const sent: string[] = [];
    const { result, results, said } = await play({
      tools: [sender(sent)],
      guardrails: [noBob],
      middleware: [
        {
          agent: async (context, next) => {
            await next().catch(() => {
              context.result = { output: "Not all of it.", status: "completed", interruptionReason: null };
            });
          },
        },
      ],
    });
    expect(result).toMatchObject({ status: "completed", output: "Not all of it." });
    expect(results).toEqual(["sent to ann", "[not executed: answered in its place]", "sent to cid"]);
    expect(said).toEqual(["Not all of it."]);
  });
});

test("the session stores the output that middleware around the whole run returns", async () => {
  const { result, said } = await play({
    model: scriptedModel(["It rains in Sens."]),
    middleware: [
      {
        agent: async (context, next) => {
          await next();
          if (context.result !== undefined) context.result = { ...context.result, output: "It rains." };
        },
      },
    ],
  });
  expect(result.output).toBe("It rains.");
  expect(said).toEqual(["It rains."]);
});

test("B1: if a provider bills more than the reserved bound, the tool calls of its answer wait for topUp()", async () => {
  const sent: string[] = [];
  const store = memoryStore({ hash: sha256 });
  const runtime = await openRuntime({ store, unknownPrice: "ignore" });
  const model = scriptedModel([
    { ...three, usage: { inputTokens: 900, outputTokens: 200_000 } },
    { text: "Sent.", usage: { inputTokens: 1_000, outputTokens: 5 } },
  ]);
  const clerk = new Agent({ name: "clerk", model, tools: [sender(sent)], budget: { maxTokens: 50_000 } });
  const run = await runtime.submit(clerk, "Send it to all.");
  expect(await run.result()).toMatchObject({ status: "budget_exhausted" });
  expect(sent).toEqual([]);
  await run.topUp({ maxTokens: 1_000_000 });
  expect(await run.result()).toMatchObject({ status: "completed", output: "Sent." });
  expect(sent).toEqual(["ann", "bob", "cid"]);
  // The paid answer is not requested again.
  expect(model.calls).toHaveLength(2);
  await runtime.close();
});

test("extensions of an agent can block calls and replace results", async () => {
  const sent: string[] = [];
  const { result, results } = await play({
    model: scriptedModel([three, "Done."]),
    tools: [sender(sent)],
    extensions: [
      {
        name: "shy",
        setup(api) {
          api.on("tool_call", ({ input }) =>
            JSON.stringify(input).includes("bob") ? { block: true, reason: "shy" } : undefined,
          );
          api.on("tool_result", () => ({ output: { type: "text", text: "patched" } }));
        },
      },
    ],
  });
  expect(result.status).toBe("completed");
  expect(sent).toEqual(["ann", "cid"]);
  expect(results).toEqual(["patched", "[denied: shy]", "patched"]);
});
