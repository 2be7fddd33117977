import {
  checkChoice,
  runSummaryStatuses,
  unfinishedStatuses,
  type RunSummary,
  type RunSummaryStatus,
} from "../../../../kernel/index.ts";
import type { ExitKind } from "../../terminal/exit-code.ts";
import { columns, duration } from "../../terminal/format.ts";
import { positiveInteger } from "../../terminal/number-option.ts";
import { withStore, type StoreOptions } from "../../setup/stored-runs.ts";
import { printable, type Terminal } from "../../terminal/terminal.ts";
import { eachRun } from "../../setup/find-run.ts";

export interface ListRunsOptions extends StoreOptions {
  readonly all?: boolean;
  readonly status?: string;
  readonly limit: string;
  readonly json?: boolean;
}

/** Prints the runs of a store, newest first: those that have not ended, or all. */
export function printRuns(options: ListRunsOptions, terminal: Terminal): Promise<ExitKind> {
  const { all = false, status, json = false } = options;
  checkChoice("reeve ps", "--status", status, runSummaryStatuses);
  const limit = positiveInteger("--limit", options.limit);
  const wanted = status === undefined ? (all ? undefined : unfinishedStatuses) : [status as RunSummaryStatus];
  return withStore(options, terminal, async (store): Promise<ExitKind> => {
    const runs: RunSummary[] = [];
    let hasMore = false;
    for await (const run of eachRun(store, wanted && { status: wanted })) {
      // `paused` is also the status of runs that ended with it.
      if (run.endedAt !== null && !all && status === undefined) continue;
      hasMore = runs.length === limit;
      if (hasMore) break;
      runs.push(run);
    }
    const now = Date.now();
    const rows = runs.map((run) => row(run, now));
    const lines = terminal.isWatched ? columns([heading, ...rows]) : columns(rows);
    for (const line of json ? runs.map((run) => JSON.stringify(run)) : runs.length === 0 ? [] : lines)
      await terminal.out(line);
    if (runs.length === 0)
      terminal.say(
        wanted === unfinishedStatuses
          ? "No run is in progress; --all lists ended runs, too."
          : "No run found.",
      );
    if (hasMore) terminal.say(`Only the newest ${limit} are shown; --limit shows more.`);
    return "ok";
  });
}

const heading = ["RUN", "STATUS", "STARTED", "TOOK", "AGENT"];

function row({ runId, status, waitsFor, createdAt, endedAt, agentId }: RunSummary, now: number): string[] {
  const cause = waitsFor.length === 0 ? "" : ` (${waitsFor.join(", ")})`;
  return [
    runId,
    `${status}${cause}`,
    `${duration(now - createdAt)} ago`,
    duration((endedAt ?? now) - createdAt),
    printable(agentId.split("/", 1)[0] ?? agentId),
  ];
}
