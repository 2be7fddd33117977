import { randomUUID } from "node:crypto";
import type { Experiment, ExperimentInput } from "../../../../experiments/index.ts";
import {
  Fault,
  formatRunId,
  type Failure,
  type JsonValue,
  type RunHandle,
  type RunId,
  type Runtime,
  type RunSummaryStatus,
  type Store,
} from "../../../../kernel/index.ts";
import { hasOrders, obeyedOrders } from "../../../http/obeyed-orders.ts";
import { isStoppedAtLimit, lackOf } from "../../../view/top-up-offer.ts";
import { findRunId } from "../../setup/find-run.ts";

/** An experiment that the command runs, with the file that exports it. */
export interface ChosenExperiment {
  readonly file: string;
  readonly experiment: Experiment;
  /** Called with the id of the run before this process executes it. */
  readonly onRun?: (runId: RunId) => void;
}

/** Statuses of runs that are executed or wait, according to the store. */
const unfinished: readonly RunSummaryStatus[] = ["pending", "running", "waiting"];

/**
 * Starts a run of an experiment. This process executes only this run. Otherwise it would also continue an
 * interrupted run of the same experiment, which costs money without the person noticing.
 */
export async function startedRun(
  runtime: Runtime,
  { experiment, onRun }: ChosenExperiment,
  input: ExperimentInput,
  maxCostUsd: number | undefined,
): Promise<RunHandle> {
  const runId = formatRunId(randomUUID());
  onRun?.(runId);
  hostOnly(runtime, experiment, runId);
  const { budget, spawnBudget, name } = experiment;
  // Each trial may need seats for an agent below its own, and for a judge.
  const { seats = 0 } = input;
  const started = await runtime.start(name, experiment.readInput(input as JsonValue), {
    runId,
    budget: { ...budget, ...(maxCostUsd !== undefined && { maxCostUsd }) },
    spawnBudget: { ...spawnBudget, ...(seats > 12 && { maxAgents: 4 * seats + 2 }) },
  });
  return requireRun(runtime, started.runId);
}

/**
 * Continues the run with this id, or the newest run of the experiment that has not completed. `addUsd` is added to
 * its budget.
 */
export async function resumedRun(
  runtime: Runtime,
  { store, address }: { readonly store: Store; readonly address: string },
  { experiment, file, onRun }: ChosenExperiment,
  id: string | undefined,
  addUsd: number | undefined,
): Promise<RunHandle> {
  const runId =
    id === undefined ? await newestUnfinished(store, experiment, file) : await findRunId(store, id, address);
  const run = await requireRun(runtime, runId);
  if (run.agentId !== experiment.id)
    throw new Fault(
      "invalid_argument",
      `${runId} is no run of experiment ${experiment.name}, but of ${run.agentId}; name the file that exports its experiment`,
    );
  const { status } = await run.summary();
  if (status === "completed" || status === "cancelled") return run;
  const isOrdered = await hasOrders(store, runId);
  if (isStoppedAtLimit(status) && addUsd === undefined && !isOrdered) {
    const missing = missingBudget(runId, status, (await run.result()).error);
    if (missing !== undefined)
      throw new Fault("invalid_argument", `${runId} has stopped at its budget: --resume ${runId} ${missing}`);
  }
  onRun?.(runId);
  hostOnly(runtime, experiment, runId);
  if (addUsd !== undefined) await run.topUp({ maxCostUsd: addUsd });
  // A top-up of money resumes a run that has stopped at its budget.
  const isResumed = isOrdered || (addUsd !== undefined && status === "budget_exhausted");
  if (!unfinished.includes(status) && !isResumed) await run.resume();
  // Until then the log ends with the last end of the run.
  await obeyedOrders(store, runId);
  return run;
}

/**
 * Returns what a run that has stopped at a limit needs, as the end of a sentence about `--resume`. `undefined` if
 * the run continues by a resumption alone, because it has stopped for another reason, or at the cap of a day or of
 * a user.
 */
export function missingBudget(
  runId: string,
  status: RunSummaryStatus,
  failure: Failure | null,
): string | undefined {
  const lack = lackOf({ status, failure, budget: null });
  if (lack === null) return undefined;
  if (lack.name === "maxCostUsd") return "--max-cost USD adds to its budget and continues it";
  const [option, what] = otherLimits[lack.name];
  return `continues it after reeve top-up ${runId} ${option} N, which adds ${what} to its budget`;
}

const otherLimits = {
  maxTurns: ["--turns", "model calls"],
  maxTokens: ["--tokens", "tokens"],
  deadlineMs: ["--seconds", "time"],
} as const;

function hostOnly(runtime: Runtime, experiment: Experiment, runId: RunId): void {
  runtime.register({
    name: experiment.name,
    resolve: (record) => (record.runId === runId ? experiment : undefined),
  });
}

async function newestUnfinished({ journal }: Store, { name }: Experiment, file: string): Promise<RunId> {
  const done: readonly RunSummaryStatus[] = ["completed", "cancelled"];
  let after: string | null = null;
  do {
    const page = { agentName: name, kind: "workflow", limit: 100 } as const;
    const { runs, next } = await journal.list({ ...page, ...(after !== null && { after }) });
    const found = runs.find(({ status }) => !done.includes(status));
    if (found !== undefined) return found.runId;
    after = next;
  } while (after !== null);
  throw new Fault(
    "not_found",
    `no run of experiment ${name} can be continued: all have completed; start one with reeve eval ${file}`,
  );
}

async function requireRun(runtime: Runtime, runId: RunId): Promise<RunHandle> {
  const run = await runtime.find(runId);
  if (run === undefined) throw new Fault("not_found", `run ${runId} not found in this store`);
  return run;
}
