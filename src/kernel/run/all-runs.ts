import { unfinishedStatuses, type RunPage, type RunQuery, type RunSummary } from "./run-summary.ts";

/** A list of runs that is read page by page: that of a runtime or of a journal. */
interface RunList {
  list(query: RunQuery): Promise<RunPage>;
}

/** Number of runs per page. */
const limit = 500;

/** Yields all runs that a query selects. Reads a page when the caller needs it. */
export async function* allRuns(
  source: RunList,
  query: Omit<RunQuery, "limit" | "after">,
): AsyncIterable<RunSummary> {
  let after: string | null = null;
  do {
    const page: RunPage = await source.list({ ...query, limit, ...(after !== null && { after }) });
    yield* page.runs;
    after = page.next;
  } while (after !== null);
}

/** Yields the runs that have not ended. A run that ended with the status `paused` is not among them. */
export async function* unfinishedRuns(
  source: RunList,
  query: Omit<RunQuery, "status" | "limit" | "after"> = {},
): AsyncIterable<RunSummary> {
  for await (const run of allRuns(source, { ...query, status: unfinishedStatuses }))
    if (run.endedAt === null) yield run;
}

/** Returns the newest of the runs that have not ended. */
export async function firstUnfinishedRun(
  source: RunList,
  query: Omit<RunQuery, "status" | "limit" | "after"> = {},
): Promise<RunSummary | undefined> {
  for await (const run of unfinishedRuns(source, query)) return run;
  return undefined;
}
