import type { Commit, LogVerdict, MaybePromise, RunId } from "../../../kernel/index.ts";
import { systemEventLoop } from "../../process/system-sources.ts";
import type { Chain } from "../codec/chain.ts";
import type { CommitRow } from "../codec/commit-row.ts";
import { checkLog } from "../codec/log-check.ts";
import type { RunKey } from "../codec/stored-run.ts";

export interface CheckedLog {
  /** The run as it was read for the check. If the log is valid, the chain also proves its list of erasures. */
  readonly run: RunKey;
  readonly verdict: LogVerdict;
}

/** Reads the commits of runs for `LogCheck`. */
export interface LogSource {
  /** Returns the number of the run's next commit. Rejects with `not_found` if the run does not exist. */
  end(runId: RunId): MaybePromise<{ readonly run: RunKey; readonly number: number }>;
  /** Yields the commits from `first` up to, but not including, `end`, one page at a time. */
  pages(run: RunKey, first: number, end: number): AsyncIterable<readonly CommitRow[]>;
  /** Decodes a commit as stored, without the session entries that it refers to. */
  decode(run: RunKey, row: CommitRow): Commit;
}

/**
 * E1: checks that nothing in a log has changed since its owners wrote it, except text whose erasure its commits
 * ordered.
 */
export class LogCheck {
  readonly #source: LogSource;
  readonly #chain: Chain;

  constructor(source: LogSource, chain: Chain) {
    this.#source = source;
    this.#chain = chain;
  }

  async check(runId: RunId, head?: string): Promise<CheckedLog> {
    for (;;) {
      const { run, number: end } = await this.#source.end(runId);
      const pages = this.#source.pages(run, 0, end);
      const decode = (row: CommitRow): Commit => this.#source.decode(run, row);
      const verdict = await checkLog({ run, end, pages, decode }, this.#chain, head, systemEventLoop);
      if (verdict.ok) return { run, verdict };
      // An erasure that was ordered and carried out during the check looks like one that no commit ordered. Check
      // again.
      const { erases } = (await this.#source.end(runId)).run;
      if (erases === run.erases) return { run, verdict };
    }
  }
}
