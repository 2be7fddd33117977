import {
  checkChoice,
  Fault,
  runSummaryStatuses,
  unfinishedStatuses,
  type RunQuery,
  type RunSummary,
  type RunSummaryStatus,
} from "../../../../kernel/index.ts";
import type { ExitKind } from "../../terminal/exit-code.ts";
import { causeWords, columns, duration } from "../../terminal/format.ts";
import { positiveInteger } from "../../terminal/number-option.ts";
import { withStore, type StoreOptions } from "../../setup/stored-runs.ts";
import { printable, type Terminal } from "../../terminal/terminal.ts";
import { whereQuery } from "../../setup/run-filters.ts";
import { scoreWords } from "../../../view/run-words.ts";
import { eachRun } from "../../setup/find-run.ts";

export interface ListRunsOptions extends StoreOptions {
  readonly all?: boolean;
  readonly status?: string;
  /** Filters, as the page has them. */
  readonly where?: readonly string[];
  readonly sort: string;
  readonly limit: string;
  readonly json?: boolean;
}

/** Prints the runs of a store in the chosen order, either all runs or those that have not ended. */
export function printRuns(options: ListRunsOptions, terminal: Terminal): Promise<ExitKind> {
  const { all = false, status, json = false } = options;
  checkChoice("reeve ps", "--status", status, runSummaryStatuses);
  checkChoice("reeve ps", "--sort", options.sort, ["newest", "cost"]);
  const limit = positiveInteger("--limit", options.limit);
  const where = whereQuery(options.where ?? []);
  if (status !== undefined && where.status !== undefined)
    throw new Fault("invalid_argument", "--status and --where status= cannot be combined; use one of them");
  // Who asks for a status or an end means ended runs, too.
  const isOpenOnly =
    !all && status === undefined && where.status === undefined && where.endedAfter === undefined;
  const query: RunQuery = {
    ...(isOpenOnly && { status: unfinishedStatuses }),
    ...(status !== undefined && { status: status as RunSummaryStatus }),
    ...(options.sort === "cost" && { sort: "costliest" }),
    ...where,
  };
  return withStore(options, terminal, async (store): Promise<ExitKind> => {
    const runs: RunSummary[] = [];
    let hasMore = false;
    for await (const run of eachRun(store, query)) {
      // `paused` is also the status of runs that ended with it.
      if (run.endedAt !== null && isOpenOnly) continue;
      hasMore = runs.length === limit;
      if (hasMore) break;
      runs.push(run);
    }
    const now = Date.now();
    const isScored = runs.some(({ scores }) => scores !== undefined);
    const rows = runs.map((run) => [...row(run, now), ...(isScored ? [scoresOf(run)] : [])]);
    const head = isScored ? [...heading, "SCORES"] : heading;
    const lines = terminal.isWatched ? columns([head, ...rows]) : columns(rows);
    for (const line of json ? runs.map((run) => JSON.stringify(run)) : runs.length === 0 ? [] : lines)
      await terminal.out(line);
    if (runs.length === 0)
      terminal.say(isOpenOnly ? "No run is in progress; --all lists ended runs, too." : "No run found.");
    const which = options.sort === "cost" ? "the most expensive" : "the newest";
    if (hasMore) terminal.say(`Only ${which} ${limit} are shown; --limit shows more.`);
    return "ok";
  });
}

const heading = ["RUN", "STATUS", "STARTED", "TOOK", "AGENT"];

function row(run: RunSummary, now: number): string[] {
  const { runId, status, waitsFor, createdAt, endedAt, agentId } = run;
  const cause = waitsFor.length === 0 ? "" : ` (${causeWords(run)})`;
  return [
    runId,
    `${status}${cause}`,
    `${duration(now - createdAt)} ago`,
    duration((endedAt ?? now) - createdAt),
    printable(agentId.split("/", 1)[0] ?? agentId),
  ];
}

function scoresOf({ scores = [] }: RunSummary): string {
  return printable(scoreWords(scores));
}
