import { createHash } from "node:crypto";
import { workflow } from "../assembly/workflow.ts";
import {
  checkMethods,
  describeValue,
  executionBudget,
  Fault,
  is,
  longestComment,
  longestScoreName,
  optionTable,
  type ExecutionBudget,
  type OptionKinds,
  type RunHandle,
  type RunId,
  type RunQuery,
  type Runtime,
  type WorkflowContext,
  type WorkflowResult,
} from "../kernel/index.ts";
import type { Score, Scorer, ScorerInput } from "./contract.ts";
import { runScorer } from "./run-scorer.ts";
import { agentsOf, isDurable, readScorers, type NamedScorer } from "./score.ts";
import { readStoredRun } from "./scored-run.ts";

/** Which ended runs are scored. */
export type ScoredRuns = Omit<
  RunQuery,
  "kind" | "sort" | "limit" | "after" | "endedAfter" | "endedBefore" | "score"
>;

/** Options of `scoreRuns()`. */
export interface ScoreRunsOptions {
  /** The runtime whose runs are scored. If it is a view, only the runs of its tenant and user are scored (S6). */
  readonly runtime: Runtime;
  /** The scorers of the runs. For them `expected` is `null`, because a real run has no expected answer. */
  readonly scorers: readonly Scorer[];
  /**
   * Fraction of the ended runs that is scored, above 0 and at most 1. The run id decides whether a run is in the
   * sample. Default: 1.
   */
  readonly sample?: number;
  /** Budget of all scorers together. If absent, there is no limit. */
  readonly budget?: Partial<ExecutionBudget>;
  /** Name of the run that scores, and the author of its scores. Default: `scoring`. */
  readonly name?: string;
  /** Filter for the scored runs. Default: the completed runs of agents. */
  readonly runs?: ScoredRuns;
  /** Number of runs that are scored at the same time. Default: 4. */
  readonly seats?: number;
  /** Time between two searches for runs that have ended. `null` means only one search. Default: 60_000. */
  readonly everyMs?: number | null;
}

/** The output of a run that searches once: a summary of its work. A run that searches repeatedly has no output. */
export interface ScoringOutput {
  /** Number of runs that were scored. */
  readonly runs: number;
  /** Number of scores that were given. */
  readonly scores: number;
  /** Number of times that a scorer failed or skipped a run. */
  readonly without: number;
}

/** The input of one history of the run, which processes one page of a search. */
interface ScoringInput extends ScoringOutput {
  /** `next` of the previous page. Absent on the first page of a search. */
  readonly after?: string;
  /** Start of the search range in epoch milliseconds: only runs that ended after this time are read. */
  readonly since: number;
  /** Time at which the search began. Absent before its first page. */
  readonly began?: number;
  /** Runs of the previous search that this search may find again. */
  readonly recent: readonly RunId[];
  /** Runs of this search that the next one may find again. */
  readonly seen: readonly RunId[];
}

/** What the scorers have done with one run. */
type ScoredBy = Pick<ScoringOutput, "scores" | "without">;

/** One page of ended runs. */
interface ScoringPage {
  readonly runIds: readonly RunId[];
  readonly next: string | null;
  readonly began: number;
  readonly seen: readonly RunId[];
}

const table = optionTable({
  runtime: is.any,
  scorers: is.any,
  sample: is.number({ above: 0, to: 1, default: 1 }),
  budget: is.checkedBy(executionBudget),
  name: is.text({ empty: false, default: "scoring" }),
  runs: is.any,
  seats: is.integer({ from: 1, to: 1_000, default: 4 }),
  everyMs: is.integer({ from: 1_000, or: [null, "one look"] }),
} satisfies OptionKinds<ScoreRunsOptions>);

const runsPerPage = 100;
/**
 * Overlap of two searches in milliseconds. Processes whose clocks differ by less than this cannot store an end that
 * a search misses.
 */
const overlapMs = 60_000;
const begin: ScoringInput = { since: 0, recent: [], seen: [], runs: 0, scores: 0, without: 0 };

/**
 * Scores a part of the ended runs in the background. The scoring itself is a run: it has one budget, is shown like
 * any other run, and after a crash another process continues it that has called `scoreRuns` with the same name. All
 * processes that call it share one scoring run, so that each scorer scores each run at most once. If a scorer
 * fails, it gives no score. Resolves with the scoring run; to end the scoring, cancel it.
 *
 * @example
 * ```ts
 * import { openRuntime } from "reeve";
 * import { scoreRuns } from "reeve/experiments";
 *
 * const runtime = await openRuntime({ store: "sqlite:./reeve.db" });
 * await scoreRuns({
 *   runtime,
 *   scorers: [function short({ output }) { return String(output).length < 500; }],
 *   sample: 0.1,
 *   budget: { maxCostUsd: 1 },
 * });
 * ```
 */
export async function scoreRuns(
  options: ScoreRunsOptions,
): Promise<RunHandle<WorkflowResult<ScoringOutput>>> {
  const {
    runtime,
    name,
    sample,
    budget,
    seats,
    runs = {},
    everyMs = 60_000,
  } = table.read("scoreRuns()", options);
  checkMethods(
    "runtime of scoreRuns()",
    runtime,
    ["start", "list", "find"],
    "pass the result of openRuntime()",
  );
  const scorers = readScorers("scoreRuns()", options.scorers);
  for (const scorer of scorers)
    if (scorer.name.length > longestScoreName)
      throw new Fault(
        "invalid_argument",
        `invalid name ${describeValue(scorer.name)} of a scorer of scoreRuns(): expected at most ${longestScoreName} characters`,
      );
  const scoring = new Scoring({
    runtime,
    name,
    scorers,
    hasBudget: budget !== undefined,
    sample,
    runs,
    seats,
    everyMs,
  });
  const run = workflow<never, ScoringOutput>(
    name,
    {
      description: `Scores ended runs by ${scorers.map((each) => each.name).join(", ")}`,
      agents: agentsOf(scorers),
      ...(budget !== undefined && { budget }),
      ...(seats > 12 && { spawnBudget: { maxAgents: 2 * seats + 2 } }),
    },
    (ctx, input) => scoring.run(ctx, (input ?? begin) as unknown as ScoringInput),
  );
  runtime.register(run);
  return runtime.start(run, null, { runId: await scoring.runId() });
}

interface ScoringOptions extends Required<
  Pick<ScoreRunsOptions, "runtime" | "name" | "sample" | "runs" | "seats" | "everyMs">
> {
  readonly scorers: readonly NamedScorer[];
  readonly hasBudget: boolean;
}

/** The work of the run that scores. */
class Scoring {
  readonly #options: ScoringOptions;

  constructor(options: ScoringOptions) {
    this.#options = options;
  }

  /**
   * Returns the id of the scoring run: the newest one, or the next one if the newest has ended. Processes that ask
   * at the same time get the same id, so that only one run starts.
   */
  async runId(): Promise<string> {
    const { runtime, name } = this.#options;
    const { runs } = await runtime.list({ agentName: name, kind: "workflow", limit: 1 });
    const [newest] = runs;
    const number = Number(/-(\d+)(?:--[\w-]{16})?$/u.exec(newest?.runId ?? "")?.[1] ?? 0);
    return `run_${name}-${newest === undefined || newest.endedAt !== null ? number + 1 : number}`;
  }

  /** Executes one history of the run: scores the runs of a page, or waits for the next search. */
  async run(ctx: WorkflowContext, input: ScoringInput): Promise<ScoringOutput> {
    const { seats, everyMs } = this.#options;
    const page = await ctx.step("page", () => this.#page(input));
    let { runs, scores, without } = input;
    // Lanes and not `ctx.map`, whose record would keep the end of a judge that a top-up has to call again.
    const count = Math.min(seats, page.runIds.length);
    const lanes = Array.from({ length: count }, (_, lane) => [
      `lane${lane}`,
      async (branch: WorkflowContext): Promise<readonly ScoredBy[]> => {
        const scored: ScoredBy[] = [];
        for (let index = lane; index < page.runIds.length; index += count)
          scored.push(await this.#scoreRun(page.runIds[index] as RunId, branch));
        return scored;
      },
    ]);
    const given = (await ctx.parallel(Object.fromEntries(lanes))) as Readonly<
      Record<string, readonly ScoredBy[]>
    >;
    for (const each of Object.values(given).flat()) {
      runs++;
      scores += each.scores;
      without += each.without;
    }
    const done: ScoringOutput = { runs, scores, without };
    ctx.publish("scored", done);
    const { next, began, seen } = page;
    if (next !== null) return ctx.continueAsNew({ ...input, ...done, after: next, began, seen });
    if (everyMs === null) return done;
    await ctx.sleep(everyMs);
    return ctx.continueAsNew({ ...done, since: began - overlapMs, recent: seen, seen: [] });
  }

  /** Reads a page of ended runs, and chooses the runs of the sample that were not examined before. */
  async #page({ after, since, began, recent, seen }: ScoringInput): Promise<ScoringPage> {
    const { runtime, runs, sample } = this.#options;
    const now = began ?? runtime.clock.now();
    const page = await runtime.list({
      status: "completed",
      ...runs,
      kind: "invocation",
      endedAfter: since,
      limit: runsPerPage,
      ...(after !== undefined && { after }),
    });
    const ended = page.runs.filter(({ runId, endedAt }) => endedAt !== null && isInSample(runId, sample));
    const known = new Set(recent);
    const again = ended.filter(({ endedAt }) => (endedAt ?? 0) > now - overlapMs);
    return {
      runIds: ended.map(({ runId }) => runId).filter((runId) => !known.has(runId)),
      next: page.next,
      began: now,
      seen: [...seen, ...again.map(({ runId }) => runId)],
    };
  }

  /**
   * Scores a run with each scorer that has not scored it yet. A run that was deleted or erased in the meantime is
   * left out.
   */
  async #scoreRun(runId: RunId, ctx: WorkflowContext): Promise<ScoredBy> {
    const { name, scorers, hasBudget } = this.#options;
    const open = await ctx.step("open", () => this.#unscored(runId));
    let [scores, without] = [0, 0];
    let read: Promise<ScorerInput> | undefined;
    const given = (): Promise<ScorerInput> => (read ??= this.#read(runId));
    for (const scorer of scorers) {
      if (!open.includes(scorer.name)) continue;
      const { score, reason } = await scoreBy(ctx, scorer, given, hasBudget);
      if (score === null) without++;
      else {
        const comment = reason === null ? null : reason.slice(0, longestComment).toWellFormed();
        await ctx.step(`store ${scorer.name}`, async () => {
          const run = await this.#options.runtime.find(runId);
          await run?.score({ name: scorer.name, value: score, comment, by: name });
          return null;
        });
        scores++;
      }
    }
    return { scores, without };
  }

  /**
   * Returns the names of the scorers that have not scored the run. Empty if the run was deleted, or its text was
   * erased.
   */
  async #unscored(runId: RunId): Promise<readonly string[]> {
    const { runtime, name, scorers } = this.#options;
    const run = await runtime.find(runId);
    if (run === undefined) return [];
    for await (const event of run.events({ types: ["run_start"], follow: false }))
      if ("seq" in event && event.erased === true) return [];
    const { scores = [] } = await run.summary();
    const given = new Set(scores.filter(({ by }) => by === name).map((score) => score.name));
    return scorers.map((scorer) => scorer.name).filter((each) => !given.has(each));
  }

  async #read(runId: RunId): Promise<ScorerInput> {
    const run = await this.#options.runtime.find(runId);
    if (run === undefined) throw new Fault("not_found", `run ${runId} was deleted before it was scored`);
    return { ...(await readStoredRun(run)), expected: null, caseId: runId, variant: run.agentId };
  }
}

/**
 * Returns the score of one scorer. If the scorer fails, the error is its result, unless the scoring run itself must
 * end.
 */
async function scoreBy(
  ctx: WorkflowContext,
  named: NamedScorer,
  given: () => Promise<ScorerInput>,
  hasBudget: boolean,
): Promise<Score> {
  if (isDurable(named.scorer)) return runScorer(named, await given(), { ctx });
  const body = async (): Promise<Score> => runScorer(named, await given(), { hasBudget });
  return ctx.step(`score ${named.name}`, body, { retry: false });
}

/** Whether a run is in the sample. A number calculated from its id must be below `share`. */
function isInSample(runId: RunId, share: number): boolean {
  const digest = createHash("sha256").update(runId).digest();
  return digest.readUIntBE(0, 6) / 2 ** 48 < share;
}
