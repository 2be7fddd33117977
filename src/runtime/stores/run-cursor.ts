import { Fault, type RunQuery, type RunSummaryStatus } from "../../kernel/index.ts";

const defaultLimit = 50;

/** A query with what it leaves out. `before`: only runs with a lower place, which counts runs in the order of their creation. */
export interface RunCursor {
  readonly before: number;
  readonly limit: number;
  /** Absent: any. */
  readonly statuses?: readonly RunSummaryStatus[];
}

export function cursorOf({ after, limit = defaultLimit, status }: RunQuery): RunCursor {
  if (!Number.isSafeInteger(limit) || limit < 1) {
    throw new Fault("invalid_argument", `limit is ${limit}: it must be an integer from 1`);
  }
  if (after !== undefined && !/^[1-9][0-9]{0,15}$/.test(after)) {
    throw new Fault("invalid_argument", `${JSON.stringify(after)} is not the \`next\` of a page of runs`);
  }
  const before = after === undefined ? Number.MAX_SAFE_INTEGER : Number(after);
  if (status === undefined) return { before, limit };
  return { before, limit, statuses: [...new Set([status].flat())] };
}

/** One page out of what was found, newest first and one more than asked for if there is more. */
export function pageOf<Found extends { readonly place: number }>(
  found: readonly Found[],
  limit: number,
): { readonly shown: readonly Found[]; readonly next: string | null } {
  const shown = found.slice(0, limit);
  const last = shown.at(-1);
  return { shown, next: last === undefined || found.length <= limit ? null : String(last.place) };
}
