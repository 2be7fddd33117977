import { assertOutcome, Fault, type Commit, type Hash } from "../../../kernel/index.ts";
import { encodeCommit } from "./commit-codec.ts";
import { commitText } from "./commit-text.ts";
import { contentText, type LargeValue, type LargeValues } from "./large-values.ts";
import { batchChanges, type BatchedChange } from "./entry-batch.ts";
import type { Chain } from "./chain.ts";
import type { RunKey } from "./stored-run.ts";

/** The end of a run's journal. */
export interface Position {
  /** Number of the next commit. */
  number: number;
  /** Seq of the next event. */
  seq: number;
  /** E1: hash (link) of the last commit in the chain. */
  link: string;
}

/** A commit and everything about it that can be computed before its transaction begins. */
export interface Draft {
  readonly commit: Commit;
  readonly sessions: readonly BatchedChange[];
  /** The text that the row of the commit stores, without large values. */
  readonly body: string;
  /** JSON of the references to the large values. `null` if there are none. */
  readonly refs: string | null;
  readonly values: readonly LargeValue[];
}

/** Computes digests and moves large values out of the text. */
export interface DraftTools {
  readonly hash: Hash;
  readonly large: LargeValues;
}

const noChanges: readonly never[] = [];

/**
 * J10: creates a draft. Throws `not_json` for a value that is not JSON. It encodes the commit synchronously, so
 * that later changes by the caller are not stored.
 */
export function draftCommit(commit: Commit, run: Omit<RunKey, "id">, tools: DraftTools): Draft {
  if (commit.steps !== undefined) for (const step of commit.steps) assertOutcome(step);
  const sessions = commit.sessions === undefined ? noChanges : batchChanges(commit.sessions);
  try {
    const { text, refs, values } = commitText(encodeCommit(commit, run, tools.hash, sessions), tools.large);
    return { commit, sessions, body: text, refs, values };
  } catch (error) {
    const { message } = Fault.from(error);
    throw new Fault("not_json", `commit ${commit.number} of ${run.runId} cannot be stored: ${message}`, {
      cause: error,
    });
  }
}

/** Returns the position at the end of the run's journal after this commit. */
export function positionAfter(chain: Chain, before: Position, { commit, body, refs }: Draft): Position {
  const { number, at, events } = commit;
  const seq = before.seq + (events?.length ?? 0);
  const link = chain.link(before.link, { number, at, nextEvent: seq, body, refs });
  return { number: number + 1, seq, link };
}

/** Returns the approximate number of bytes that the draft writes. */
export function bytesOf({ body, values }: Draft): number {
  let bytes = body.length;
  for (const { form, value, text } of values)
    bytes += text?.length ?? (form === "text" ? (value as string).length : 0);
  return bytes;
}

/** Returns the contents of the draft as a reader would load them. */
export function contentsOf({ values }: Draft): ReadonlyMap<string, string> {
  return new Map(values.map((value) => [value.hash, contentText(value)]));
}
