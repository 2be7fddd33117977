import type {
  Clock,
  Episode,
  Fact,
  IdSource,
  JsonObject,
  MaybePromise,
  Memory,
  MemoryBlock,
  MemoryScope,
  MemoryWrite,
  Recall,
  RecallQuery,
} from "../../kernel/index.ts";
import { supersede } from "./fact-timeline.ts";
import {
  checkForget,
  checkWrite,
  episodeOf,
  factText,
  recallRange,
  scopeKey,
  type EpisodeRow,
} from "./memory-item.ts";

/** SQLite file of a memory. All methods except `patiently` are synchronous. */
interface MemoryFile {
  /** Executes a statement and returns the number of changed rows. */
  run(sql: string, ...values: SqlValue[]): number;
  /** Executes an INSERT and returns the id of the new row. */
  insert(sql: string, ...values: SqlValue[]): number;
  /** Returns the first row of a query, or `undefined` if there is none. */
  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- only the caller knows what a query returns
  get<Row extends object>(sql: string, ...values: SqlValue[]): Row | undefined;
  /** Returns all rows of a query. */
  all<Row extends object>(sql: string, ...values: SqlValue[]): Row[];
  /** Runs `work` in one transaction, which is rolled back if `work` throws. */
  transaction<Result>(kind: "IMMEDIATE" | "DEFERRED", work: () => Result): Result;
  /** Runs `work`, and again while another process holds the lock of the file. */
  patiently<Result>(work: () => Result): MaybePromise<Result>;
  /** Closes the file. */
  close(): void;
}

type SqlValue = string | number | null;

/**
 * Converts a text to an FTS5 query that finds entries of one scope with any of its words. Each word is quoted, so that
 * the text cannot contain query syntax. Returns `null` if the text has no words.
 */
function matchAny(scope: string, text: string): string | null {
  const words = text.normalize("NFC").match(/[\p{L}\p{N}\p{M}_]+/gu);
  if (words === null) return null;
  const wanted = [...new Set(words)].slice(0, maxWords).map((word) => `"${word}"`);
  return `scope : "${scope}" AND text : (${wanted.join(" OR ")})`;
}

/**
 * Maximum number of words of a query. Further words of a long text would make the search slow and hardly change its
 * result.
 */
const maxWords = 64;

/** Returns a scope as a word of the full-text index, so that a search reads only the entries of that scope. */
function scopeWord(scopeId: number): string {
  return `scope${scopeId}`;
}

/** Options of `FullTextMemory`. */
export interface FullTextMemoryOptions {
  /** Open SQLite file with the tables of `memorySchema`. */
  readonly file: MemoryFile;
  /** Clock for the times of episodes and facts. */
  readonly clock: Pick<Clock, "now">;
  /** Source of ids for items that are stored without one. */
  readonly ids: IdSource;
}

const exportPageSize = 200;
const factColumns = `id, subject, predicate, object, valid_from AS validFrom, valid_until AS validUntil,
  recorded_at AS recordedAt`;

/**
 * A memory in one SQLite file with full-text search. Several processes may share the file; every write is one
 * transaction.
 */
export class FullTextMemory implements Memory {
  readonly #file: MemoryFile;
  readonly #clock: Pick<Clock, "now">;
  readonly #ids: IdSource;

  constructor({ file, clock, ids }: FullTextMemoryOptions) {
    this.#file = file;
    this.#clock = clock;
    this.#ids = ids;
  }

  /** Returns the blocks of a scope, sorted by name. */
  blocks(scope: MemoryScope): Promise<readonly MemoryBlock[]> {
    return this.#read(scope, [], (scopeId) =>
      this.#file.all<MemoryBlock>("SELECT name, text FROM blocks WHERE scope = ? ORDER BY name", scopeId),
    );
  }

  /** Returns the episodes and facts that match the words of a query. */
  async recall(scope: MemoryScope, query: RecallQuery): Promise<Recall> {
    const { limit, asOf } = recallRange(query, this.#clock.now());
    return this.#read(scope, { episodes: [], facts: [] }, (scopeId) => ({
      episodes: this.#episodes(scopeId, query.text, limit),
      facts: this.#facts(scopeId, query.text, { limit, asOf }),
    }));
  }

  /** Stores a block, an episode or a fact, and returns its id. */
  async remember(scope: MemoryScope, write: MemoryWrite): Promise<string> {
    checkWrite(write);
    const now = this.#clock.now();
    return this.#write(() => {
      const scopeId = this.#scopeFor(scope);
      if (write.type === "block") return this.#writeBlock(scopeId, write.block);
      const id = write.id ?? this.#ids.next();
      return write.type === "episode"
        ? this.#writeEpisode(scopeId, id, write, now)
        : this.#writeFact(scopeId, id, { validFrom: now, ...write.fact }, now);
    });
  }

  /** Deletes the named items, or everything in the scope, and returns the number of deleted items. */
  async forget(scope: MemoryScope, query?: { readonly ids: readonly string[] }): Promise<number> {
    checkForget(query);
    return this.#write(() => {
      const scopeId = this.#find(scope);
      if (scopeId === undefined) return 0;
      if (query !== undefined) return query.ids.reduce((sum, id) => sum + this.#forgetOne(scopeId, id), 0);
      const word = scopeWord(scopeId);
      for (const words of ["episode_words", "fact_words"])
        this.#file.run(`DELETE FROM ${words} WHERE ${words} MATCH ?`, `scope : "${word}"`);
      return ["blocks", "episodes", "facts"].reduce(
        (sum, table) => sum + this.#file.run(`DELETE FROM ${table} WHERE scope = ?`, scopeId),
        0,
      );
    });
  }

  /**
   * Yields everything in a scope. It reads page by page, so that a large memory is not loaded as a whole. Items
   * that are written during the export may be missing.
   */
  async *export(scope: MemoryScope): AsyncIterable<JsonObject> {
    for (const block of await this.blocks(scope)) yield { type: "block", ...block };
    for await (const row of this.#pages<EpisodeRow>(scope, "episodes", "id, text, at, metadata"))
      yield { type: "episode", ...episodeOf(row) };
    for await (const { row: _row, ...fact } of this.#pages<Fact>(scope, "facts", factColumns))
      yield { type: "fact", ...fact };
  }

  /** Closes the file. */
  async close(): Promise<void> {
    this.#file.close();
  }

  /** Calls `close` at the end of the block that declares the memory with `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #episodes(scopeId: number, text: string, limit: number): readonly Episode[] {
    const match = matchAny(scopeWord(scopeId), text);
    const rows =
      match === null
        ? this.#file.all<EpisodeRow>(
            `SELECT id, text, at, metadata FROM episodes
             WHERE scope = ? AND ? ORDER BY at DESC, row DESC LIMIT ?`,
            scopeId,
            text.trim() === "" ? 1 : 0,
            limit,
          )
        : this.#file.all<EpisodeRow>(
            `SELECT e.id, e.text, e.at, e.metadata FROM episode_words JOIN episodes e ON e.row = episode_words.rowid
             WHERE episode_words MATCH ? ORDER BY bm25(episode_words, 0, 1), e.at DESC, e.row DESC LIMIT ?`,
            match,
            limit,
          );
    return rows.map(episodeOf);
  }

  #facts(
    scopeId: number,
    text: string,
    { limit, asOf }: { readonly limit: number; readonly asOf: number },
  ): readonly Fact[] {
    const valid = "valid_from <= ? AND (valid_until IS NULL OR valid_until > ?)";
    const match = matchAny(scopeWord(scopeId), text);
    if (match === null)
      return this.#file.all<Fact>(
        `SELECT ${factColumns} FROM facts WHERE scope = ? AND ? AND ${valid}
         ORDER BY valid_from DESC, row DESC LIMIT ?`,
        scopeId,
        text.trim() === "" ? 1 : 0,
        asOf,
        asOf,
        limit,
      );
    return this.#file.all<Fact>(
      `SELECT ${factColumns} FROM fact_words JOIN facts ON facts.row = fact_words.rowid
       WHERE fact_words MATCH ? AND ${valid}
       ORDER BY bm25(fact_words, 0, 1), valid_from DESC, facts.row DESC LIMIT ?`,
      match,
      asOf,
      asOf,
      limit,
    );
  }

  #writeBlock(scopeId: number, { name, text }: MemoryBlock): string {
    if (text === "") this.#file.run("DELETE FROM blocks WHERE scope = ? AND name = ?", scopeId, name);
    else
      this.#file.run(
        "INSERT OR REPLACE INTO blocks (scope, name, text) VALUES (?, ?, ?)",
        scopeId,
        name,
        text,
      );
    return name;
  }

  #writeEpisode(
    scopeId: number,
    id: string,
    { text, metadata }: Extract<MemoryWrite, { type: "episode" }>,
    now: number,
  ): string {
    if (this.#has("episodes", scopeId, id)) return id;
    const row = this.#file.insert(
      "INSERT INTO episodes (scope, id, text, at, metadata) VALUES (?, ?, ?, ?, ?)",
      scopeId,
      id,
      text,
      now,
      metadata === undefined ? null : JSON.stringify(metadata),
    );
    this.#index("episode_words", row, scopeId, text);
    return id;
  }

  #writeFact(
    scopeId: number,
    id: string,
    fact: Pick<Fact, "subject" | "predicate" | "object" | "validFrom">,
    now: number,
  ): string {
    const { subject, predicate, object, validFrom } = fact;
    if (this.#has("facts", scopeId, id)) return id;
    const others = this.#file.all<Fact>(
      `SELECT ${factColumns} FROM facts WHERE scope = ? AND subject = ? AND predicate = ?`,
      scopeId,
      subject,
      predicate,
    );
    const { validUntil, closes, repeats } = supersede(others, fact);
    if (repeats !== null) return repeats;
    if (closes !== null)
      this.#file.run(
        "UPDATE facts SET valid_until = ? WHERE scope = ? AND id = ?",
        validFrom,
        scopeId,
        closes,
      );
    const row = this.#file.insert(
      `INSERT INTO facts (scope, id, subject, predicate, object, valid_from, valid_until, recorded_at)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
      scopeId,
      id,
      subject,
      predicate,
      object,
      validFrom,
      validUntil,
      now,
    );
    this.#index("fact_words", row, scopeId, factText(fact));
    return id;
  }

  #forgetOne(scopeId: number, id: string): number {
    let gone = this.#file.run("DELETE FROM blocks WHERE scope = ? AND name = ?", scopeId, id);
    for (const [table, words] of [
      ["episodes", "episode_words"],
      ["facts", "fact_words"],
    ] as const) {
      const row = this.#file.get<{ row: number }>(
        `SELECT row FROM ${table} WHERE scope = ? AND id = ?`,
        scopeId,
        id,
      )?.row;
      if (row === undefined) continue;
      this.#file.run(`DELETE FROM ${words} WHERE rowid = ?`, row);
      gone += this.#file.run(`DELETE FROM ${table} WHERE row = ?`, row);
    }
    return gone;
  }

  #index(words: "episode_words" | "fact_words", row: number, scopeId: number, text: string): void {
    this.#file.run(
      `INSERT INTO ${words} (rowid, scope, text) VALUES (?, ?, ?)`,
      row,
      scopeWord(scopeId),
      text,
    );
  }

  #has(table: "episodes" | "facts", scopeId: number, id: string): boolean {
    return this.#file.get(`SELECT 1 FROM ${table} WHERE scope = ? AND id = ?`, scopeId, id) !== undefined;
  }

  async *#pages<Row extends object>(
    scope: MemoryScope,
    table: "episodes" | "facts",
    columns: string,
  ): AsyncIterable<Row & { readonly row: number }> {
    for (let after = 0; ;) {
      const from = after;
      const page = await this.#read(scope, [], (scopeId) =>
        this.#file.all<Row & { readonly row: number }>(
          `SELECT row, ${columns} FROM ${table} WHERE scope = ? AND row > ? ORDER BY row LIMIT ?`,
          scopeId,
          from,
          exportPageSize,
        ),
      );
      yield* page;
      const last = page.at(-1);
      if (last === undefined || page.length < exportPageSize) return;
      after = last.row;
    }
  }

  #find(scope: MemoryScope): number | undefined {
    return this.#file.get<{ id: number }>("SELECT id FROM scopes WHERE key = ?", scopeKey(scope))?.id;
  }

  #scopeFor(scope: MemoryScope): number {
    return this.#find(scope) ?? this.#file.insert("INSERT INTO scopes (key) VALUES (?)", scopeKey(scope));
  }

  async #read<Found>(scope: MemoryScope, empty: Found, work: (scopeId: number) => Found): Promise<Found> {
    return this.#file.patiently(() =>
      this.#file.transaction("DEFERRED", () => {
        const scopeId = this.#find(scope);
        return scopeId === undefined ? empty : work(scopeId);
      }),
    );
  }

  async #write<Result>(work: () => Result): Promise<Result> {
    return this.#file.patiently(() => this.#file.transaction("IMMEDIATE", work));
  }
}
