import {
  checkChoice,
  Fault,
  runSummaryStatuses,
  type RunQuery,
  type RunSummaryStatus,
} from "../../kernel/index.ts";

const defaultLimit = 50;

/** Maximum length of the name and the value of a top-level string of a run's metadata that `list` can select by, in characters. */
export const longestLabel = 1_024;

/**
 * A query with its defaults. A run's `place` is its position in the order of creation; only runs with a place lower
 * than `before` match.
 */
export interface RunCursor {
  readonly before: number;
  readonly limit: number;
  /** If absent, runs of any status match. */
  readonly statuses?: readonly RunSummaryStatus[];
}

export function cursorOf({ after, limit = defaultLimit, status }: RunQuery): RunCursor {
  if (!Number.isSafeInteger(limit) || limit < 1) {
    throw new Fault("invalid_argument", `invalid limit ${limit}: expected an integer of at least 1`);
  }
  if (after !== undefined && !/^[1-9][0-9]{0,15}$/.test(after)) {
    throw new Fault(
      "invalid_argument",
      `invalid cursor ${JSON.stringify(after)}: pass the \`next\` of an earlier page of runs`,
    );
  }
  const before = after === undefined ? Number.MAX_SAFE_INTEGER : Number(after);
  if (status === undefined) return { before, limit };
  const statuses = [...new Set([status].flat())];
  for (const each of statuses) checkChoice("list()", "status", each, runSummaryStatuses);
  return { before, limit, statuses };
}

/** Returns one page. `found` is sorted newest first and holds `limit + 1` items if there is another page. */
export function pageOf<Found extends { readonly place: number }>(
  found: readonly Found[],
  limit: number,
): { readonly shown: readonly Found[]; readonly next: string | null } {
  const shown = found.slice(0, limit);
  const last = shown.at(-1);
  return { shown, next: last === undefined || found.length <= limit ? null : String(last.place) };
}
