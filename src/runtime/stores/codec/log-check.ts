import {
  chainStart,
  eraseCommit,
  Fault,
  type Commit,
  type Erasure,
  type EventLoop,
  type LogVerdict,
} from "../../../kernel/index.ts";
import type { Chain } from "./chain.ts";
import type { CommitRow } from "./commit-row.ts";
import { addErasures, erasuresOf } from "./erasures.ts";
import type { RunKey } from "./stored-run.ts";

/** Maximum time in milliseconds before the check lets other work of the process run. */
const sliceMs = 2;

/** The log of a run, as a store reads it. */
export interface StoredLog {
  readonly run: RunKey;
  /** Number of commits. */
  readonly end: number;
  /** All commits in order, with their contents. */
  readonly pages: AsyncIterable<readonly CommitRow[]>;
  /** Decodes a stored commit, without the session entries that it refers to. Throws a fault if it is not readable. */
  readonly decode: (row: CommitRow) => Commit;
}

/**
 * E1: checks that nothing in a log has changed since its owners wrote it, except text whose erasure its commits
 * ordered.
 */
export async function checkLog(
  log: StoredLog,
  chain: Chain,
  head: string | undefined,
  eventLoop: EventLoop,
): Promise<LogVerdict> {
  const { run, end, pages, decode } = log;
  const marked = readable(() => erasuresOf(run));
  if (marked === undefined) return broken(0, "the list of erased tasks is not readable");
  let ordered: readonly Erasure[] = [];
  let [number, seq] = [0, 0];
  let [link, last] = [chainStart(run), chainStart(run)];
  let headSeq: number | null = null;
  let began = eventLoop.elapsed();
  for await (const page of pages) {
    for (const row of page) {
      if (row.number !== number) return broken(seq, `commit ${number} is missing`);
      if (!chain.holds(link, row))
        return broken(seq, `commit ${number} does not match the chain: ${changedAt(number)} was changed`);
      if (!chain.holdsContents(row))
        return broken(seq, `commit ${number} refers to a content that is missing or was changed`);
      const commit = readable(() => decode(row));
      if (commit === undefined || seq + (commit.events?.length ?? 0) !== row.nextEvent)
        return broken(seq, `commit ${number} does not hold the events that its row counts`);
      if (!mayBe(commit, row, marked))
        return broken(seq, `commit ${number} has a seal, but no commit ordered an erasure`);
      ordered = addErasures(ordered, commit.erases ?? []);
      [number, seq, link] = [number + 1, row.nextEvent, row.link];
      last = chain.head(last, row, commit.erases);
      if (last === head) headSeq = seq;
      if (eventLoop.elapsed() - began > sliceMs) {
        await new Promise<void>((resolve) => eventLoop.nextTurn(resolve));
        began = eventLoop.elapsed();
      }
    }
  }
  if (number < end) return broken(seq, `commit ${number} is missing`);
  if (JSON.stringify(ordered) !== JSON.stringify(marked))
    return broken(0, "the list of erased tasks is not the one that its commits ordered");
  if (head !== undefined && headSeq === null)
    return broken(seq, "the log does not contain the given head: it was truncated");
  const sinceHead = headSeq === null ? null : seq - headSeq;
  return { ok: true, events: seq, head: last, keyed: chain.keyed, sinceHead };
}

/** Returns what a wrong link means. The first link also covers the fields of the run. */
function changedAt(number: number): string {
  return number === 0 ? "it, or the agent, session, user or tenant of the run," : "it";
}

/** Whether a commit may have a seal. Only a commit that contains something of the erased tasks may have one. */
function mayBe(commit: Commit, { seal }: CommitRow, erasures: readonly Erasure[]): boolean {
  return seal === null || eraseCommit(commit, erasures) !== commit;
}

/** Returns the result of `read`, or `undefined` if the value is not readable. */
function readable<Value>(read: () => Value): Value | undefined {
  try {
    return read();
  } catch (error) {
    if (Fault.is(error)) return undefined;
    throw error;
  }
}

function broken(seq: number, problem: string): LogVerdict {
  return { ok: false, seq, problem };
}
