import { describe, expect, test } from "vitest";
import { Agent, openRuntime, permissions, tool } from "../../../src/entries/index.ts";
import {
  parseSessionId,
  type ChatMessage,
  type ModelRequest,
  type RunHandle,
  type Store,
} from "../../../src/kernel/index.ts";
import { scriptedModel, type ScriptStep } from "../../../src/testing/index.ts";
import { react, selfRefine } from "../../../src/agents/architectures/index.ts";
import { until } from "../../runtime/runtime-setup.ts";
import { removeStoresAfterEach, twoStores } from "../../runtime/two-stores.ts";

removeStoresAfterEach();

const sessionId = parseSessionId("trip");
const looks: ScriptStep = { text: "Looking.", toolCalls: [{ name: "look", input: {}, callId: "c1" }] };

const refused: ScriptStep = { error: Object.assign(new Error("no such model"), { status: 400 }) };

function textOf(message: ChatMessage): string {
  if (message.role === "system") return message.content;
  return message.content
    .map((part) => {
      if (part.type === "text") return part.text;
      if (part.type === "tool_call") return `${part.callId}?`;
      if (part.type !== "tool_result") return part.type;
      return `${part.callId}=${part.output.type === "text" ? part.output.text : part.output.type}`;
    })
    .join(" ");
}

function seen(request: ModelRequest | undefined): readonly string[] {
  return (request?.messages ?? []).map(textOf);
}

/** Builds an agent with a tool that requires approval. */
async function setUp(open: () => Promise<Store>, script: readonly ScriptStep[]) {
  const runtime = await openRuntime({ store: await open(), unknownPrice: "ignore" });
  const model = scriptedModel(script);
  const look = tool({
    name: "look",
    description: "Looks",
    inputSchema: { type: "object", properties: {} } as const,
    execute: () => "rain",
  });
  const agent = new Agent({
    name: "scout",
    model,
    tools: [look],
    permissions: permissions({ ask: ["look"], onAsk: "wait" }),
  });
  return { runtime, model, agent, options: { runtime, sessionId } };
}

/** Waits for the run's approval request and returns its id. */
async function asked(run: RunHandle): Promise<string> {
  for await (const event of run.events()) if (event.type === "approval_request") return event.data.approvalId;
  throw new Error("the run ended without an approval request");
}

describe.each(twoStores)(
  "N3: a run that is resumed after later runs of its session (store: %s)",
  (_name, prepare) => {
    test("N3: a cancelled run that is resumed adds its messages after those of later runs", async () => {
      const { runtime, model, agent, options } = await setUp(await prepare(), [
        looks,
        "second answer",
        "first answer",
        "third answer",
      ]);
      const first = await agent.submit("first?", options);
      const approvalId = await asked(first);
      await first.cancel("not now");
      expect(await first.result()).toMatchObject({ status: "cancelled" });
      await agent.invoke("second?", options);
      await first.resume();
      await first.approve(approvalId, { decision: "approved" });
      expect(await first.result()).toMatchObject({ status: "completed", output: "first answer" });
      // J4: the run continues with the conversation that it started with.
      expect(seen(model.calls[2])).toEqual(["first?", "Looking. c1?", "c1=rain"]);
      await agent.invoke("third?", options);
      expect(seen(model.calls[3])).toEqual([
        "first?",
        "Looking. c1?",
        "c1=[not executed: not now]",
        "[interrupted: cancelled]",
        "second?",
        "second answer",
        "first?",
        "Looking. c2?",
        "c2=rain",
        "first answer",
        "third?",
      ]);
      await runtime.close();
    });

    test("N3: a failed run that is resumed stores its question and answer after those of later runs", async () => {
      const { runtime, model, agent, options } = await setUp(await prepare(), [
        refused,
        "second answer",
        "first answer",
        "third answer",
      ]);
      const first = await agent.invoke("first?", options);
      expect(first.status).toBe("failed");
      await agent.invoke("second?", options);
      await agent.resume(first.runId, { runtime });
      await agent.invoke("third?", options);
      expect(seen(model.calls[3])).toEqual(["second?", "second answer", "first?", "first answer", "third?"]);
      await runtime.close();
    });

    test("N3: if a run is resumed while another one runs, the run that ends last comes last in the session", async () => {
      const { runtime, model, agent, options } = await setUp(await prepare(), [
        refused,
        looks,
        "first answer",
        "second answer",
        "third answer",
      ]);
      const first = await agent.invoke("first?", options);
      const second = await agent.submit("second?", options);
      const approvalId = await asked(second);
      await agent.resume(first.runId, { runtime });
      await second.approve(approvalId, { decision: "approved" });
      expect(await second.result()).toMatchObject({ output: "second answer" });
      await agent.invoke("third?", options);
      expect(seen(model.calls[4])).toEqual([
        "first?",
        "first answer",
        "second?",
        "Looking. c1?",
        "c1=rain",
        "second answer",
        "third?",
      ]);
      await runtime.close();
    });
  },
);

describe.each(twoStores)("S1: a run that is stopped, resumed and completes (store: %s)", (_name, prepare) => {
  const look = tool({
    name: "look",
    description: "Looks",
    inputSchema: { type: "object" },
    execute: () => "rain",
  });
  const call = (callId: string): ScriptStep => ({ toolCalls: [{ name: "look", input: {}, callId }] });

  test.for([
    { thinks: "react", stopped: [call("c1")], resumed: ["It rains."], said: ["c1?", "c1=rain", "It rains."] },
    {
      thinks: "reflexion",
      stopped: ["It is dry."],
      resumed: ["score: 0.1", "Look first.", call("c1"), "It rains.", "score: 1"],
      said: ["c1?", "c1=rain", "It rains."],
    },
    {
      thinks: "self-refine",
      stopped: ["It is dry."],
      resumed: ["Look.", "It rains.", "No issues."],
      said: ["It rains."],
    },
    {
      thinks: "plan-and-execute",
      stopped: ['["look"]'],
      resumed: ["seen", "It rains."],
      said: ["It rains."],
    },
  ] as const)(
    "S1: the session of a resumed $thinks run equals that of an uninterrupted run",
    async ({ thinks, stopped, resumed, said }) => {
      const open = await prepare();
      const runtime = await openRuntime({ store: await open(), unknownPrice: "ignore" });
      const model = scriptedModel([...stopped, ...resumed, "Next."]);
      const options = { runtime, sessionId };
      const scout = new Agent({ name: "scout", model, tools: [look], architecture: thinks, maxTurns: 8 });
      const run = await scout.submit("Rain?", { ...options, budget: { maxTurns: stopped.length } });
      expect(await run.result()).toMatchObject({ status: "budget_exhausted" });
      await run.topUp({ maxTurns: resumed.length });
      await run.resume();
      await until(async () => (await run.result()).status === "completed");
      expect((await run.result()).output).toBe("It rains.");
      const plain = new Agent({ name: "scout-2", model });
      await plain.invoke("And?", options);
      expect(seen(model.calls.at(-1))).toEqual(["Rain?", ...said, "And?"]);
      await runtime.close();
    },
  );

  test("S1: a resumed run repeats its question and final answer after the messages of other runs", async () => {
    const open = await prepare();
    const runtime = await openRuntime({ store: await open(), unknownPrice: "ignore" });
    const model = scriptedModel(["It is dry.", "second answer", "Look.", "It rains.", "Next."]);
    const options = { runtime, sessionId };
    const scout = new Agent({ name: "scout", model, architecture: selfRefine(react(), { maxRounds: 1 }) });
    const plain = new Agent({ name: "plain", model });
    const run = await scout.submit("Rain?", { ...options, budget: { maxTurns: 1 } });
    expect(await run.result()).toMatchObject({ status: "budget_exhausted" });
    await plain.invoke("second?", options);
    await run.topUp({ maxTurns: 4 });
    await run.resume();
    await until(async () => (await run.result()).status === "completed");
    await plain.invoke("And?", options);
    expect(seen(model.calls.at(-1))).toEqual([
      "Rain?",
      "It is dry. [interrupted: budget_exhausted]",
      "second?",
      "second answer",
      "Rain?",
      "It rains.",
      "And?",
    ]);
    await runtime.close();
  });
});
