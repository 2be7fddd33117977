import type { Commit, LogVerdict, RunId } from "../../../../kernel/index.ts";
import type { Chain } from "../../codec/chain.ts";
import type { CommitRow } from "../../codec/commit-row.ts";
import { checkLog } from "../../codec/log-check.ts";
import type { RunKey } from "../../codec/stored-run.ts";
import type { Tables } from "../db/tables.ts";
import type { CommitRows } from "./commit-rows.ts";

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
      const pages = this.#rows.pages(run, 0, end);
      const decode = (row: CommitRow): Commit => this.#rows.decodeAlone(run, row);
      const verdict = await checkLog({ run, end, pages, decode }, this.#chain, head);
      if (verdict.ok) return { run, verdict };
      // An erasure that was ordered and carried out during the check looks like one that no commit ordered. Check
      // again.
      const { erases } = await this.#tables.read(() => this.#tables.run(runId));
      if (erases === run.erases) return { run, verdict };
    }
  }
}
