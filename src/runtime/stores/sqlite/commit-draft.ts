import { assertOutcome, Fault, type Commit, type Hash } from "../../../kernel/index.ts";
import { encodeCommit } from "./codec/commit-codec.ts";
import { batchChanges, type BatchedChange } from "./codec/entry-batch.ts";
import type { Chain } from "./rows/chain.ts";
import type { RunKey } from "./db/run-row.ts";
import type { Position } from "./db/tables.ts";

/** A commit and everything about it that can be computed before its transaction begins. */
export interface Draft {
  readonly commit: Commit;
  readonly sessions: readonly BatchedChange[];
  /** The text that the commit's row stores. */
  readonly body: string;
}

const noChanges: readonly never[] = [];

/** J10: throws `not_json` for a value that is not JSON. Encodes synchronously, so that later changes by the caller are not stored. */
export function draftCommit(commit: Commit, run: Omit<RunKey, "id">, hash: Hash): Draft {
  if (commit.steps !== undefined) for (const step of commit.steps) assertOutcome(step);
  const sessions = commit.sessions === undefined ? noChanges : batchChanges(commit.sessions);
  try {
    return { commit, sessions, body: encodeCommit(commit, run, hash, sessions) };
  } catch (error) {
    const { message } = Fault.from(error);
    throw new Fault("not_json", `commit ${commit.number} of ${run.runId} cannot be stored: ${message}`, {
      cause: error,
    });
  }
}

/** Returns the end of the run's journal after this commit. */
export function positionAfter(chain: Chain, before: Position, { commit, body }: Draft): Position {
  const { number, at, events } = commit;
  const seq = before.seq + (events?.length ?? 0);
  const link = chain.link(before.link, { number, at, nextEvent: seq, body });
  return { number: number + 1, seq, link };
}
