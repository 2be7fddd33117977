import { describe, expect, test } from "vitest";
import { Agent, openRuntime, tool } from "../../../../src/entries/index.ts";
import type {
  ChatMessage,
  ChildRequest,
  ModelRequest,
  SpawnOutcome,
  Store,
  TaskOutcome,
} from "../../../../src/kernel/index.ts";
import { scriptedModel, type ScriptStep } from "../../../../src/testing/index.ts";
import { removeStoresAfterEach, twoStores } from "../../../runtime/two-stores.ts";

removeStoresAfterEach();

const noInput = { type: "object", properties: {} } as const;

/** An agent whose tool `delegate` asks a child, and what the children answered. */
async function setUp(open: () => Promise<Store>, script: readonly ScriptStep[], request: ChildRequest) {
  const outcomes: (SpawnOutcome | TaskOutcome)[] = [];
  const looked: string[] = [];
  const model = scriptedModel(script);
  const look = tool({
    name: "look",
    description: "Looks",
    inputSchema: noInput,
    execute: (_input, { ctx }) => {
      looked.push(ctx.taskId);
      return "rain";
    },
  });
  const delegate = tool({
    name: "delegate",
    description: "Delegates",
    inputSchema: noInput,
    execute: async (_input, { ctx }) => {
      const spawned = await ctx.child(request);
      if (spawned.kind === "refused") {
        outcomes.push(spawned);
        return spawned.reason;
      }
      const outcome = await ctx.join(spawned.handle);
      outcomes.push(outcome);
      return JSON.stringify(outcome.output);
    },
  });
  const agent = new Agent({
    name: "scout",
    model,
    instructions: "Be brief.",
    tools: [look, delegate],
    ephemeral: [{ name: "screen", messages: async () => [live] }],
  });
  const runtime = await openRuntime({ store: await open(), unknownPrice: "ignore" });
  return { agent, runtime, model, outcomes, looked };
}

const live: ChatMessage = { role: "user", content: [{ type: "text", text: "The screen is blue." }] };
const asks = (name: string, callId: string): ScriptStep => ({ toolCalls: [{ name, input: {}, callId }] });

const openCall = "[not executed: the call was open when this child started]";

const withoutLive = (request: ModelRequest | undefined): readonly ChatMessage[] =>
  (request?.messages ?? []).filter((message) => message !== live);

describe.each(twoStores)("ctx.child() on the %s store", (_name, prepare) => {
  test("S1: ctx.child() sends the parent's last request without ephemeral messages, then the answer and the prompt", async () => {
    const { agent, runtime, model, outcomes } = await setUp(
      await prepare(),
      [asks("look", "c1"), asks("delegate", "c2"), "Two mistakes.", "Done."],
      { prompt: "List the mistakes.", tools: ["look"] },
    );
    const result = await agent.invoke("Where?", { runtime });
    expect(result).toMatchObject({ status: "completed", output: "Done." });
    expect(outcomes).toMatchObject([{ status: "completed", output: "Two mistakes." }]);
    const [, parent, child] = model.calls;
    expect(withoutLive(child)).toEqual(child?.messages);
    expect(child?.messages.slice(0, -3)).toEqual(withoutLive(parent));
    expect(child?.messages.slice(-3, -1)).toMatchObject([
      { role: "assistant", content: [{ callId: "c2", toolName: "delegate" }] },
      { role: "tool", content: [{ callId: "c2", isError: true, output: { text: openCall } }] },
    ]);
    expect(child?.messages.at(-1)).toEqual({
      role: "user",
      content: [{ type: "text", text: "List the mistakes." }],
    });
    expect(child?.tools).toEqual(parent?.tools);
    await runtime.close();
  });

  test("ctx.child() executes the tools that the child may use and answers other calls with an error result", async () => {
    const { agent, runtime, model, looked } = await setUp(
      await prepare(),
      [asks("delegate", "c1"), asks("delegate", "c2"), asks("look", "c3"), "Two mistakes.", "Done."],
      { prompt: "List the mistakes.", tools: ["look"] },
    );
    expect(await agent.invoke("Where?", { runtime })).toMatchObject({ output: "Done." });
    expect(looked).toEqual(["t1"]);
    const refused = model.calls[2]?.messages.at(-1);
    expect(refused).toMatchObject({
      role: "tool",
      content: [{ callId: "c2", isError: true, output: { text: expect.stringContaining("may call: look") } }],
    });
    await runtime.close();
  });
});
