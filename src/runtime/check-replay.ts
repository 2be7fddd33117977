import {
  Fault,
  is,
  optionTable,
  parseRunId,
  unfinishedStatuses,
  type HostedAgent,
  type OptionKinds,
  type RunId,
  type RunQuery,
  type Store,
} from "../kernel/index.ts";
import { workerContext } from "./local-worker-context.ts";
import { openStore, type StoreAddress } from "./open-store.ts";
import { LiveContexts } from "./process/live-contexts.ts";
import { sha256 } from "./process/sha256.ts";
import { systemClock, systemEventLoop } from "./process/system-sources.ts";
import { checkRun, type CheckedRun, type SkippedTask } from "./run/replay-check.ts";
import type { ReplayDifference } from "./run/task-replay.ts";
import { watching, type SourceUse } from "./run/watched-sources.ts";
import { runtimeTable, type RuntimeOptions } from "./runtime-options.ts";
import { agentTree } from "./worker/agent-registry.ts";

/** Options of `checkReplay`. */
export interface CheckReplayOptions {
  /** The store with the runs: its address, or an open store, which is not closed. The store must exist. */
  readonly store: Store | StoreAddress;
  /** The workflows with their current code. The workflows that they list in `agents` are included. */
  readonly workflows: readonly HostedAgent[];
  /** The runs to check: a filter of `runtime.list()`, or ids. Default: the runs that have not ended. */
  readonly runs?: Omit<RunQuery, "limit" | "after"> | readonly string[];
  /** Maximum number of runs that are checked. The newest runs are checked first. Default: 1,000. */
  readonly limit?: number;
  /** Called after each run. */
  readonly onRun?: (run: CheckedRun) => void;
}

const table = optionTable({
  store: is.any,
  workflows: is.list(),
  runs: is.any,
  limit: is.integer({ from: 1, default: 1_000 }),
  onRun: is.callback(),
} satisfies OptionKinds<CheckReplayOptions>);

/** What `checkReplay` found. */
export interface ReplayReport {
  /** Number of runs of which at least one task was replayed. */
  readonly runs: number;
  /** Number of recorded steps that the replayed code requested. */
  readonly steps: number;
  /** The first difference of each task that differs. Empty if the code can continue every run. */
  readonly differences: readonly ReplayDifference[];
  /** The tasks that were not replayed, with the reason. */
  readonly skipped: readonly SkippedTask[];
  /** Uses of the machine's time and random numbers by workflow code outside the bodies of steps. */
  readonly uses: readonly SourceUse[];
  /** Whether more runs than `limit` match the filter. */
  readonly hasMore: boolean;
}

/**
 * Replays stored journals with the current code of their workflows, and returns where the two differ. It writes
 * nothing, and executes no body of a step, no model and no tool: the code of each workflow runs as far as its
 * journal goes. Each journal is replayed twice, with different times and random numbers, to find code that depends
 * on them.
 *
 * @example
 * ```ts
 * import { checkReplay, workflow } from "reeve/workflow";
 *
 * const order = workflow("order", async (ctx) => {
 *   await ctx.step("charge", () => "paid");
 * });
 *
 * const { differences } = await checkReplay({ store: "sqlite:./reeve.db", workflows: [order] });
 * for (const { runId, message } of differences) console.error(`${runId}: ${message}`);
 * ```
 */
export async function checkReplay(options: CheckReplayOptions): Promise<ReplayReport> {
  const { limit } = table.read("checkReplay()", options);
  const agents = workflowsIn(options.workflows);
  const { store: given, onRun } = options;
  const store = typeof given === "string" ? await openStore(given, { create: false }) : given;
  try {
    const defaults: RuntimeOptions = {};
    const checked = {
      ...runtimeTable.read("checkReplay()", defaults),
      clock: systemClock,
      eventLoop: systemEventLoop,
      hash: sha256,
    };
    const worker = workerContext(store, checked, {
      agents,
      contexts: new LiveContexts(),
      concurrency: 1,
      onError: () => undefined,
      extensionPort: () => {
        throw new Fault("unsupported", "a replay check has no extensions");
      },
    });
    const runs: CheckedRun[] = [];
    let hasMore = false;
    await watching(async () => {
      for await (const runId of chosenRuns(store, options.runs)) {
        hasMore = runs.length === limit;
        if (hasMore) return;
        const run = await checkRun(worker, runId);
        runs.push(run);
        onRun?.(run);
      }
    });
    return {
      runs: runs.filter(({ tasks }) => tasks > 0).length,
      steps: runs.reduce((sum, { steps }) => sum + steps, 0),
      differences: runs.flatMap(({ differences }) => differences),
      skipped: runs.flatMap(({ skipped }) => skipped),
      uses: distinct(runs.flatMap(({ uses }) => uses)),
      hasMore,
    };
  } finally {
    if (typeof given === "string") await store.close();
  }
}

/** The workflows and what they call, by id. */
function workflowsIn(workflows: readonly HostedAgent[]): ReadonlyMap<string, HostedAgent> {
  const found = new Map<string, HostedAgent>();
  for (const workflow of workflows) for (const [id, agent] of agentTree(workflow)) found.set(id, agent);
  return found;
}

/** Whether the option is a list of ids. `Array.isArray` does not narrow the type of a readonly list. */
function isList(runs: CheckReplayOptions["runs"]): runs is readonly string[] {
  return Array.isArray(runs);
}

async function* chosenRuns(
  { journal }: Store,
  runs: CheckReplayOptions["runs"] = { status: unfinishedStatuses },
): AsyncIterable<RunId> {
  if (isList(runs)) {
    for (const id of runs) yield parseRunId(id);
    return;
  }
  let after: string | null = null;
  do {
    const page = await journal.list({ ...runs, limit: 500, ...(after !== null && { after }) });
    for (const { runId } of page.runs) yield runId;
    after = page.next;
  } while (after !== null);
}

function distinct(uses: readonly SourceUse[]): readonly SourceUse[] {
  const byText = new Map(uses.map((use) => [`${use.source} ${use.where}`, use]));
  return [...byText.values()];
}
