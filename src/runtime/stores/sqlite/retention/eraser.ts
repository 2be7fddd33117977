import { setImmediate } from "node:timers/promises";
import {
  chainStart,
  eraseCommit,
  Fault,
  rootTaskId,
  type Erasure,
  type Hash,
} from "../../../../kernel/index.ts";
import type { Chain } from "../../codec/chain.ts";
import { Chore } from "../../chore.ts";
import { encodeCommit } from "../../codec/commit-codec.ts";
import { commitText } from "../../codec/commit-text.ts";
import type { LargeValues } from "../../codec/large-values.ts";
import type { Collector } from "./collector.ts";
import type { CommitRows } from "../rows/commit-rows.ts";
import type { CommitRow } from "../../codec/commit-row.ts";
import { removeMetadata } from "../rows/run-metadata.ts";
import { addErasures, erasuresOf } from "../../codec/erasures.ts";
import type { LogCheck } from "../rows/log-check.ts";
import type { RunKey } from "../../codec/stored-run.ts";
import { runKeyColumns } from "../db/run-row.ts";
import type { Tables } from "../db/tables.ts";

export interface EraserOptions {
  readonly tables: Tables;
  readonly rows: CommitRows;
  readonly chain: Chain;
  readonly check: LogCheck;
  readonly collector: Collector;
  readonly hash: Hash;
  readonly large: LargeValues;
}

/** The next commit to be processed. */
interface Cursor {
  readonly number: number;
  /** E1: link of the commit before. */
  readonly link: string;
}

/** Has no effect if more was marked meanwhile. */
const isErased = "UPDATE runs SET erasing = NULL WHERE id = ? AND erases = ?";

/** Maximum time in milliseconds that one transaction spends on erasing. */
const sliceMs = 2;

/**
 * E1: removes erased text from the file, in slices of a few milliseconds. Readers stop seeing the text with the commit
 * that orders the erasure. If the process dies, the next process that opens the file continues.
 */
export class Eraser {
  readonly #tables: Tables;
  readonly #rows: CommitRows;
  readonly #chain: Chain;
  readonly #check: LogCheck;
  readonly #collector: Collector;
  readonly #hash: Hash;
  readonly #large: LargeValues;
  /**
   * Runs whose log is not valid for this store: it has another audit key, and a store with that key erases it; or it
   * lists an erasure that no commit ordered, which is never carried out.
   */
  readonly #others = new Set<number>();
  readonly #chore = new Chore(() => this.#work());

  constructor({ tables, rows, chain, check, collector, hash, large }: EraserOptions) {
    this.#tables = tables;
    this.#rows = rows;
    this.#chain = chain;
    this.#check = check;
    this.#collector = collector;
    this.#hash = hash;
    this.#large = large;
  }

  /** Records the erasures of a commit, inside its transaction. */
  markNow({ id }: RunKey, erasures: readonly Erasure[]): void {
    const { database } = this.#tables;
    const before = database.get<{ readonly erases: string | null }>(
      "SELECT erases FROM runs WHERE id = ?",
      id,
    );
    const erases = JSON.stringify(addErasures(erasuresOf(before ?? {}), erasures));
    database.run("UPDATE runs SET erases = ?2, erasing = 1 WHERE id = ?1", id, erases);
    if (erasures.some(({ taskId }) => taskId === rootTaskId))
      this.#tables.database.overwriting(() => removeMetadata(database, id));
  }

  /** Resolves when everything that was marked before the call is erased. */
  erase(): Promise<void> {
    return this.#chore.ask();
  }

  stop(): void {
    this.#chore.stop();
  }

  async #work(): Promise<void> {
    for (;;) {
      const next = await this.#tables.read(() => this.#next());
      if (next === undefined || this.#chore.isStopped) return;
      const ordered = await this.#orderedIn(next);
      if (ordered !== undefined) await this.#eraseRun(ordered);
    }
  }

  /**
   * Returns the run with the erasures that its chain orders, or `undefined` if the run was deleted or is not valid for
   * this store.
   */
  async #orderedIn({ id, runId }: RunKey): Promise<RunKey | undefined> {
    try {
      const { run, verdict } = await this.#check.check(runId);
      if (verdict.ok) return run;
      this.#others.add(id);
    } catch (error) {
      if (!Fault.is(error) || error.code !== "not_found") throw error;
    }
    return undefined;
  }

  #next(): RunKey | undefined {
    const runs = this.#tables.database.all<RunKey>(
      `SELECT ${runKeyColumns} FROM runs WHERE erasing = 1 AND run_id IS NOT NULL AND id NOT IN (SELECT value FROM json_each(?)) LIMIT 1`,
      JSON.stringify([...this.#others]),
    );
    return runs[0];
  }

  async #eraseRun(run: RunKey): Promise<void> {
    const { database } = this.#tables;
    let cursor: Cursor | "end" | undefined = { number: 0, link: chainStart(run) };
    while (cursor !== undefined && cursor !== "end" && !this.#chore.isStopped) {
      const from: Cursor = cursor;
      cursor = await this.#tables.write({
        apply: () => database.overwriting(() => this.#slice(run, from)),
      });
      await setImmediate();
    }
    if (cursor !== "end") return;
    // The contents that the erased commits referred to are text of the run, too.
    await this.#collector.collect();
    if (!this.#chore.isStopped)
      await this.#tables.write({ apply: () => database.run(isErased, run.id, run.erases ?? "") });
  }

  /** Erases one slice. Returns where to continue, or `undefined` if the log is not valid. Call inside a transaction. */
  #slice(run: RunKey, from: Cursor): Cursor | "end" | undefined {
    const began = performance.now();
    let { number, link } = from;
    const end = this.#rows.endNumber(run);
    for (let before = -1; number < end && number > before;) {
      before = number;
      for (const row of this.#rows.page(run, number, end)) {
        if (!this.#chain.holds(link, row)) {
          this.#others.add(run.id);
          return undefined;
        }
        this.#eraseRow(run, row, link);
        [number, link] = [row.number + 1, row.link];
        if (performance.now() - began > sliceMs) return { number, link };
      }
    }
    return "end";
  }

  #eraseRow(run: RunKey, row: CommitRow, before: string): void {
    const commit = this.#rows.decodeWhole(run, row);
    const erased = eraseCommit(commit, erasuresOf(run));
    if (erased === commit) return;
    const rest = commitText(encodeCommit(erased, run, this.#hash), this.#large);
    const seal = this.#chain.seal(before, { ...row, body: rest.text, refs: rest.refs });
    this.#rows.overwriteNow(run, row, rest, seal);
  }
}
