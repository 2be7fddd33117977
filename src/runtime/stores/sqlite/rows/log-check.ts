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
import type { Chain } from "../../codec/chain.ts";
import type { CommitRows } from "./commit-rows.ts";
import type { CommitRow } from "../../codec/commit-row.ts";
import { addErasures, erasuresOf } from "../../codec/erasures.ts";
import type { RunKey } from "../../codec/stored-run.ts";
import type { Tables } from "../db/tables.ts";

/** Maximum time in milliseconds before the check yields to the event loop. */
const sliceMs = 2;

export interface CheckedLog {
  /** The run as it was read for the check. If the log is valid, the chain covers its list of erasures. */
  readonly run: RunKey;
  readonly verdict: LogVerdict;
}

/** E1: checks that a log is what its owners wrote, except for text whose erasure its commits ordered. */
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
      // An erasure that was ordered and carried out during the check looks like one that no commit ordered. Check
      // again.
      const { erases } = await this.#tables.read(() => this.#tables.run(runId));
      if (erases === run.erases) return { run, verdict };
    }
  }

  async #follow(run: RunKey, end: number, head: string | undefined): Promise<LogVerdict> {
    const marked = readable(() => erasuresOf(run));
    if (marked === undefined) return broken(0, "the list of erased tasks is not readable");
    let ordered: readonly Erasure[] = [];
    let [number, seq] = [0, 0];
    let [link, last] = [chainStart(run), chainStart(run)];
    let headSeq: number | null = null;
    let began = performance.now();
    for await (const page of this.#rows.pages(run, 0, end)) {
      for (const row of page) {
        if (row.number !== number) return broken(seq, `commit ${number} is missing`);
        if (!this.#chain.holds(link, row))
          return broken(seq, `commit ${number} does not match the chain: ${changedAt(number)} was changed`);
        if (!this.#chain.holdsContents(row))
          return broken(seq, `commit ${number} refers to a content that is missing or was changed`);
        const commit = readable(() => this.#rows.decodeAlone(run, row));
        if (commit === undefined || seq + (commit.events?.length ?? 0) !== row.nextEvent)
          return broken(seq, `commit ${number} does not hold the events that its row counts`);
        if (!mayBe(commit, row, marked))
          return broken(seq, `commit ${number} has a seal, but no commit ordered an erasure`);
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
      return broken(0, "the list of erased tasks is not the one that its commits ordered");
    if (head !== undefined && headSeq === null)
      return broken(seq, "the log does not contain the given head: it was truncated");
    const sinceHead = headSeq === null ? null : seq - headSeq;
    return { ok: true, events: seq, head: last, keyed: this.#chain.keyed, sinceHead };
  }
}

/** What a broken link means: the first one also covers the fields of the run. */
function changedAt(number: number): string {
  return number === 0 ? "it, or the agent, session, user or tenant of the run," : "it";
}

/** Only a commit that holds something of the erased tasks may have a seal. */
function mayBe(commit: Commit, { seal }: CommitRow, erasures: readonly Erasure[]): boolean {
  return seal === null || eraseCommit(commit, erasures) !== commit;
}

/** Returns `undefined` if the value is not readable. */
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
