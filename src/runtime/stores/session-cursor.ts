import { Fault, type SessionQuery } from "../../kernel/index.ts";
import { cursorParts } from "./run-cursor.ts";

/** The position of a session in the list: newest first, and among equals the one that was created last. */
export interface SessionPlace {
  readonly updatedAt: number;
  /** Number of the session in the order of creation. */
  readonly place: number;
}

/** A query with its defaults. It selects only sessions that come after `after` in the list. */
export interface SessionCursor {
  readonly after: SessionPlace;
  readonly limit: number;
}

const first: SessionPlace = { updatedAt: Number.MAX_SAFE_INTEGER, place: 0 };
const cursor = /^(-?[0-9]{1,16})_([0-9]{1,16})$/u;

export function sessionCursorOf({ after, limit = 50 }: SessionQuery): SessionCursor {
  if (!Number.isSafeInteger(limit) || limit < 1)
    throw new Fault("invalid_argument", `invalid limit ${limit}: expected an integer of at least 1`);
  if (after === undefined) return { after: first, limit };
  const [, updatedAt, place] = cursorParts(cursor, after);
  if (updatedAt === undefined)
    throw new Fault(
      "invalid_argument",
      `invalid cursor ${JSON.stringify(after)}: pass the \`next\` of an earlier page of sessions`,
    );
  return { after: { updatedAt: Number(updatedAt), place: Number(place) }, limit };
}

/** Whether the first session comes after the second one in the list. */
export function comesAfter(one: SessionPlace, other: SessionPlace): boolean {
  return one.updatedAt < other.updatedAt || (one.updatedAt === other.updatedAt && one.place < other.place);
}

/** Returns one page. `found` is sorted newest first and holds `limit + 1` sessions if there is another page. */
export function sessionPageOf<Found extends SessionPlace>(
  found: readonly Found[],
  limit: number,
): { readonly shown: readonly Found[]; readonly next: string | null } {
  const shown = found.slice(0, limit);
  const last = shown.at(-1);
  const hasMore = last !== undefined && found.length > limit;
  return { shown, next: hasMore ? `${last.updatedAt}_${last.place}` : null };
}

/** Checks the limit of a page of entries. */
export function checkEntryLimit(limit: number | undefined): void {
  if (limit !== undefined && (!Number.isSafeInteger(limit) || limit < 1))
    throw new Fault("invalid_argument", `invalid limit ${limit}: expected an integer of at least 1`);
}

/** Creates the fault for a page of entries after an entry that does not exist. */
export function missingAfter(sessionId: string, after: string): Fault {
  return new Fault(
    "not_found",
    `session ${sessionId} has no entry ${after}: pass the id of the last entry of an earlier page, or start again`,
  );
}

/** Creates the fault for changes that need a new session. */
export function sessionExists(sessionId: string): Fault {
  return new Fault("already_exists", `session ${sessionId} already exists: choose another sessionId`);
}

/** Converts ASCII letters to lower case, and no other letters, as SQLite's `lower` does. */
export function asciiLower(text: string): string {
  return text.replaceAll(/[A-Z]+/gu, (letters) => letters.toLowerCase());
}
