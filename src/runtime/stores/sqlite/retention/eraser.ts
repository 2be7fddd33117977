import { setImmediate } from "node:timers/promises";
import type { CommitRow } from "../../codec/commit-row.ts";
import type { RunKey } from "../../codec/stored-run.ts";
import { CommitEraser, Erasure, type CommitEraserOptions, type ErasureCursor } from "../../sql/erasure.ts";
import type { LogCheck } from "../../sql/log-check.ts";
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

const nextRun = `SELECT ${runKeyColumns} FROM runs
  WHERE erasing = 1 AND run_id IS NOT NULL AND id NOT IN (SELECT value FROM json_each(?)) LIMIT 1`;
/** SQL that records that a run is erased. It has no effect if more text was marked in the meantime. */
const isErased = "UPDATE runs SET erasing = NULL WHERE id = ? AND erases = ?";

/** Maximum time in milliseconds that one transaction spends on erasing. */
const sliceMs = 2;

/** E1: removes erased text from the file, in parts of a few milliseconds. */
export class Eraser {
  readonly #tables: Tables;
  readonly #rows: CommitRows;
  readonly #commits: CommitEraser;
  readonly #erasure: Erasure;

  constructor({ tables, rows, check, collector, ...options }: EraserOptions) {
    const { database } = tables;
    this.#tables = tables;
    this.#rows = rows;
    this.#commits = new CommitEraser(options);
    const source = {
      next: (except: readonly number[]) =>
        tables.read(() => database.get<RunKey>(nextRun, JSON.stringify(except))),
      eraseFrom: (run: RunKey, from: ErasureCursor) => this.#eraseFrom(run, from),
      collect: () => collector.collect(),
      finish: (run: RunKey) =>
        tables.write({ apply: () => database.run(isErased, run.id, run.erases ?? "") }),
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

  async #eraseFrom(run: RunKey, from: ErasureCursor): Promise<ErasureCursor | "end" | undefined> {
    const { database } = this.#tables;
    const cursor = await this.#tables.write({
      apply: () => database.overwriting(() => this.#slice(run, from)),
    });
    await setImmediate();
    return cursor;
  }

  /**
   * Erases one part. Returns where to continue, or `undefined` if the log is not valid. Call it inside a
   * transaction.
   */
  #slice(run: RunKey, from: ErasureCursor): ErasureCursor | "end" | undefined {
    const began = performance.now();
    let { number, link } = from;
    const end = this.#rows.endNumber(run);
    for (let before = -1; number < end && number > before;) {
      before = number;
      for (const row of this.#rows.page(run, number, end)) {
        if (!this.#commits.holds(link, row)) return undefined;
        this.#eraseRow(run, row, link);
        [number, link] = [row.number + 1, row.link];
        if (performance.now() - began > sliceMs) return { number, link };
      }
    }
    return "end";
  }

  #eraseRow(run: RunKey, row: CommitRow, before: string): void {
    const rest = this.#commits.erased(run, row, this.#rows.decodeWhole(run, row), before);
    if (rest !== undefined) this.#rows.overwriteNow(run, row, rest, rest.seal);
  }
}
