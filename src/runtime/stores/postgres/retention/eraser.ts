import {
  chainStart,
  eraseCommit,
  Fault,
  rootTaskId,
  type Erasure,
  type Hash,
} from "../../../../kernel/index.ts";
import { Chore } from "../../chore.ts";
import type { Chain } from "../../codec/chain.ts";
import { encodeCommit } from "../../codec/commit-codec.ts";
import type { CommitRow } from "../../codec/commit-row.ts";
import { commitText } from "../../codec/commit-text.ts";
import { addErasures, erasuresOf } from "../../codec/erasures.ts";
import type { LargeValues } from "../../codec/large-values.ts";
import type { RunKey } from "../../codec/stored-run.ts";
import type { Queries } from "../db/queries.ts";
import { runKeyColumns } from "../db/run-row.ts";
import type { Tables } from "../db/tables.ts";
import type { CommitRows } from "../rows/commit-rows.ts";
import type { LogCheck } from "../rows/log-check.ts";
import { removeMetadata } from "../rows/run-metadata.ts";
import type { Collector } from "./collector.ts";

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

/** Maximum number of commits that one transaction erases. */
const mostCommits = 64;

const nextRun = `SELECT ${runKeyColumns} FROM {runs} WHERE erasing = 1 AND run_id IS NOT NULL AND id <> ALL($1::bigint[])
  ORDER BY id LIMIT 1`;
/** Has no effect if more was marked meanwhile. */
const isErased = "UPDATE {runs} SET erasing = NULL WHERE id = $1 AND erases = $2";

/**
 * E1: removes erased text from the tables, in chunks. Readers stop seeing the text with the commit that orders the erasure. If the
 * process dies, the next process that opens the store continues. The server keeps old versions of rows until it vacuums them.
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
  async mark(queries: Queries, { id }: RunKey, erasures: readonly Erasure[]): Promise<void> {
    const before = await queries.get<{ readonly erases: string | null }>(
      "SELECT erases FROM {runs} WHERE id = $1",
      id,
    );
    const erases = JSON.stringify(addErasures(erasuresOf(before ?? {}), erasures));
    await queries.run("UPDATE {runs} SET erases = $2, erasing = 1 WHERE id = $1", id, erases);
    if (erasures.some(({ taskId }) => taskId === rootTaskId)) await removeMetadata(queries, id);
  }

  /** Resolves when everything that was marked before the call is erased. */
  erase(): Promise<void> {
    return this.#chore.ask();
  }

  stop(): void {
    this.#chore.stop();
  }

  async #work(): Promise<void> {
    while (!this.#chore.isStopped) {
      const next = await this.#tables.database.statements.get<RunKey>(nextRun, [...this.#others]);
      if (next === undefined) return;
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

  async #eraseRun(run: RunKey): Promise<void> {
    const { database } = this.#tables;
    let cursor: Cursor | "end" | undefined = { number: 0, link: chainStart(run) };
    while (cursor !== undefined && cursor !== "end" && !this.#chore.isStopped) {
      const from: Cursor = cursor;
      cursor = await database.write((transaction) => this.#slice(transaction, run, from));
    }
    if (cursor === undefined) this.#others.add(run.id);
    if (cursor !== "end") return;
    // The contents that the erased commits referred to are text of the run, too.
    await this.#collector.collect();
    if (!this.#chore.isStopped)
      await database.write((transaction) => transaction.run(isErased, run.id, run.erases ?? ""));
  }

  /** Erases one chunk. Returns where to continue, or `undefined` if the log is not valid. Call inside a transaction. */
  async #slice(queries: Queries, run: RunKey, from: Cursor): Promise<Cursor | "end" | undefined> {
    let { number, link } = from;
    const rows = await this.#rows.page(queries, run, number, number + mostCommits);
    if (rows.length === 0) return "end";
    for (const row of rows) {
      if (!this.#chain.holds(link, row)) return undefined;
      await this.#eraseRow(queries, run, row, link);
      [number, link] = [row.number + 1, row.link];
    }
    return { number, link };
  }

  async #eraseRow(queries: Queries, run: RunKey, row: CommitRow, before: string): Promise<void> {
    const [commit] = await this.#rows.decodeWhole(queries, run, [row]);
    if (commit === undefined) return;
    const erased = eraseCommit(commit, erasuresOf(run));
    if (erased === commit) return;
    const rest = commitText(encodeCommit(erased, run, this.#hash), this.#large);
    const seal = this.#chain.seal(before, { ...row, body: rest.text, refs: rest.refs });
    await this.#rows.overwrite(queries, run, row, { ...rest, seal });
  }
}
