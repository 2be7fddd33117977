import { afterAll, beforeAll, expect, test } from "vitest";
import { Agent, OrchestratorAgent } from "../../../../src/entries/index.ts";
import { rootTaskId, type Event, type RunHandle } from "../../../../src/kernel/index.ts";
import { openRuntime } from "../../../../src/assembly/open-runtime.ts";
import { ownCrashes } from "../../../../src/surfaces/view/own-crashes.ts";
import { RunFold } from "../../../../src/surfaces/view/run-fold.ts";
import { runTime, startOfRun } from "../../../../src/surfaces/view/run-clock.ts";
import type { RunView } from "../../../../src/surfaces/view/run-view.ts";
import { stepAt } from "../../../../src/surfaces/view/step-log.ts";
import { scriptedModel } from "../../../../src/testing/index.ts";
import { barsOf } from "./lane-bars.ts";
import { RunPast } from "../../../../src/surfaces/view/run-past.ts";
import { shownView } from "../../../model/run-model.ts";
import { stepResult } from "../../../model/words/step-words.ts";
import { doing } from "../../../../src/surfaces/view/task-words.ts";
import { timeScale } from "../../../model/time/time-scale.ts";

const runtime = await openRuntime({
  store: "memory:",
  prices: { find: () => ({ inputUsd: 1e-4, outputUsd: 1e-4 }) },
});
afterAll(() => runtime.close());

const later = 600_000;
/** The events of a fork that starts ten minutes after what it shares, and of a fork of it that starts as late. */
let events: readonly Event[] = [];
let eventsOfSecond: readonly Event[] = [];

async function eventsOf(run: RunHandle): Promise<readonly Event[]> {
  const read: Event[] = [];
  for await (const event of run.events({ follow: false })) if ("seq" in event) read.push(event);
  return read;
}

beforeAll(async () => {
  const ann = new Agent({ name: "ann", model: scriptedModel(["Yes.", "Yes.", "Yes."]) });
  const toolCalls = [{ name: "handoff_ann", input: { task: "Say it." } }];
  const lead = new OrchestratorAgent({
    name: "lead",
    model: scriptedModel([{ toolCalls }, "She agrees.", "She agrees.", "She agrees."]),
    subAgents: [ann],
  });
  const origin = await runtime.submit(lead, "Ask her.");
  await origin.result();
  const answer = (await eventsOf(origin)).findLast(({ type }) => type === "message_start");
  const fork = await origin.fork({ at: answer?.seq ?? 0 });
  await fork.result();
  const read = await eventsOf(fork);
  events = withDelays(read);
  const second = await fork.fork({ at: read.length - 1, input: "Ask her again." });
  await second.result();
  eventsOfSecond = withDelays(await eventsOf(second));
});

function withDelays(read: readonly Event[]): readonly Event[] {
  let forks = 0;
  return read.map((event) => {
    if (event.type === "run_fork") forks++;
    return { ...event, at: event.at + forks * later };
  });
}

function viewAt(seq: number, of = events): RunView {
  const fold = new RunFold();
  for (const event of of) if (event.seq <= seq) fold.add(event);
  return fold.view();
}

test("the page's timeline of a fork starts at its own start, and leaves out the time since the last shared event", () => {
  const view = viewAt(events.length);
  const { startedAt = 0, lastAt = 0 } = view.forkedFrom ?? {};
  expect(startedAt - lastAt).toBeGreaterThanOrEqual(later);
  expect(view.at - startOfRun(view)).toBeLessThan(later);
  expect(runTime(view, lastAt)).toBe(lastAt - view.startedAt);
  expect(runTime(view, startedAt)).toBe(runTime(view, lastAt));
  const scale = timeScale(view, view.at, 1_000, 0.07);
  expect(scale.folds).toEqual([]);
  const place = scale.x({ at: lastAt, seq: view.forkedFrom?.at ?? 0 });
  expect(scale.x({ at: startedAt, seq: (view.forkedFrom?.at ?? 0) + 1 })).toBeCloseTo(place);
});

test("the page's run time of a fork of a fork leaves out both times between a shared event and the start of a fork", () => {
  const view = viewAt(eventsOfSecond.length, eventsOfSecond);
  expect(view.forkedFrom?.earlier).toHaveLength(1);
  const took = view.at - view.startedAt;
  expect(took).toBeGreaterThanOrEqual(2 * later);
  expect(runTime(view, view.at)).toBeLessThan(later);
  const scale = timeScale(view, view.at, 1_000, 0.07);
  expect([scale.breaks.length, scale.folds.length]).toEqual([2, 0]);
  const past = new RunPast();
  for (const event of eventsOfSecond) past.add(event, { seats: 0, isWaitOver: false });
  const times = eventsOfSecond.map(({ at }) => runTime(view, at));
  expect(times).toEqual(eventsOfSecond.map(({ at }) => past.trace.activeMs(at)));
  const perMs = 1_000 / Math.max(1, runTime(view, view.at));
  for (const [index, { at, seq }] of eventsOfSecond.entries())
    expect(scale.x({ at, seq })).toBeCloseTo((times[index] ?? 0) * perMs);
});

test("no step of a fork in the page's timeline lasts from the shared part into its own, and shared steps are free", () => {
  const past = new RunPast();
  for (const event of events) past.add(event, { seats: 0, isWaitOver: false });
  const view = viewAt(events.length);
  const { startedAt = 0, lastAt = 0 } = view.forkedFrom ?? {};
  const until = { at: view.at, seq: view.seq };
  const scale = timeScale(view, view.at, 1_000, 0.07);
  const results = [...view.tasks].flatMap(({ taskId }) =>
    barsOf(past.steps.of(taskId), scale, until, view).map(({ step, kind }) => {
      const isShared = step.startAt <= lastAt;
      expect((step.endAt ?? Infinity) <= lastAt || step.startAt >= startedAt).toBe(true);
      expect(step.kind !== "model" || kind === (isShared ? "free" : "model")).toBe(true);
      return [isShared, stepResult(step, view) === "free"];
    }),
  );
  expect(results.filter(([isShared]) => isShared === true).length).toBeGreaterThan(1);
  for (const [isShared, isFree] of results) expect(isFree).toBe(isShared);
});

test("the spending of a fork on the page never falls: neither curve nor budget meter has what the origin paid", () => {
  const past = new RunPast();
  for (const event of events) past.add(event, { seats: 0, isWaitOver: false });
  const spend = past.trace.spend.map(({ value }) => value);
  expect(spend).toEqual(spend.toSorted((one, other) => one - other));
  const live = viewAt(events.length);
  const root = live.tasks.get(rootTaskId);
  expect(root?.total.costUsd).toBeGreaterThan(0);
  expect(spend.at(-1)).toBeCloseTo(root?.total.costUsd ?? 0);
  const costs = events.map(
    ({ seq }) => shownView(viewAt(seq), live).tasks.get(rootTaskId)?.total.costUsd ?? 0,
  );
  expect(costs).toEqual(costs.toSorted((one, other) => one - other));
  const shared = live.forkedFrom?.at ?? 0;
  expect(viewAt(shared).tasks.get(rootTaskId)?.total.costUsd).toBeGreaterThan(0);
  const held = past.trace
    .held([], 0)
    .filter(({ activeMs }) => activeMs + past.trace.spanMs <= runTime(live, live.forkedFrom?.lastAt ?? 0));
  expect(held.every(({ heldUsd }) => heldUsd === 0)).toBe(true);
  expect(past.steps.of(rootTaskId).flatMap((step) => stepAt(step, shared) ?? []).length).toBeGreaterThan(0);
});

test("the page shows an agent of a paused run as paused, unless it has ended or asks a person", () => {
  const at = events.findIndex(({ type, taskId }) => type === "message_start" && taskId !== rootTaskId);
  const { agentId, taskId, parentId, runId, at: time } = events[0] as Event;
  const fold = new RunFold();
  for (const event of events.slice(0, at + 1)) fold.add(event);
  fold.add({
    agentId,
    taskId,
    parentId,
    runId,
    at: time,
    seq: at + 1,
    type: "run_pause",
    data: { by: "ada" },
  });
  const view = shownView(fold.view(), null);
  expect([...view.tasks].map((task) => [task.status, doing(task, view)])).toEqual([
    ["pausing", "pauses after its calls in flight"],
    ["pausing", "pauses after its calls in flight"],
  ]);
  const ended = shownView({ ...viewAt(events.length), status: "paused" }, null);
  expect([...ended.tasks].map(({ status }) => status)).toEqual(["completed", "completed"]);
});

test("the page shows a fork as a survivor of its own crashes, but not of those of its origin", () => {
  const start = events.findIndex(({ type }) => type === "run_fork");
  const { agentId, taskId, parentId, runId, at } = events[0] as Event;
  const data = { epoch: 2, recoveries: 1 } as Event<"run_recover">["data"];
  const crash = { agentId, taskId, parentId, runId, at, data, seq: 0, type: "run_recover" } as const;
  const crashesAfter = (index: number): number => {
    const crashed = [...events.slice(0, index), crash, ...events.slice(index)];
    const fold = new RunFold();
    for (const [seq, event] of crashed.entries()) fold.add({ ...event, seq });
    expect(fold.view().recoveries).toHaveLength(1);
    return ownCrashes(fold.view()).length;
  };
  expect([crashesAfter(start), crashesAfter(start + 1)]).toEqual([0, 1]);
});
