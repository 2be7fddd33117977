import { Fault, parseRunId, type HostedAgent, type RunId, type Store } from "../../../../kernel/index.ts";
import {
  checkReplay,
  type CheckReplayOptions,
  type ReplayDifference,
  type ReplayReport,
} from "../../../../runtime/index.ts";
import { workflowsOfModule, workflowsOfWorkspace } from "../../../../workspace/workspace-workflows.ts";
import { openWorkspace } from "../../../../workspace/workspace.ts";
import { findRunId } from "../../setup/find-run.ts";
import { whereQuery } from "../../setup/run-filters.ts";
import { withStore, type StoreOptions } from "../../setup/stored-runs.ts";
import type { ExitKind } from "../../terminal/exit-code.ts";
import { positiveInteger } from "../../terminal/number-option.ts";
import type { Terminal } from "../../terminal/terminal.ts";

/** Options of `reeve check-replay`. */
export interface CheckReplayCommandOptions extends StoreOptions {
  /** Filters like those of `reeve ps --where`, or ids of runs. */
  readonly runs?: readonly string[];
  readonly limit: string;
  readonly profile?: string;
  readonly json?: boolean;
}

/** Maximum number of skipped tasks, and of uses, that are listed. */
const shownNotes = 10;

/**
 * Replays stored journals with the workflows of the given files, or of the workspace, and prints the first
 * difference of each task.
 */
export async function checkReplayCommand(
  files: readonly string[],
  options: CheckReplayCommandOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  const { store: address, runs: words = [], json = false } = options;
  const limit = positiveInteger("--limit", options.limit);
  const ids = words.filter(isRunId);
  if (ids.length > 0 && ids.length < words.length)
    throw new Fault(
      "invalid_argument",
      "invalid --runs: ids of runs and filters cannot be combined; use one of them",
    );
  const query = whereQuery(ids.length > 0 ? [] : words);
  return withStore(options, terminal, async (store): Promise<ExitKind> => {
    const workflows = await givenWorkflows(files, options);
    const chosen: CheckReplayOptions["runs"] =
      ids.length > 0 ? await idsOf(store, ids, address) : words.length > 0 ? query : undefined;
    let checked = 0;
    const report = await checkReplay({
      store,
      workflows,
      limit,
      ...(chosen !== undefined && { runs: chosen }),
      onRun: () => terminal.status?.(`${++checked} runs checked`),
    });
    terminal.status?.("");
    const { differences } = report;
    for (const difference of differences)
      await terminal.out(json ? JSON.stringify(difference) : lineOf(difference));
    sayNotes(report, limit, terminal);
    return differences.length === 0 ? "ok" : "tampered";
  });
}

async function givenWorkflows(
  files: readonly string[],
  { profile }: CheckReplayCommandOptions,
): Promise<readonly HostedAgent[]> {
  if (files.length > 0) return (await Promise.all(files.map(workflowsOfModule))).flat();
  await using workspace = await openWorkspace(profile === undefined ? {} : { profile });
  const found = await workflowsOfWorkspace(workspace);
  if (found.length > 0) return found;
  throw new Fault(
    "not_found",
    "the workspace has no workflow; name the files that export them, as in reeve check-replay workflows.ts",
  );
}

function isRunId(word: string): boolean {
  if (!word.startsWith("run_")) return false;
  parseRunId(word);
  return true;
}

async function idsOf(store: Store, words: readonly string[], address: string): Promise<readonly RunId[]> {
  const ids: RunId[] = [];
  for (const word of words) ids.push(await findRunId(store, word, address));
  return ids;
}

function lineOf({ runId, taskId, position, kind, message }: ReplayDifference): string {
  return `${runId}  ${taskId}  ${position}  ${kind}  ${message}`;
}

function sayNotes(
  { runs, steps, differences, skipped, uses, hasMore }: ReplayReport,
  limit: number,
  terminal: Terminal,
): void {
  const found = differences.length === 1 ? "1 difference" : `${differences.length} differences`;
  terminal.say(`${runs} runs with ${steps} recorded steps were replayed: ${found}.`);
  for (const { runId, taskId, reason } of skipped.slice(0, shownNotes))
    terminal.say(`Not replayed: ${runId} ${taskId}: ${reason}`);
  if (skipped.length > shownNotes)
    terminal.say(`${skipped.length - shownNotes} more tasks were not replayed.`);
  for (const { source, where } of uses.slice(0, shownNotes))
    terminal.say(
      `Outside a step, the code uses ${source} in ${where}; use ctx.now(), ctx.random() or ctx.uuid().`,
    );
  if (hasMore) terminal.say(`Only the newest ${limit} runs were checked; --limit checks more.`);
}
