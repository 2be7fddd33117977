import { setImmediate } from "node:timers/promises";
import {
  chainStart,
  eraseCommit,
  Fault,
  type Commit,
  type Erasure,
  type LogVerdict,
  type RunId,
} from "../../../../kernel/index.ts";
import type { Chain } from "./chain.ts";
import type { CommitRows } from "./commit-rows.ts";
import type { CommitRow } from "../db/commit-row.ts";
import { addErasures, erasuresOf } from "./erasures.ts";
import type { RunKey } from "../db/run-row.ts";
import type { Tables } from "../db/tables.ts";

/** Others get their turn after so long. */
const sliceMs = 2;

export interface CheckedLog {
  /** As it was when it was looked at: if all is well, the chain covers what it says is erased. */
  readonly run: RunKey;
  readonly verdict: LogVerdict;
}

/** E1: whether a log is what its owners wrote, but for words that its commits ordered to be erased. */
export class LogCheck {
  readonly #tables: Tables;
  readonly #rows: CommitRows;
  readonly #chain: Chain;

  constructor(tables: Tables, rows: CommitRows, chain: Chain) {
    this.#tables = tables;
    this.#rows = rows;
    this.#chain = chain;
  }

  async check(runId: RunId, head?: string): Promise<CheckedLog> {
    for (;;) {
      const { run, end } = await this.#tables.read(() =>
        this.#tables.database.transaction("DEFERRED", () => {
          const key = this.#tables.run(runId);
          return { run: key, end: this.#rows.endNumber(key) };
        }),
      );
      const verdict = await this.#follow(run, end, head);
      if (verdict.ok) return { run, verdict };
      // What was ordered to be erased meanwhile, and is, nobody seems to have ordered.
      const { erases } = await this.#tables.read(() => this.#tables.run(runId));
      if (erases === run.erases) return { run, verdict };
    }
  }

  async #follow(run: RunKey, end: number, head: string | undefined): Promise<LogVerdict> {
    const marked = readable(() => erasuresOf(run));
    if (marked === undefined) return broken(0, "whose words are erased cannot be read");
    let ordered: readonly Erasure[] = [];
    let [number, seq] = [0, 0];
    let [link, last] = [chainStart(run), chainStart(run)];
    let headSeq: number | null = null;
    let began = performance.now();
    for await (const page of this.#rows.pages(run, 0, end)) {
      for (const row of page) {
        if (row.number !== number) return broken(seq, `commit ${number} is missing`);
        if (!this.#chain.holds(link, row))
          return broken(seq, `commit ${number} does not follow from the one before: it was changed`);
        const commit = readable(() => this.#rows.decodeAlone(run, row));
        if (commit === undefined || seq + (commit.events?.length ?? 0) !== row.nextEvent)
          return broken(seq, `commit ${number} does not hold the events it should`);
        if (!mayBe(commit, row, marked))
          return broken(seq, `commit ${number} was changed as if erased, and nobody ordered that`);
        ordered = addErasures(ordered, commit.erases ?? []);
        [number, seq, link] = [number + 1, row.nextEvent, row.link];
        last = this.#chain.head(last, row, commit.erases);
        if (last === head) headSeq = seq;
        if (performance.now() - began > sliceMs) {
          await setImmediate();
          began = performance.now();
        }
      }
    }
    if (number < end) return broken(seq, `commit ${number} is missing`);
    if (JSON.stringify(ordered) !== JSON.stringify(marked))
      return broken(0, "what is marked as erased is not what its commits ordered");
    if (head !== undefined && headSeq === null)
      return broken(seq, "the log does not come to the head kept elsewhere");
    const sinceHead = headSeq === null ? null : seq - headSeq;
    return { ok: true, events: seq, head: last, keyed: this.#chain.keyed, sinceHead };
  }
}

/** Only a commit that has something of the tasks in question may be an erased one. */
function mayBe(commit: Commit, { seal }: CommitRow, erasures: readonly Erasure[]): boolean {
  return seal === null || eraseCommit(commit, erasures) !== commit;
}

/** Nothing when it cannot be read. */
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
