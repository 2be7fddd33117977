import type { CommitRow } from "../../codec/commit-row.ts";
import type { RunKey } from "../../codec/stored-run.ts";
import { CommitEraser, Erasure, type CommitEraserOptions, type ErasureCursor } from "../../sql/erasure.ts";
import type { LogCheck } from "../../sql/log-check.ts";
import type { Work } from "../../sql/work.ts";
import { runKeyColumns } from "../../sql/run-row.ts";
import type { Tables } from "../db/tables.ts";
import type { CommitRows } from "../rows/commit-rows.ts";
import type { Collector } from "./collector.ts";

export interface EraserOptions extends CommitEraserOptions {
  readonly tables: Tables;
  readonly rows: CommitRows;
  readonly check: LogCheck;
  readonly collector: Collector;
}

/** Maximum number of commits that one transaction erases. */
const mostCommits = 64;

const nextRun = `SELECT ${runKeyColumns} FROM {runs} WHERE erasing = 1 AND run_id IS NOT NULL AND id <> ALL($1::bigint[])
  ORDER BY id LIMIT 1`;
/** SQL that records that a run is erased. It has no effect if more text was marked in the meantime. */
const isErased = "UPDATE {runs} SET erasing = NULL WHERE id = $1 AND erases = $2";

/** E1: removes erased text from the tables, in parts. The server keeps old versions of rows until it vacuums them. */
export class Eraser {
  readonly #rows: CommitRows;
  readonly #commits: CommitEraser;
  readonly #erasure: Erasure;

  constructor({ tables: { database }, rows, check, collector, ...options }: EraserOptions) {
    this.#rows = rows;
    this.#commits = new CommitEraser(options);
    const source = {
      next: (except: readonly number[]) => database.statements.get<RunKey>(nextRun, except),
      eraseFrom: (run: RunKey, from: ErasureCursor) =>
        database.write((transaction) => transaction.do(this.#eraseFrom(run, from))),
      collect: () => collector.collect(),
      finish: (run: RunKey) =>
        database.write((transaction) => transaction.run(isErased, run.id, run.erases ?? "")),
    };
    this.#erasure = new Erasure(source, check);
  }

  /** Resolves when everything that was marked before the call is erased. */
  erase(): Promise<void> {
    return this.#erasure.erase();
  }

  stop(): void {
    this.#erasure.stop();
  }

  /**
   * Erases one part. Returns where to continue, or `undefined` if the log is not valid. Call it inside a
   * transaction.
   */
  *#eraseFrom(run: RunKey, from: ErasureCursor): Work<ErasureCursor | "end" | undefined> {
    let { number, link } = from;
    const rows = yield* this.#rows.page(run, number, number + mostCommits);
    if (rows.length === 0) return "end";
    for (const row of rows) {
      if (!this.#commits.holds(link, row)) return undefined;
      yield* this.#eraseRow(run, row, link);
      [number, link] = [row.number + 1, row.link];
    }
    return { number, link };
  }

  *#eraseRow(run: RunKey, row: CommitRow, before: string): Work<void> {
    const [commit] = yield* this.#rows.decodeWhole(run, [row]);
    const rest = commit && this.#commits.erased(run, row, commit, before);
    if (rest !== undefined) yield* this.#rows.overwrite(run, row, rest);
  }
}
