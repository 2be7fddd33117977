import { allRuns, Fault, type RunHandle, type RunSummary, type Runtime } from "../../../kernel/index.ts";
import { hasScope, type Access } from "../../http/access/access.ts";
import type { FiguresOfRuns } from "../../http/figures/run-figures.ts";
import { reply, route } from "../../http/route.ts";
import { runFilter, runId as runIdSchema } from "../../http/schema/run-schemas.ts";
import {
  choice,
  integer,
  list,
  nullable,
  number,
  object,
  optional,
  text,
  type ValueOf,
} from "../../http/schema/schema.ts";
import { isStoppedAtLimit, lackOf, type TopUpName } from "../../view/top-up-offer.ts";
import { wantedRuns } from "./find-run.ts";

/** What many runs can be ordered at once. */
const orders = ["cancel", "resume", "delete"] as const;
type Order = (typeof orders)[number];

/** Maximum number of runs of one order. */
const mostRuns = 200;

const order = choice(orders, { description: "`delete` needs the scope admin." });
const filter = object(runFilter);
const refusals = list(
  object({
    reason: text({ description: "A sentence that holds for each of these runs." }),
    runIds: list(text()),
  }),
);

const previewed = {
  status: 200,
  description: "What the order would do now. Nothing was changed.",
  schema: object({
    runIds: list(text(), { description: "The runs that the order would change." }),
    refused: refusals,
    atMostUsd: nullable(
      number({
        description:
          "What resumed runs may still spend in all. null: one of them has no limit, or none would be resumed.",
      }),
    ),
  }),
};

const preview = route({
  id: "runs.orders.preview",
  method: "POST",
  path: "/api/run-orders/preview",
  summary:
    "Say what an order would do to each of up to 200 runs: the given ones, or those that fit a filter at this moment.",
  scope: "read",
  body: object({
    order,
    runIds: optional(list(runIdSchema)),
    filter: optional(filter),
  }),
  responses: [previewed],
  handle: async ({ runtime, access, body, server }) => {
    const runs = await chosenRuns(runtime, body);
    const verdicts = await Promise.all(
      runs.map((run) => judge(body.order, run, { runtime, access, figures: server.figures })),
    );
    const fitting = verdicts.filter(({ reason }) => reason === null);
    return reply(previewed, {
      runIds: fitting.map(({ runId }) => runId),
      refused: byReason(verdicts),
      atMostUsd: body.order === "resume" ? sumOf(fitting) : null,
    });
  },
});

const ordered = {
  status: 200,
  description: "What was ordered. The events of the runs show the effect.",
  schema: object({ runIds: list(text()), refused: refusals, count: integer() }),
};

const give = route({
  id: "runs.orders",
  method: "POST",
  path: "/api/run-orders",
  summary:
    "Cancel, resume or delete up to 200 runs, such as those of a preview. Each run is judged again; runs that do not fit any more are refused one by one. Repeating the request is harmless.",
  scope: "run",
  body: object({
    order,
    runIds: list(runIdSchema, { minItems: 1 }),
    reason: optional(text({ maxLength: 1_000, description: "With cancel." })),
  }),
  responses: [ordered],
  handle: async ({ runtime, access, body, server }) => {
    const runs = await chosenRuns(runtime, body);
    const verdicts: Verdict[] = [];
    for (const run of runs) {
      const verdict = await judge(body.order, run, { runtime, access, figures: server.figures });
      verdicts.push(verdict.reason === null ? await carryOut(body, verdict, { runtime, access }) : verdict);
    }
    const done = verdicts.filter(({ reason }) => reason === null).map(({ runId }) => runId);
    return reply(ordered, { runIds: done, refused: byReason(verdicts), count: done.length });
  },
});

interface Chosen {
  readonly runIds?: readonly string[];
  readonly filter?: ValueOf<typeof filter>;
}

/** A run that an order names. */
interface ChosenRun {
  readonly runId: string;
  /** `undefined` if there is no such run. */
  readonly run: RunSummary | undefined;
}

/** Returns the runs of an order. Throws `invalid_argument` if they are too many. */
async function chosenRuns(
  runtime: Runtime,
  { runIds, filter: wantedBy }: Chosen,
): Promise<readonly ChosenRun[]> {
  if ((runIds === undefined) === (wantedBy === undefined))
    throw new Fault("invalid_argument", "invalid order: expected either runIds or filter; use one of them");
  if (wantedBy !== undefined) {
    const query = wantedRuns(wantedBy);
    const count = await runtime.count(query);
    if (count > mostRuns) throw tooMany(count);
    const found: ChosenRun[] = [];
    for await (const run of allRuns(runtime, query)) found.push({ runId: run.runId, run });
    if (found.length > mostRuns) throw tooMany(found.length);
    return found;
  }
  const wanted = [...new Set(runIds)];
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
  /** Why the order does not fit the run. `null` if it fits. */
  readonly reason: string | null;
  /** What the run may still spend if it is resumed. `null` if it has no limit. */
  readonly leftUsd: number | null;
}

interface Judging {
  readonly runtime: Runtime;
  readonly access: Access;
  readonly figures: FiguresOfRuns;
}

async function judge(wanted: Order, { runId, run }: ChosenRun, judging: Judging): Promise<Verdict> {
  const refuse = (reason: string): Verdict => ({ runId, reason, leftUsd: null });
  if (run === undefined) return refuse("The run does not exist any more.");
  if (!hasScope(judging.access, wanted === "delete" ? "admin" : "run"))
    return refuse(`This token may not ${wanted} runs.`);
  const hasEnded = run.endedAt !== null;
  if (wanted === "cancel")
    return hasEnded ? refuse("The run has already ended.") : { runId, reason: null, leftUsd: null };
  if (wanted === "delete")
    return hasEnded
      ? { runId, reason: null, leftUsd: null }
      : refuse("The run has not ended. Cancel it first.");
  if (run.status === "completed") return refuse("The run has completed.");
  if (!hasEnded && run.status !== "paused") return refuse("The run is not stopped.");
  const known = await judging.figures.of(judging.runtime, runId);
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

interface Ordered {
  readonly order: Order;
  readonly reason?: string;
}

/** Carries the order out. A run that cannot take it any more is refused, and the others are not affected. */
async function carryOut(
  { order: wanted, reason }: Ordered,
  verdict: Verdict,
  { runtime, access }: Pick<Judging, "runtime" | "access">,
): Promise<Verdict> {
  const { runId } = verdict;
  try {
    const run = (await runtime.find(runId))?.as(access.userId ?? access.name);
    if (run === undefined) return { ...verdict, reason: "The run does not exist any more." };
    if (wanted === "delete") return await deleteEnded(runtime, run, verdict);
    await (wanted === "cancel" ? run.cancel(reason) : run.resume());
    return verdict;
  } catch (error) {
    if (!Fault.is(error) || error.code === "closed") throw error;
    return { ...verdict, reason: error.message };
  }
}

/** The store deletes the run only if it has ended, and no worker and no mail may continue it. */
async function deleteEnded(runtime: Runtime, { runId }: RunHandle, verdict: Verdict): Promise<Verdict> {
  const deleted = await runtime.collect({ endedBefore: Number.MAX_SAFE_INTEGER, only: [runId] });
  return deleted > 0 ? verdict : { ...verdict, reason: "The run is in use, or it was resumed." };
}

function byReason(verdicts: readonly Verdict[]): { reason: string; runIds: string[] }[] {
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

export const runOrderRoutes = [preview, give] as const;
