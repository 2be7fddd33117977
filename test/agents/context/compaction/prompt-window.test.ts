import { expect, test } from "vitest";
import { Agent, slidingWindow, summarization, tool } from "../../../../src/entries/index.ts";
import {
  messageText,
  userMessage,
  type CompactionStrategy,
  type Event,
  type ModelRequest,
  type RunId,
  type StepRecord,
  type Store,
} from "../../../../src/kernel/index.ts";
import type { Summarizer } from "../../../../src/agents/context/compaction/summarizer.ts";
import { scriptedModel, type ScriptedModel } from "../../../../src/testing/index.ts";
import { setUp, settle } from "../../../runtime/runtime-setup.ts";
import { runWorkload, type Workload } from "../../../runtime/simulated-crash.ts";
import { findRun } from "../../../runtime/find-run.ts";

const look = tool({
  name: "look",
  description: "Looks",
  inputSchema: { type: "object", properties: {} },
  execute: () => "y".repeat(4_000),
});
/** Suspends the run between two turns. */
const wait = tool({
  name: "wait",
  description: "Waits",
  inputSchema: { type: "object", properties: {} },
  suspends: true,
  execute: async (_input, { ctx }) => ((await ctx.waitForSignal("go")) === undefined ? "" : "waited"),
});

const textIn = ({ messages }: ModelRequest): string =>
  messages.map((message) => messageText(message)).join("\n");
const isSummaryCall = (request: ModelRequest): boolean => textIn(request).includes("<conversation>");
const calls = (name: string) => ({ toolCalls: [{ name, input: {} }] });

/** A model that calls the tool `look` twice, then `wait`, then `look` once more, whatever the visible window is. */
function porterModel(world: string[] = []): ScriptedModel {
  let turns = 0;
  const script = ["look", "look", "wait", "look"];
  return scriptedModel(
    Array.from({ length: 60 }, () => (request: ModelRequest) => {
      world.push(isSummaryCall(request) ? "summary" : "turn");
      if (isSummaryCall(request)) return "In short.";
      const name = script[turns++];
      return name === undefined ? `done with ${request.messages.length} in view` : calls(name);
    }),
  );
}

function porter(model: ScriptedModel, strategy: (summarize: Summarizer) => CompactionStrategy): Agent {
  return new Agent({ name: "porter", model, tools: [look, wait], compaction: { strategy } });
}

test("S3: a compaction strategy that makes the history longer changes nothing that the model sees", async () => {
  const model = scriptedModel(["Done."]);
  const added = "a summary that is longer than what it replaces";
  const strategy = (): CompactionStrategy => ({
    compact: async (history) => [...history, userMessage(added)],
  });
  const { runtime } = await setUp();
  const agent = new Agent({ name: "porter", model, compaction: { strategy } });
  expect((await agent.invoke("go", { runtime })).output).toBe("Done.");
  expect(model.calls.map(textIn).join()).not.toContain(added);
});

async function steps(store: Store, runId: RunId): Promise<readonly StepRecord[]> {
  const all: StepRecord[] = [];
  for await (const commit of store.journal.read(runId)) all.push(...(commit.steps ?? []));
  return all;
}

test("J4: a compaction is a step of the run, and a turn that needs no compaction has no such step", async () => {
  const { runtime, store } = await setUp({ unknownPrice: "ignore" });
  const run = await runtime.submit(
    porter(porterModel(), () => slidingWindow({ maxMessages: 4 })),
    "Look.",
  );
  await settle();
  await run.signal("go");
  expect(await run.result()).toMatchObject({ status: "completed", output: "done with 3 in view" });
  const kinds = (await steps(store, run.runId)).map(({ kind }) => kind);
  // The run has five turns; the third, fourth and fifth exceed the limit of four messages.
  expect(kinds.filter((kind) => kind === "llm")).toHaveLength(5);
  expect(kinds.filter((kind) => kind === "compaction")).toHaveLength(3);
});

test("J4: a resumed run uses its recorded window, even if its compaction strategy has changed since", async () => {
  const { runtime, store, open, clock } = await setUp({ suspendAfterMs: 100, unknownPrice: "ignore" });
  const model = porterModel();
  let run = await runtime.submit(
    porter(model, () => slidingWindow({ maxMessages: 4 })),
    "Look.",
  );
  await settle();
  await clock.advance(1_000);
  await runtime.close();
  await store.leases.dismiss("worker-1");
  const next = await open();
  const harsher: CompactionStrategy = {
    isDue: (history) => history.length > 4,
    compact: async (history) => history.slice(-1).map(() => userMessage("Nothing of it.")),
  };
  next.register(porter(model, () => harsher));
  run = await findRun(next, run);
  await run.signal("go");
  await clock.advance(1_000);
  expect(await run.result()).toMatchObject({ status: "completed", error: null });
  expect(textIn(model.calls.at(-1) as ModelRequest)).toContain("Nothing of it.");
  await next.close();
});

test("B5, J5: a budget that runs out at a compaction summary stops the run, which completes with the summary after topUp()", async () => {
  const { runtime, events } = await setUp({ unknownPrice: "ignore" });
  const model = porterModel();
  const compaction = (summarize: Parameters<typeof summarization>[0]["summarize"]) =>
    summarization({ summarize, maxTokens: 2_000, keepRecentTokens: 1_100 });
  const run = await runtime.submit(porter(model, compaction), "Look.", { budget: { maxTurns: 2 } });
  expect(await run.result()).toMatchObject({ status: "budget_exhausted" });
  expect(model.calls).toHaveLength(2);
  await run.topUp({ maxTurns: 10 });
  await settle();
  await run.signal("go");
  expect(await run.result()).toMatchObject({ status: "completed" });
  const told = (await events(run.runId)).map(({ type }: Event) => type);
  expect(told.filter((type) => type === "session_compact").length).toBeGreaterThan(0);
  expect(model.calls.filter(isSummaryCall).length).toBeGreaterThan(0);
  await runtime.close();
});

test("J1, J6: a run with compaction has the same output wherever its worker dies and repeats at most one model call", async () => {
  const workload = (world: string[]): Workload => {
    const answer = (request: ModelRequest) => {
      world.push(isSummaryCall(request) ? "summary" : "turn");
      if (isSummaryCall(request)) return `In short: ${textIn(request).length}.`;
      return textIn(request).includes("In short") ? `done with ${textIn(request).length}` : calls("look");
    };
    const model = scriptedModel(Array.from({ length: 60 }, () => answer));
    const agents = (): [Agent] => [
      porter(model, (summarize) => summarization({ summarize, maxTokens: 2_000, keepRecentTokens: 1_100 })),
    ];
    return { agents, input: "Look.", options: { unknownPrice: "ignore" } };
  };
  const calmWorld: string[] = [];
  const calm = await runWorkload(workload(calmWorld));
  expect(calmWorld).toEqual(["turn", "turn", "summary", "turn"]);
  for (let at = 2; at <= calm.writes; at++) {
    for (const when of ["before", "after"] as const) {
      const world: string[] = [];
      const { output, status } = await runWorkload(workload(world), { at, when });
      expect({ at, when, output, status }).toEqual({ at, when, output: calm.output, status: "completed" });
      expect(world.length).toBeLessThanOrEqual(calmWorld.length + 1);
    }
  }
});
