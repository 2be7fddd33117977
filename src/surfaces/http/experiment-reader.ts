import {
  headName,
  readTrials,
  reportOf,
  type ExperimentReport,
  type ExperimentResult,
  type TrialResult,
} from "../../experiments/index.ts";
import { rootTaskId, type JsonValue, type RunHandle, type RunSummary } from "../../kernel/index.ts";
import { RecentValues } from "./recent-values.ts";

/** The data that an experiment publishes about itself before its first trial. */
type Head = Pick<ExperimentResult, "name" | "variants" | "scorers" | "trials" | "expectedTrials" | "gates">;

/**
 * Number of events after which a run is treated as no experiment, if none of these events contains the head of an
 * experiment.
 */
const mostEvents = 20;

/** A value that was read from a run when its summary had this time. */
interface Known<Value> {
  readonly updatedAt: number;
  readonly value: Value;
}

/** An experiment in numbers. */
export type ExperimentCounts = Pick<
  ExperimentResult,
  "name" | "variants" | "scorers" | "trials" | "expectedTrials"
> & { readonly endedTrials: number; readonly cases: number };

/** An experiment as lists show it, with the state of its gates. */
export interface ExperimentState extends ExperimentCounts {
  /** Whether all gates are fulfilled. `null` if the experiment has no gates, or trials are missing. */
  readonly isPassed: boolean | null;
  readonly reasons: readonly string[];
  /** The lowest mean of a scorer. */
  readonly lowest: { readonly scorer: string; readonly variant: string; readonly mean: number } | null;
}

/**
 * Reads experiments from their runs for lists and pages. Keeps the data of the newest experiments in memory,
 * without outputs.
 */
export class ExperimentReader {
  readonly #heads = new RecentValues<string, Head | null>(1_000);
  /** The last results. Only a few are kept, because results may have thousands of trials; states are small. */
  readonly #results = new RecentValues<string, Known<ExperimentResult>>(8);
  readonly #states = new RecentValues<string, Known<ExperimentState>>(1_000);

  /**
   * Returns the published head of the run's experiment. `undefined` if the run is no experiment, or the experiment
   * has not begun.
   */
  async head(run: RunHandle): Promise<Head | undefined> {
    const known = this.#heads.get(run.runId);
    if (known !== undefined) return known ?? undefined;
    let count = 0;
    for await (const event of run.events({ follow: false })) {
      if (event.type === "value_published" && event.data.name === headName) {
        const head = event.data.value as unknown as Head | null;
        // The text of the run was erased.
        if (head === null) break;
        this.#heads.set(run.runId, head);
        return head;
      }
      if (++count > mostEvents) {
        this.#heads.set(run.runId, null);
        break;
      }
    }
    return undefined;
  }

  /** Returns the results without outputs. Takes O(events of the run), or no time if the run has not changed. */
  async result(run: RunHandle, head: Head, summary: RunSummary): Promise<ExperimentResult> {
    const known = this.#results.get(run.runId);
    const { updatedAt, status, costUsd } = summary;
    // A run that works commits without a change of its summary.
    if (known?.updatedAt === updatedAt && summary.endedAt !== null) return known.value;
    const results: TrialResult[] = [];
    for await (const { expected: _expected, ...trial } of readTrials(run))
      results.push({ ...trial, output: null });
    const result = { ...head, runId: run.runId, status, results, costUsd };
    this.#results.set(run.runId, { updatedAt, value: result });
    return result;
  }

  /** Returns the experiment as a list shows it. Takes the same time as `result`. */
  async listed(run: RunHandle, head: Head, summary: RunSummary): Promise<ExperimentState> {
    const { updatedAt, endedAt } = summary;
    const known = this.#states.get(run.runId);
    if (known?.updatedAt === updatedAt && endedAt !== null) return known.value;
    const value = stateOf(await this.result(run, head, summary));
    this.#states.set(run.runId, { updatedAt, value });
    return value;
  }
}

/**
 * Returns a report without its results. If there is no baseline, gates that compare with a baseline are also left
 * out.
 */
export function storedReport(
  result: ExperimentResult,
  baseline?: ExperimentResult,
): Omit<ExperimentReport, "result"> {
  const gates = Object.entries(result.gates).flatMap(([scorer, { mean, maxDrop }]) => {
    const kept = {
      ...(mean !== undefined && { mean }),
      ...(maxDrop !== undefined && baseline !== undefined && { maxDrop }),
    };
    return Object.keys(kept).length === 0 ? [] : [[scorer, kept] as const];
  });
  const { result: _result, ...report } = reportOf(
    { ...result, gates: Object.fromEntries(gates) },
    baseline && { name: baseline.runId, result: baseline },
  );
  return report;
}

/** The results of one variant for one case, over all of its trials. */
interface CaseCell {
  readonly variant: string;
  readonly trials: number;
  /** Number of trials in which the agent gave no answer. */
  readonly unanswered: number;
  /** Cost in dollars. `null` if the cost of a trial is unknown. */
  readonly costUsd: number | null;
  readonly durationMs: number;
  /** Mean score of each scorer. `null` if no trial was scored. */
  readonly scores: { readonly [scorer: string]: number | null };
}

/** A case with what each variant did. */
export interface CaseRow {
  readonly caseId: string;
  readonly cells: readonly CaseCell[];
}

/**
 * Returns the cases of an experiment with the results of each variant, in the order in which the first trial of
 * each case ended.
 */
export function caseRows({
  results,
  scorers,
}: Pick<ExperimentResult, "results" | "scorers">): readonly CaseRow[] {
  const byCase = Map.groupBy(results, ({ caseId }) => caseId);
  return [...byCase].map(([caseId, trials]) => {
    const byVariant = Map.groupBy(trials, ({ variant }) => variant);
    const cells = [...byVariant].map(([variant, own]): CaseCell => {
      const scores = scorers.map((scorer): [string, number | null] => {
        const given = own.flatMap((trial) => trial.scores[scorer]?.score ?? []);
        return [scorer, given.length === 0 ? null : sum(given) / given.length];
      });
      return {
        variant,
        trials: own.length,
        unanswered: own.filter(({ status }) => status !== "completed").length,
        costUsd: own.some(({ costUsd }) => costUsd === null)
          ? null
          : sum(own.map(({ costUsd }) => costUsd ?? 0)) / own.length,
        durationMs: sum(own.map(({ durationMs }) => durationMs)) / own.length,
        scores: Object.fromEntries(scores),
      };
    });
    return { caseId, cells };
  });
}

function sum(values: readonly number[]): number {
  return values.reduce((all, each) => all + each, 0);
}

const storedRun = /^run_[\w-]{1,64}$/u;

/** How often a tool was called. */
interface ToolCount {
  readonly tool: string;
  readonly calls: number;
}

/**
 * A trial with the tools that it called, in the order of their first calls. `tools` is `null` if the run that
 * answered was deleted.
 */
export type CaseTrial = TrialResult & { readonly tools: readonly ToolCount[] | null };

/**
 * Returns the trials of one case with their outputs and tools. `find` finds the run of a trial that was executed as
 * a separate run.
 */
export async function trialsOf(
  run: RunHandle,
  caseId: string,
  find: (runId: string) => Promise<RunHandle | undefined>,
): Promise<readonly CaseTrial[]> {
  const found: TrialResult[] = [];
  for await (const trial of readTrials(run)) if (trial.caseId === caseId) found.push(trial);
  const own = await toolsByTask(run);
  return Promise.all(
    found.map(async (trial) => {
      const { taskId, runId = caseId } = trial;
      if (taskId !== null) return { ...trial, tools: own.get(taskId) ?? [] };
      // A trial without a task is a fork or a stored run, whose id is that of the case, or had no seat.
      const answered = storedRun.test(runId) ? await find(runId) : undefined;
      const tools = answered === undefined ? null : ((await toolsByTask(answered)).get(rootTaskId) ?? []);
      return { ...trial, tools };
    }),
  );
}

async function toolsByTask(run: RunHandle): Promise<ReadonlyMap<string, readonly ToolCount[]>> {
  const found = new Map<string, Map<string, number>>();
  for await (const event of run.events({ types: ["tool_execution_start"], follow: false })) {
    if (event.type !== "tool_execution_start") continue;
    const counts = found.get(event.taskId) ?? new Map<string, number>();
    found.set(event.taskId, counts);
    counts.set(event.data.toolName, (counts.get(event.data.toolName) ?? 0) + 1);
  }
  return new Map(
    Array.from(found, ([taskId, counts]) => [
      taskId,
      Array.from(counts, ([tool, calls]) => ({ tool, calls })),
    ]),
  );
}

/** Returns the input of a trial's agent from the log. `null` if the log does not contain it. */
export async function inputOfTrial(run: RunHandle, taskId: string | null): Promise<JsonValue> {
  if (taskId === null) return null;
  for await (const event of run.events({ types: ["agent_start"], follow: false }))
    if (event.type === "agent_start" && event.taskId === taskId) return event.data.input;
  return null;
}

/** The numbers of an experiment. */
export function countsOf(result: ExperimentResult): ExperimentCounts {
  const { name, variants, scorers, trials, expectedTrials, results } = result;
  const cases = new Set(results.map(({ caseId }) => caseId)).size;
  return { name, variants, scorers, trials, expectedTrials, endedTrials: results.length, cases };
}

function stateOf(result: ExperimentResult): ExperimentState {
  const { gates, rows, missing } = storedReport(result);
  const means = rows.flatMap(({ scorer, variant, estimate }) =>
    estimate === null ? [] : [{ scorer, variant, mean: estimate.mean }],
  );
  const [lowest = null] = means.toSorted((one, other) => one.mean - other.mean);
  const reasons = gates.filter(({ isPassed }) => !isPassed).map(({ text: reason }) => reason);
  const isOpen = gates.length === 0 || missing > 0;
  return { ...countsOf(result), isPassed: isOpen ? null : reasons.length === 0, reasons, lowest };
}
