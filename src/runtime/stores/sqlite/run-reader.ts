import {
  missingRun,
  andThen,
  type Commit,
  type MaybePromise,
  type RunId,
  type RunRecord,
} from "../../../kernel/index.ts";
import { recordOf, type RunKey, type RunRow } from "../codec/stored-run.ts";
import { runColumns, runKeyColumns } from "../sql/run-row.ts";
import { sqliteText } from "./db/dialect.ts";
import type { Tables } from "./db/tables.ts";
import { missing, type CommitRows } from "./rows/commit-rows.ts";

interface RunHistory {
  readonly run: RunRecord;
  /** All commits of the run. `undefined` if they do not fit into one page. */
  readonly commits: readonly Commit[] | undefined;
}

const findRun = sqliteText(`SELECT ${runColumns}, ${runKeyColumns} FROM {runs} WHERE run_id = $1`);

/** Reads the commits of a run for the journal, page by page. */
export class RunReader {
  readonly #tables: Tables;
  readonly #rows: CommitRows;

  constructor(tables: Tables, rows: CommitRows) {
    this.#tables = tables;
    this.#rows = rows;
  }

  replay(runId: RunId, visit: (commit: Commit) => void): MaybePromise<RunRecord> {
    return andThen(
      this.#tables.read(() => this.#history(runId)),
      ({ run, commits }) => {
        if (commits === undefined) return this.#replayPages(run, visit);
        commits.forEach(visit);
        return run;
      },
    );
  }

  async #replayPages(run: RunRecord, visit: (commit: Commit) => void): Promise<RunRecord> {
    for await (const page of this.pages(run.runId)) page.forEach(visit);
    return run;
  }

  #history(runId: RunId): RunHistory {
    const beginning = this.#takeBeginning(runId);
    if (beginning !== undefined) return beginning;
    const run = this.#tables.database.get<RunKey & RunRow>(findRun, runId);
    if (run === undefined) throw missingRun(runId);
    const page = this.#rows.onlyPage(run);
    return { run: recordOf(run), commits: page?.map((row) => this.#rows.decode(run, row)) };
  }

  /**
   * Returns the history of a run that this store created and claimed in one transaction, without reading the file,
   * because such a run has only its first commit. Returns `undefined` for any other run.
   */
  #takeBeginning(runId: RunId): RunHistory | undefined {
    const owned = this.#tables.owned.get(runId);
    const beginning = owned?.beginning;
    if (owned === undefined || beginning === undefined || owned.position?.number !== 1) return undefined;
    owned.beginning = undefined;
    const { run, first } = beginning;
    return { run, commits: ["body" in first ? this.#rows.decode(owned, first) : first] };
  }

  /** Yields the commits from number `from` on, page by page. Throws `store_corrupt` if a commit is missing. */
  async *pages(runId: RunId, from = 0): AsyncIterable<readonly Commit[]> {
    const { run, end } = await this.#tables.read(() => {
      const key = this.#tables.runNow(runId);
      return { run: key, end: this.#rows.endNumber(key) };
    });
    let next = from;
    for await (const page of this.#rows.texts(run, from, end)) {
      const commits: Commit[] = [];
      for (const row of page) {
        if (row.number !== next) break;
        next++;
        commits.push(this.#rows.decode(run, row));
      }
      yield commits;
    }
    if (next >= end) return;
    // Rejects with `not_found` if the run was deleted meanwhile.
    await this.#tables.read(() => this.#tables.runNow(runId));
    throw missing(run, next);
  }
}
