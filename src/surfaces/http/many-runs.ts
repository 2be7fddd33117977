import {
  allRuns,
  Fault,
  type RunHandle,
  type RunQuery,
  type RunSummary,
  type Runtime,
} from "../../kernel/index.ts";
import { isStoppedAtLimit, lackOf, type TopUpName } from "../view/top-up-offer.ts";
import type { FiguresOfRuns } from "./figures/run-figures.ts";

/** What many runs can be ordered at once. */
export const runOrders = ["cancel", "resume", "delete"] as const;
export type RunOrder = (typeof runOrders)[number];

/** Maximum number of runs of one order. */
const mostRuns = 200;

/** Who gives orders to runs, and where. */
export interface OrderDesk {
  readonly runtime: Runtime;
  readonly figures: FiguresOfRuns;
  /** The name of the caller. It is recorded in the events of the runs. */
  readonly by: string;
  readonly mayGive: (order: RunOrder) => boolean;
}

/** What an order would do. */
export interface OrderPreview {
  /** The runs that the order would change. */
  readonly runIds: string[];
  readonly refused: Refusal[];
  /**
   * Maximum amount that all resumed runs together may still spend. `null` if one of them has no limit, or if no run
   * would be resumed.
   */
  readonly atMostUsd: number | null;
}

/** What an order did. */
export interface OrderOutcome {
  readonly runIds: string[];
  readonly refused: Refusal[];
}

/** Runs that an order does not change, with a sentence that states the reason for all of them. */
interface Refusal {
  readonly reason: string;
  readonly runIds: string[];
}

/**
 * Returns the effect that an order would have on each of up to 200 runs. No run is changed. Throws
 * `invalid_argument` for more runs.
 */
export async function previewOrder(
  order: RunOrder,
  chosen: ChosenRuns,
  desk: OrderDesk,
): Promise<OrderPreview> {
  const runs = await findChosen(desk.runtime, chosen);
  const verdicts = await Promise.all(runs.map((run) => judge(order, run, desk)));
  const fitting = verdicts.filter(({ reason }) => reason === null);
  return {
    runIds: fitting.map(({ runId }) => runId),
    refused: byReason(verdicts),
    atMostUsd: order === "resume" ? sumOf(fitting) : null,
  };
}

/**
 * Gives an order to up to 200 runs, such as those of a preview. Each run is checked again. A run to which the order
 * no longer applies is refused, while the other runs still receive it. Therefore an order can be repeated.
 */
export async function giveOrder(
  order: GivenOrder,
  runIds: readonly string[],
  desk: OrderDesk,
): Promise<OrderOutcome> {
  const verdicts: Verdict[] = [];
  for (const run of await findChosen(desk.runtime, { runIds })) {
    const verdict = await judge(order.order, run, desk);
    verdicts.push(verdict.reason === null ? await carryOut(order, verdict, desk) : verdict);
  }
  const done = verdicts.filter(({ reason }) => reason === null).map(({ runId }) => runId);
  return { runIds: done, refused: byReason(verdicts) };
}

/** The given runs, or the runs that match a query at this moment. */
export type ChosenRuns = { readonly runIds: readonly string[] } | { readonly query: RunQuery };

/** A run that an order names. */
interface ChosenRun {
  readonly runId: string;
  /** `undefined` if there is no such run. */
  readonly run: RunSummary | undefined;
}

/** Returns the runs of an order. Throws `invalid_argument` if there are too many. */
async function findChosen(runtime: Runtime, chosen: ChosenRuns): Promise<readonly ChosenRun[]> {
  if ("query" in chosen) {
    const count = await runtime.count(chosen.query);
    if (count > mostRuns) throw tooMany(count);
    const found: ChosenRun[] = [];
    for await (const run of allRuns(runtime, chosen.query)) found.push({ runId: run.runId, run });
    if (found.length > mostRuns) throw tooMany(found.length);
    return found;
  }
  const wanted = [...new Set(chosen.runIds)];
  if (wanted.length > mostRuns) throw tooMany(wanted.length);
  return Promise.all(
    wanted.map(async (runId) => ({ runId, run: await (await runtime.find(runId))?.summary() })),
  );
}

function tooMany(count: number): Fault {
  return new Fault(
    "invalid_argument",
    `invalid order: ${count} runs were chosen, and an order takes at most ${mostRuns}; choose fewer, or narrow the filter`,
    { details: { count, most: mostRuns } },
  );
}

interface Verdict {
  readonly runId: string;
  /** Why the order cannot be applied to the run. `null` if it can. */
  readonly reason: string | null;
  /** Amount that the run may still spend if it is resumed. `null` if it has no limit. */
  readonly leftUsd: number | null;
}

async function judge(wanted: RunOrder, { runId, run }: ChosenRun, desk: OrderDesk): Promise<Verdict> {
  const refuse = (reason: string): Verdict => ({ runId, reason, leftUsd: null });
  if (run === undefined) return refuse("The run does not exist any more.");
  if (!desk.mayGive(wanted)) return refuse(`This token may not ${wanted} runs.`);
  const hasEnded = run.endedAt !== null;
  if (wanted === "cancel")
    return hasEnded ? refuse("The run has already ended.") : { runId, reason: null, leftUsd: null };
  if (wanted === "delete")
    return hasEnded
      ? { runId, reason: null, leftUsd: null }
      : refuse("The run has not ended. Cancel it first.");
  if (run.status === "completed") return refuse("The run has completed.");
  if (!hasEnded && run.status !== "paused") return refuse("The run is not stopped.");
  const known = await desk.figures.of(desk.runtime, runId);
  if (known === undefined) return refuse("The run does not exist any more.");
  if (known.agents === 0) return refuse("The contents of the run were erased.");
  const lack = isStoppedAtLimit(run.status)
    ? lackOf({ status: run.status, failure: known.failure, budget: known })
    : null;
  if (lack !== null) return refuse(`The run would stop again at once: it needs ${needs[lack.name]}.`);
  const { maxCostUsd, costUsd } = known;
  return {
    runId,
    reason: null,
    leftUsd: maxCostUsd === null ? null : Math.max(0, maxCostUsd - (costUsd ?? 0)),
  };
}

const needs: Readonly<Record<TopUpName, string>> = {
  maxCostUsd: "money",
  maxTurns: "turns",
  maxTokens: "tokens",
  deadlineMs: "time",
};

/** An order with the reason that is recorded in cancelled runs. */
interface GivenOrder {
  readonly order: RunOrder;
  readonly reason?: string;
}

/** Executes the order. A run that can no longer take it is refused; the other runs are not affected. */
async function carryOut(
  { order: wanted, reason }: GivenOrder,
  verdict: Verdict,
  { runtime, by }: OrderDesk,
): Promise<Verdict> {
  const { runId } = verdict;
  try {
    const run = (await runtime.find(runId))?.as(by);
    if (run === undefined) return { ...verdict, reason: "The run does not exist any more." };
    if (wanted === "delete") return await deleteEnded(runtime, run, verdict);
    await (wanted === "cancel" ? run.cancel(reason) : run.resume());
    return verdict;
  } catch (error) {
    if (!Fault.is(error) || error.code === "closed") throw error;
    return { ...verdict, reason: error.message };
  }
}

/** Deletes a run. The store deletes it only if it has ended, and if no worker and no message can continue it. */
async function deleteEnded(runtime: Runtime, { runId }: RunHandle, verdict: Verdict): Promise<Verdict> {
  const deleted = await runtime.collect({ endedBefore: Number.MAX_SAFE_INTEGER, only: [runId] });
  return deleted > 0 ? verdict : { ...verdict, reason: "The run is in use, or it was resumed." };
}

function byReason(verdicts: readonly Verdict[]): Refusal[] {
  const groups = new Map<string, string[]>();
  for (const { runId, reason } of verdicts)
    if (reason !== null) groups.set(reason, [...(groups.get(reason) ?? []), runId]);
  return [...groups].map(([reason, runIds]) => ({ reason, runIds }));
}

function sumOf(verdicts: readonly Verdict[]): number | null {
  let sum = 0;
  for (const { leftUsd } of verdicts) {
    if (leftUsd === null) return null;
    sum += leftUsd;
  }
  return verdicts.length === 0 ? null : sum;
}
