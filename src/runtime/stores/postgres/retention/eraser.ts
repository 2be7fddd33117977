import { rootTaskId, type Erasure as Erased } from "../../../../kernel/index.ts";
import type { CommitRow } from "../../codec/commit-row.ts";
import { addErasures, erasuresOf } from "../../codec/erasures.ts";
import type { RunKey } from "../../codec/stored-run.ts";
import { CommitEraser, Erasure, type CommitEraserOptions, type ErasureCursor } from "../../sql/erasure.ts";
import type { LogCheck } from "../../sql/log-check.ts";
import type { Queries } from "../db/queries.ts";
import { runKeyColumns } from "../../sql/run-row.ts";
import type { Tables } from "../db/tables.ts";
import type { CommitRows } from "../rows/commit-rows.ts";
import { eraseMetadata } from "../../sql/run-metadata.ts";
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
/** Has no effect if more was marked meanwhile. */
const isErased = "UPDATE {runs} SET erasing = NULL WHERE id = $1 AND erases = $2";

/** E1: removes erased text from the tables, in chunks. The server keeps old versions of rows until it vacuums them. */
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
        database.write((transaction) => this.#eraseFrom(transaction, run, from)),
      collect: () => collector.collect(),
      finish: (run: RunKey) =>
        database.write((transaction) => transaction.run(isErased, run.id, run.erases ?? "")),
    };
    this.#erasure = new Erasure(source, check);
  }

  /** Records the erasures of a commit, inside its transaction. */
  async mark(queries: Queries, { id }: RunKey, erasures: readonly Erased[]): Promise<void> {
    const before = await queries.get<{ readonly erases: string | null }>(
      "SELECT erases FROM {runs} WHERE id = $1",
      id,
    );
    const erases = JSON.stringify(addErasures(erasuresOf(before ?? {}), erasures));
    await queries.run("UPDATE {runs} SET erases = $2, erasing = 1 WHERE id = $1", id, erases);
    if (erasures.some(({ taskId }) => taskId === rootTaskId)) await queries.do(eraseMetadata(id));
  }

  /** Resolves when everything that was marked before the call is erased. */
  erase(): Promise<void> {
    return this.#erasure.erase();
  }

  stop(): void {
    this.#erasure.stop();
  }

  /** Erases one chunk. Returns where to continue, or `undefined` if the log is not valid. Call inside a transaction. */
  async #eraseFrom(
    queries: Queries,
    run: RunKey,
    from: ErasureCursor,
  ): Promise<ErasureCursor | "end" | undefined> {
    let { number, link } = from;
    const rows = await this.#rows.page(queries, run, number, number + mostCommits);
    if (rows.length === 0) return "end";
    for (const row of rows) {
      if (!this.#commits.holds(link, row)) return undefined;
      await this.#eraseRow(queries, run, row, link);
      [number, link] = [row.number + 1, row.link];
    }
    return { number, link };
  }

  async #eraseRow(queries: Queries, run: RunKey, row: CommitRow, before: string): Promise<void> {
    const [commit] = await this.#rows.decodeWhole(queries, run, [row]);
    const rest = commit && this.#commits.erased(run, row, commit, before);
    if (rest !== undefined) await this.#rows.overwrite(queries, run, row, rest);
  }
}
