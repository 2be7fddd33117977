import { missingRun, type Commit, type RunId, type RunRecord } from "../../../kernel/index.ts";
import { recordOf, type RunKey, type RunRow } from "../codec/stored-run.ts";
import { runColumns, runKeyColumns } from "../sql/run-row.ts";
import type { Tables } from "./db/tables.ts";
import { missing, type CommitRows } from "./rows/commit-rows.ts";

const findRun = `SELECT ${runColumns}, ${runKeyColumns} FROM {runs} AS runs WHERE run_id = $1`;

/** Reads the commits of a run for the journal, page by page. */
export class RunReader {
  readonly #tables: Tables;
  readonly #rows: CommitRows;

  constructor(tables: Tables, rows: CommitRows) {
    this.#tables = tables;
    this.#rows = rows;
  }

  async replay(runId: RunId, visit: (commit: Commit) => void): Promise<RunRecord> {
    const run = await this.#tables.database.statements.get<RunKey & RunRow>(findRun, runId);
    if (run === undefined) throw missingRun(runId);
    for await (const page of this.pages(runId)) page.forEach(visit);
    return recordOf(run);
  }

  /** Yields the commits from number `from` on, page by page. Throws `store_corrupt` if a commit is missing. */
  async *pages(runId: RunId, from = 0): AsyncIterable<readonly Commit[]> {
    const { database } = this.#tables;
    const { run, number: end } = await this.#rows.end(runId);
    let next = from;
    for await (const page of this.#rows.decodedPages(run, from, end)) {
      const gap = page.findIndex(({ number }, index) => number !== next + index);
      const commits = gap < 0 ? page : page.slice(0, gap);
      next += commits.length;
      yield commits;
      if (gap >= 0) break;
    }
    if (next >= end) return;
    // Rejects with `not_found` if the run was deleted meanwhile.
    await database.statements.do(this.#tables.run(runId));
    throw missing(run, next);
  }
}
