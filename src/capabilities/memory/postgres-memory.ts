import type {
  Clock,
  Fact,
  IdSource,
  JsonObject,
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
import type { MemoryDatabase, MemoryQueries, SqlValue } from "./postgres-database.ts";
import {
  episodeColumns,
  factColumns,
  scopeWord,
  searchEpisodes,
  searchFacts,
  stemsOf,
} from "./postgres-search.ts";
import { indexedWords } from "./postgres-words.ts";

/** Options of `PostgresMemory`. */
export interface PostgresMemoryOptions {
  /** Database with the tables of `postgresTables`. */
  readonly database: MemoryDatabase;
  /** Clock for the times of episodes and facts. */
  readonly clock: Pick<Clock, "now">;
  /** Source of ids for items that are stored without one. */
  readonly ids: IdSource;
}

type NewFact = Pick<Fact, "subject" | "predicate" | "object" | "validFrom">;

const exportPageSize = 200;
/** Maximum number of rows that one transaction deletes. */
const mostDeleted = 1_000;

const findScope = "SELECT id FROM {scopes} WHERE key = $1";
const insertScope = "INSERT INTO {scopes} (key) VALUES ($1) ON CONFLICT (key) DO NOTHING";
const forgetScope = `WITH gone AS (UPDATE {scopes} SET key = NULL WHERE id = $1 RETURNING id)
  SELECT ${["blocks", "episodes", "facts"].map((table) => `(SELECT count(*) FROM {${table}} WHERE scope = $1)`).join(" + ")} AS count
  FROM gone`;
const forgottenScope = "SELECT id FROM {scopes} WHERE key IS NULL ORDER BY id LIMIT 1";
const putBlock = `INSERT INTO {blocks} (scope, name, text) VALUES ($1, $2, $3)
  ON CONFLICT (scope, name) DO UPDATE SET text = excluded.text`;
/** SQL for the words $3 of a text, and its scope as the word $4. */
const words = "to_tsvector('{memory_words}', $3) || array_to_tsvector(ARRAY[$4])";
const insertEpisode = `INSERT INTO {episodes} (scope, id, words, size, text, at, metadata)
  VALUES ($1, $2, ${words}, $5, $6, $7, $8) ON CONFLICT (scope, id) DO NOTHING`;
const insertFact = `INSERT INTO {facts} (scope, id, words, size, subject, predicate, object, valid_from, valid_until, recorded_at)
  VALUES ($1, $2, ${words}, $5, $6, $7, $8, $9, $10, $11)`;
const factsAbout = `SELECT ${factColumns} FROM {facts} WHERE scope = $1 AND subject = $2 AND predicate = $3
  AND hashtextextended(subject, 0) = hashtextextended($2 COLLATE "C", 0)
  AND hashtextextended(predicate, 0) = hashtextextended($3 COLLATE "C", 0)`;

/**
 * A memory in tables of PostgreSQL with full-text search. Several processes may share it. Every write is one transaction, and
 * the writes of one scope run one after another.
 */
export class PostgresMemory implements Memory {
  readonly #database: MemoryDatabase;
  readonly #clock: Pick<Clock, "now">;
  readonly #ids: IdSource;
  #isClosed = false;

  constructor({ database, clock, ids }: PostgresMemoryOptions) {
    this.#database = database;
    this.#clock = clock;
    this.#ids = ids;
  }

  /** Returns the blocks of a scope, sorted by name. */
  blocks(scope: MemoryScope): Promise<readonly MemoryBlock[]> {
    return this.#rows<MemoryBlock>(scope, "SELECT name, text FROM {blocks} WHERE scope = $1 ORDER BY name");
  }

  /** Returns the episodes and facts that match the words of a query. */
  async recall(scope: MemoryScope, query: RecallQuery): Promise<Recall> {
    const range = recallRange(query, this.#clock.now());
    const isEmpty = query.text.trim() === "";
    return this.#database.read(async (queries) => {
      const scopeId = await idOf(queries, scope);
      if (scopeId === undefined) return { episodes: [], facts: [] };
      const stems = await stemsOf(queries, query.text);
      const search = { scope: scopeId, ...range, isEmpty, ...(stems !== undefined && { stems }) };
      return {
        episodes: await searchEpisodes(queries, search),
        facts: await searchFacts(queries, search),
      };
    });
  }

  /** Stores a block, an episode or a fact, and returns its id. */
  async remember(scope: MemoryScope, write: MemoryWrite): Promise<string> {
    checkWrite(write);
    const now = this.#clock.now();
    const id = write.type === "block" ? write.block.name : (write.id ?? this.#ids.next());
    return this.#database.write(async (queries) => {
      const scopeId = await lockScope(queries, scope);
      if (write.type === "block") await writeBlock(queries, scopeId, write.block);
      else if (write.type === "episode") await writeEpisode(queries, scopeId, { ...write, id, at: now });
      else return writeFact(queries, scopeId, { validFrom: now, ...write.fact, id, recordedAt: now });
      return id;
    });
  }

  /**
   * Deletes the named items, or everything in the scope, and returns the number of deleted items. A scope is no
   * longer visible at once; its rows are then deleted in parts. If the process dies before the end, the next
   * process that opens the memory continues.
   */
  async forget(scope: MemoryScope, query?: { readonly ids: readonly string[] }): Promise<number> {
    checkForget(query);
    const count = await this.#database.write(async (queries) => {
      const scopeId = await idOf(queries, scope, "FOR UPDATE");
      if (scopeId === undefined) return 0;
      if (query !== undefined) return forgetItems(queries, scopeId, query.ids);
      const [row] = await queries.all<{ readonly count: number }>(forgetScope, scopeId);
      return row?.count ?? 0;
    });
    if (query === undefined) await this.purge();
    return count;
  }

  /** Deletes the rows of forgotten scopes. */
  async purge(): Promise<void> {
    while (!this.#isClosed) {
      const [scope] = await this.#database.statements.all<{ readonly id: number }>(forgottenScope);
      if (scope === undefined) return;
      for (const table of ["blocks", "episodes", "facts"]) await this.#deleteRows(table, scope.id);
      if (!this.#isClosed)
        await this.#database.write((queries) =>
          queries.run("DELETE FROM {scopes} WHERE id = $1 AND key IS NULL", scope.id),
        );
    }
  }

  /**
   * Yields everything in a scope. It reads page by page, so that a large memory is not loaded as a whole. Items
   * that are written during the export may be missing.
   */
  async *export(scope: MemoryScope): AsyncIterable<JsonObject> {
    for (const block of await this.blocks(scope)) yield { type: "block", ...block };
    for await (const row of this.#pages<EpisodeRow>(scope, "episodes", episodeColumns))
      yield { type: "episode", ...episodeOf(row) };
    for await (const { place: _place, ...fact } of this.#pages<Fact>(scope, "facts", factColumns))
      yield { type: "fact", ...fact };
  }

  /** Closes the connections. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.#database.close();
  }

  /** Calls `close` at the end of the block that declares the memory with `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #deleteRows(table: string, scope: number): Promise<void> {
    const sql = `DELETE FROM {${table}} WHERE ctid = ANY(ARRAY(SELECT ctid FROM {${table}} WHERE scope = $1 LIMIT ${mostDeleted}))`;
    let count = 1;
    while (count > 0 && !this.#isClosed)
      count = await this.#database.write((queries) => queries.run(sql, scope));
  }

  async *#pages<Row extends object>(
    scope: MemoryScope,
    table: "episodes" | "facts",
    columns: string,
  ): AsyncIterable<Row & { readonly place: number }> {
    const sql = `SELECT place, ${columns} FROM {${table}} WHERE scope = $1 AND place > $2 ORDER BY place LIMIT ${exportPageSize}`;
    for (let after = 0; ;) {
      const page = await this.#rows<Row & { readonly place: number }>(scope, sql, after);
      yield* page;
      const last = page.at(-1);
      if (last === undefined || page.length < exportPageSize) return;
      after = last.place;
    }
  }

  /** Returns the rows of a query whose first parameter is the scope. */
  #rows<Row extends object>(scope: MemoryScope, sql: string, ...values: SqlValue[]): Promise<Row[]> {
    return this.#database.read(async (queries) => {
      const scopeId = await idOf(queries, scope);
      return scopeId === undefined ? [] : queries.all<Row>(sql, scopeId, ...values);
    });
  }
}

async function idOf(queries: MemoryQueries, scope: MemoryScope, lock = ""): Promise<number | undefined> {
  const [row] = await queries.all<{ readonly id: number }>(`${findScope} ${lock}`, scopeKey(scope));
  return row?.id;
}

/** Y3: locks the scope until the end of the transaction, and creates it if it does not exist. */
async function lockScope(queries: MemoryQueries, scope: MemoryScope): Promise<number> {
  for (;;) {
    const id = await idOf(queries, scope, "FOR UPDATE");
    if (id !== undefined) return id;
    await queries.run(insertScope, scopeKey(scope));
  }
}

async function writeBlock(queries: MemoryQueries, scope: number, { name, text }: MemoryBlock): Promise<void> {
  if (text === "") await queries.run("DELETE FROM {blocks} WHERE scope = $1 AND name = $2", scope, name);
  else await queries.run(putBlock, scope, name, text);
}

async function writeEpisode(
  queries: MemoryQueries,
  scope: number,
  {
    id,
    text,
    at,
    metadata,
  }: Extract<MemoryWrite, { type: "episode" }> & { readonly id: string; readonly at: number },
): Promise<void> {
  const index = indexedWords(text);
  const data = metadata === undefined ? null : JSON.stringify(metadata);
  await queries.run(insertEpisode, scope, id, index.text, scopeWord(scope), index.count, text, at, data);
}

/** Y3: stores a fact and returns its id. If a fact already says the same, returns the id of that fact. */
async function writeFact(
  queries: MemoryQueries,
  scope: number,
  fact: NewFact & Pick<Fact, "id" | "recordedAt">,
): Promise<string> {
  const { id, subject, predicate, object, validFrom, recordedAt } = fact;
  const known = await queries.all("SELECT 1 FROM {facts} WHERE scope = $1 AND id = $2", scope, id);
  if (known.length > 0) return id;
  const others = await queries.all<Fact>(factsAbout, scope, subject, predicate);
  const { validUntil, closes, repeats } = supersede(others, fact);
  if (repeats !== null) return repeats;
  if (closes !== null)
    await queries.run(
      "UPDATE {facts} SET valid_until = $3 WHERE scope = $1 AND id = $2",
      scope,
      closes,
      validFrom,
    );
  const index = indexedWords(factText(fact));
  const place = [scope, id, index.text, scopeWord(scope), index.count] as const;
  await queries.run(insertFact, ...place, subject, predicate, object, validFrom, validUntil, recordedAt);
  return id;
}

async function forgetItems(queries: MemoryQueries, scope: number, ids: readonly string[]): Promise<number> {
  let count = 0;
  for (const [table, column] of [
    ["blocks", "name"],
    ["episodes", "id"],
    ["facts", "id"],
  ])
    count += await queries.run(
      `DELETE FROM {${table}} WHERE scope = $1 AND ${column} = ANY($2::text[])`,
      scope,
      ids,
    );
  return count;
}
