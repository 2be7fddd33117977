import { sha256Hex } from "../runtime/index.ts";
import {
  agentNameOf,
  allRuns,
  canonicalJson,
  describeValue,
  Fault,
  is,
  optionTable,
  reviveFault,
  rootTaskId,
  runStatuses,
  type Event,
  type ForkOptions,
  type OptionKinds,
  type RunHandle,
  type RunQuery,
  type RunStatus,
  type Runtime,
  type TaskId,
} from "../kernel/index.ts";
import type { GivenCase } from "./cases.ts";
import type { ScoredRun } from "./contract.ts";
import { ForkBudget, type ForkBudgetOptions, type KnownFork } from "./fork-budget.ts";
import { readStoredRun, type StoredAnswer } from "./scored-run.ts";

/** What a fork changes in a stored run. */
export interface ForkVariant {
  /** Name of the model, `provider/id`, that replaces the main model of the agent. */
  readonly model?: string;
  /** Text that replaces all instructions of the agent. */
  readonly instructions?: string;
  /** Names of the tools that stay. */
  readonly tools?: readonly string[];
}

/**
 * The place where the forks begin: the sequence number of an event, the first or last model call of the root agent,
 * or the first model call of a role, of an agent, or with a call of a tool of this name.
 */
export type ForkStart = number | "first-model-call" | "last-turn" | (string & Record<never, never>);

/** Options of `runs()`. */
export interface StoredRunsOptions {
  /** The runtime that contains the runs and executes the forks. */
  readonly runtime: Runtime;
  /**
   * The runs: their ids, or a filter as for `runtime.list`. If the filter has no status, it selects completed runs.
   */
  readonly runs: readonly string[] | Omit<RunQuery, "sort" | "limit" | "after">;
  /**
   * The place where the forks begin. Everything before it is shared and costs nothing. Default: `first-model-call`.
   */
  readonly at?: ForkStart;
  /** The changes that are compared, by name. */
  readonly forks: { readonly [variant: string]: ForkVariant };
  /** Maximum number of runs. The newest runs are used. Default: 100. */
  readonly limit?: number;
}

/** Prefix of the ids of forks that experiments have made. */
const forkPrefix = "run_fork-";
/** Name of the variant that is the stored run itself. */
const storedVariant = "stored";

const changeTable = optionTable({
  model: is.text({ empty: false }),
  instructions: is.text(),
  tools: is.list({ of: is.text({ empty: false }) }),
} satisfies OptionKinds<ForkVariant>);

const table = optionTable({
  runtime: is.any,
  runs: is.any,
  at: is.any,
  forks: is.named("changes", 'forks: { cheap: { model: "openai/gpt-5-mini" } }'),
  limit: is.integer({ from: 1, default: 100 }),
} satisfies OptionKinds<StoredRunsOptions>);

/** The result of a stored run or of a fork, and its actions since the cut. */
export interface ForkedAnswer extends Pick<StoredAnswer, "output"> {
  readonly runId: ScoredRun["runId"];
  readonly status: RunStatus;
  readonly error: string | null;
}

/** Stored runs as the cases of an experiment, and changes of these runs as its variants. Create it with `runs()`. */
export class StoredRuns {
  readonly variants: readonly string[];
  readonly #options: StoredRunsOptions;
  readonly #limit: number;
  readonly #ended = new Map<string, KnownFork>();

  constructor(options: StoredRunsOptions) {
    const { limit, at } = table.read("runs()", options);
    this.#limit = limit;
    this.#options = options;
    if (at !== undefined && typeof at !== "string" && !(Number.isSafeInteger(at) && at >= 0))
      throw new Fault(
        "invalid_argument",
        `invalid at ${describeValue(at)} of runs(): expected the number of an event, "first-model-call", "last-turn", or the name of a role, an agent or a tool`,
      );
    const forks = Object.entries(options.forks ?? {});
    for (const [name, change] of forks) checkChange(name, change);
    if (forks.length === 0)
      throw new Fault(
        "invalid_argument",
        "invalid forks of runs(): expected at least one change with a name; use forks: { cheap: { model } }",
      );
    this.variants = [storedVariant, ...forks.map(([name]) => name)];
  }

  /** Returns the ids of the runs that exist when an experiment begins. Forks that experiments made are left out. */
  async runIds(agentId: string): Promise<readonly string[]> {
    const { runtime, runs: chosen } = this.#options;
    if (isList(chosen)) return chosen;
    const found: string[] = [];
    for await (const { runId } of allRuns(runtime, { agentId, status: "completed", ...chosen })) {
      if (isForkId(runId)) continue;
      found.push(runId);
      if (found.length === this.#limit) break;
    }
    if (found.length > 0) return found;
    throw new Fault(
      "not_found",
      `no run of ${agentId} fits the filter of runs(); without a status it selects completed runs`,
    );
  }

  /** Returns the runs as cases: their inputs, and their outputs as expected values. */
  async cases(agentId: string, runIds: readonly string[]): Promise<readonly GivenCase[]> {
    const cases: GivenCase[] = [];
    for (const runId of runIds) {
      const run = await this.#find(runId);
      const { status, agentId: own } = await run.summary();
      if (own !== agentId)
        throw new Fault(
          "invalid_argument",
          `run ${runId} is a run of ${own}, and the agent of the experiment is ${agentId}: choose runs of one agent`,
        );
      if (!runStatuses.some((each) => each === status))
        throw new Fault(
          "invalid_argument",
          `run ${runId} has not ended (${status}): fork it when it has ended`,
        );
      const { input, output } = await readStoredRun(run);
      cases.push({ id: runId, input, expected: output });
    }
    return cases;
  }

  /** The changes and their place, as JSON. A run of the experiment can only be continued with the same changes. */
  get signature(): string {
    const { at = "first-model-call", forks } = this.#options;
    return canonicalJson({ at, forks });
  }

  /** Returns the budget that the forks of one run of an experiment share. */
  budget({ account, parts, hasJudges, trials }: SharedBudget): ForkBudget {
    const known = async (): Promise<ReadonlyMap<string, KnownFork>> => {
      const found = new Map<string, KnownFork>();
      for (const trial of trials()) {
        const id = forkIdOf(trial);
        const fork = this.#ended.get(id) ?? (await this.#known(id));
        if (fork !== undefined) found.set(id, fork);
      }
      return found;
    };
    return new ForkBudget({ account, parts, hasJudges, known });
  }

  /**
   * Creates the fork of a run and returns its id. For the variant `stored`, returns the id of the run itself.
   * Another call for the same trial returns the same fork.
   */
  async fork(trial: ForkedTrial, budget: ForkBudget): Promise<string> {
    const { origin, variant } = trial;
    if (isStored(variant)) return origin;
    const runId = forkIdOf(trial);
    if ((await this.#options.runtime.find(runId)) !== undefined) return runId;
    const run = await this.#find(origin);
    const { taskId, ...cut } = await this.#cutOf(run);
    const limits = await budget.take(runId, trialKey(trial));
    const fork = await run.as("experiment").fork({
      ...cut,
      ...this.#options.forks[variant],
      ...(taskId !== rootTaskId && { taskId }),
      ...(Object.keys(limits).length > 0 && { budget: limits }),
      runId,
    });
    return fork.runId;
  }

  /**
   * Waits until a fork has ended. A fork that has used up its part of the budget receives the rest of the budget,
   * and the amounts that other forks return. Throws `budget_exhausted` if nothing is left, or if a cap of a day or
   * of a user has stopped the fork.
   */
  async answer(trial: ForkedTrial, runId: string, budget: ForkBudget): Promise<ForkedAnswer> {
    const run = await this.#find(runId);
    let isStopped = !isStored(trial.variant) && (await run.summary()).endedAt !== null;
    for (;;) {
      const { status, output, error } = await run.result();
      const own = isStored(trial.variant) ? undefined : await this.#known(runId);
      const lack = own && budget.lackOf(runId, own.caps, error);
      if (own !== undefined && lack === undefined) await budget.end(runId, own.spent);
      if (own !== undefined && error?.details?.["cap"] !== undefined) {
        // A resumption of the experiment tries again what the cap has stopped.
        if (!isStopped) throw reviveFault(error);
        isStopped = false;
        await run.resume();
      } else if (lack === undefined)
        return {
          runId: run.runId,
          status,
          output,
          error: status === "completed" ? null : (error?.message ?? `the run ended as ${status}`),
        };
      else await run.as("experiment").topUp(await budget.take(runId, trialKey(trial), lack));
    }
  }

  /** Cancels the fork of a trial if it exists and has not ended. A stored run is not changed. */
  async cancel(trial: ForkedTrial, reason: string): Promise<null> {
    if (isStored(trial.variant)) return null;
    const run = await this.#options.runtime.find(forkIdOf(trial));
    await run?.as("experiment").cancel(reason);
    return null;
  }

  /** Returns the limits of a fork and its spent amounts. `undefined` if the fork does not exist. */
  async #known(runId: string): Promise<KnownFork | undefined> {
    const run = await this.#options.runtime.find(runId);
    if (run === undefined) return undefined;
    const { ledger, status } = await run.snapshot();
    const account = ledger.accounts[rootTaskId];
    if (account === undefined) return undefined;
    const hasEnded = runStatuses.some((each) => each === status);
    const known = { caps: account.caps, spent: account.spent, hasEnded };
    // A fork that has stopped at its part may continue.
    if (hasEnded && status !== "budget_exhausted") this.#ended.set(runId, known);
    return known;
  }

  /**
   * Returns the work of a run or its fork for scorers. Costs, turns and time are counted after the cut, because
   * everything before it was not paid again.
   */
  async scored(origin: string, runId: string): Promise<ScoredRun> {
    const run = await this.#find(runId);
    const from = origin === runId ? (await this.#cutOf(run)).at : await forkSeq(run);
    const [{ run: whole }, { run: later }] = [await readStoredRun(run), await readStoredRun(run, from)];
    const { costUsd, tokens, turns, durationMs } = later;
    return { ...whole, costUsd, tokens, turns, durationMs };
  }

  async #find(runId: string): Promise<RunHandle> {
    const run = await this.#options.runtime.find(runId);
    if (run !== undefined) return run;
    throw new Fault(
      "not_found",
      `run ${runId} not found in the runtime of runs(): it was deleted, or is in another store`,
    );
  }

  async #cutOf(run: RunHandle): Promise<Cut> {
    const { at = "first-model-call" } = this.#options;
    const starts: Event<"message_start">[] = [];
    const tools = new Map<string, number>();
    for await (const event of run.events({
      types: ["message_start", "tool_execution_start"],
      follow: false,
    })) {
      if (
        event.type === "message_start" &&
        event.data.role === "assistant" &&
        event.data.source === undefined
      )
        starts.push(event);
      if (event.type !== "tool_execution_start" || tools.has(event.data.toolName)) continue;
      const call = starts.findLast(({ taskId }) => taskId === (event as Event).taskId);
      if (call !== undefined) tools.set(event.data.toolName, call.seq);
    }
    if (typeof at === "number") {
      const call = starts.find(({ seq }) => seq === at);
      return call === undefined ? { at, taskId: rootTaskId } : cutBefore(call);
    }
    const own = starts.filter(({ taskId }) => taskId === rootTaskId);
    const calls = own.length > 0 ? own : starts;
    const found =
      at === "first-model-call"
        ? calls[0]
        : at === "last-turn"
          ? calls.at(-1)
          : starts.find((call) => isNamed(call, at) || call.seq === tools.get(at));
    if (found !== undefined) return cutBefore(found);
    const names = new Set(
      starts.flatMap((call) => [call.data.modelRole ?? "main", agentNameOf(call.agentId)]),
    );
    throw new Fault(
      "invalid_argument",
      starts.length === 0
        ? `run ${run.runId} has made no model call: use the number of an event as at`
        : `run ${run.runId} has no step ${JSON.stringify(at)}: expected the number of an event, first-model-call, last-turn, or one of ${[...names, ...tools.keys()].join(", ")}`,
    );
  }
}

/**
 * Stored runs as cases of an experiment: each run is compared with forks of it that change its model, its
 * instructions or its tools. A fork shares everything before the cut, so that only the new part is paid.
 */
export function runs(options: StoredRunsOptions): StoredRuns {
  return new StoredRuns(options);
}

/** One trial of a stored run with a change. */
export interface ForkedTrial {
  readonly experimentRun: string;
  /** Id of the stored run. */
  readonly origin: string;
  readonly variant: string;
  /** Number of the trial, from 1. */
  readonly number: number;
}

/** The values of an experiment's run that `budget` needs. */
interface SharedBudget extends Omit<ForkBudgetOptions, "known"> {
  /** The trials that are forks. */
  readonly trials: () => Iterable<ForkedTrial>;
}

/**
 * Returns the id of a fork. It is derived from the trial, so that a step that is repeated after a crash finds the
 * existing fork.
 */
function forkIdOf({ experimentRun, origin, variant, number }: ForkedTrial): string {
  const digest = sha256Hex(JSON.stringify([experimentRun, origin, variant, number]));
  return `${forksOf(experimentRun)}${digest.slice(0, 24)}`;
}

function forksOf(experimentRun: string): string {
  return `${forkPrefix}${sha256Hex(experimentRun).slice(0, 12)}-`;
}

/** Whether a run is a fork made by this run of an experiment. */
export function isForkOf(runId: string, experimentRun: string): boolean {
  return runId.startsWith(forksOf(experimentRun));
}

/** Returns a name for a trial that is unique within a run of an experiment. */
export function trialKey({ origin, variant, number }: Omit<ForkedTrial, "experimentRun">): string {
  return JSON.stringify([origin, variant, number]);
}

interface Cut extends Pick<ForkOptions, "at" | "keepsCommit"> {
  /** The task that is changed. */
  readonly taskId: TaskId;
}

/**
 * Returns the same cut as the page's "Run again with changes": the results before the call are kept, and the call
 * is repeated.
 */
function cutBefore({ seq, taskId }: Event<"message_start">): Cut {
  return { at: seq, keepsCommit: true, taskId };
}

/** Whether a run is a fork made by an experiment. */
function isForkId(runId: string): boolean {
  return runId.startsWith(forkPrefix);
}

/** Whether a variant is the stored run itself. */
export function isStored(variant: string): boolean {
  return variant === storedVariant;
}

function isNamed({ agentId, data: { modelRole = "main" } }: Event<"message_start">, name: string): boolean {
  return modelRole === name || agentNameOf(agentId) === name;
}

function checkChange(name: string, change: ForkVariant): void {
  const owner = `fork ${name} of runs()`;
  const read = changeTable.read(owner, change);
  if (isStored(name))
    throw new Fault(
      "invalid_argument",
      `invalid name of ${owner}: ${storedVariant} is the run itself; use another name`,
    );
  if (Object.values(read).every((value) => value === undefined))
    throw new Fault("invalid_argument", `${owner} changes nothing: use model, instructions or tools`);
}

/** The event with which a fork begins. */
async function forkSeq(run: RunHandle): Promise<number> {
  for await (const event of run.events({ types: ["run_fork"], follow: false }))
    if ("seq" in event && event.seq !== null) return event.seq;
  return 0;
}

/** Whether the runs are given as a list. `Array.isArray` does not narrow a readonly list. */
function isList(given: StoredRunsOptions["runs"]): given is readonly string[] {
  return Array.isArray(given);
}
