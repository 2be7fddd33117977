import type { Episode, Fact } from "../../kernel/index.ts";
import { episodeOf, type EpisodeRow } from "./memory-item.ts";
import type { MemoryQueries } from "./postgres-database.ts";
import { wantedWords } from "./postgres-words.ts";

export const factColumns = `id, subject, predicate, object, valid_from AS "validFrom", valid_until AS "validUntil",
  recorded_at AS "recordedAt"`;
export const episodeColumns = "id, text, at, metadata";

const stems = "SELECT lexeme FROM unnest(to_tsvector('{memory_words}', $1))";

/** Returns an SQL condition for facts that are valid at the time of a parameter. Episodes are always valid. */
const isValid = (at: string): string =>
  `valid_from <= ${at} AND (valid_until IS NULL OR valid_until > ${at})`;
const always = (at: string): string => `${at}::float8 IS NOT NULL`;

/** SQL for the latest $2 rows of scope $1, at time $3. */
const latestEpisodes = `SELECT ${episodeColumns} FROM {episodes} WHERE scope = $1 AND ${always("$3")}
  ORDER BY at DESC, place DESC LIMIT $2`;
const latestFacts = `SELECT ${factColumns} FROM {facts} WHERE scope = $1 AND ${isValid("$3")}
  ORDER BY valid_from DESC, place DESC LIMIT $2`;

const foundEpisodes = ranked({
  table: "episodes",
  columns: episodeColumns,
  when: always("$4"),
  time: "at",
});
const foundFacts = ranked({
  table: "facts",
  columns: factColumns,
  when: isValid("$4"),
  time: "valid_from",
});

interface Ranking {
  readonly table: "episodes" | "facts";
  readonly columns: string;
  /** Condition for rows that may be returned. */
  readonly when: string;
  /** The column that orders equally good matches. */
  readonly time: string;
}

/**
 * Y4: returns SQL for the best $2 rows of scope $1, which have any of the words $5 and so match $3, ranked by BM25
 * with the usual constants 1.2 and 0.75. The ranking functions of PostgreSQL are not used, because they do not
 * consider how rare a word is.
 */
function ranked({ table, columns, when, time }: Ranking): string {
  return `WITH hits AS MATERIALIZED (
      SELECT place, size, hit.lexeme, cardinality(hit.positions) AS times
      FROM {${table}}, unnest(words) AS hit
      WHERE words @@ $3::tsquery AND ${when} AND hit.lexeme = ANY($5::text[])),
    weights AS (
      SELECT lexeme, ln(1 + (total.rows - count(*) + 0.5) / (count(*) + 0.5)) AS weight
      FROM hits CROSS JOIN (SELECT greatest(count(*), 1) AS rows FROM {${table}} WHERE scope = $1) AS total
      GROUP BY lexeme, total.rows),
    scores AS (
      SELECT place, sum(weight * times / (times + 1.2 * (0.25 + 0.75 * size / usual))) AS score
      FROM hits JOIN weights USING (lexeme) CROSS JOIN (SELECT avg(size) AS usual FROM hits) AS average
      GROUP BY place)
    SELECT ${columns} FROM scores JOIN {${table}} USING (place) ORDER BY score DESC, ${time} DESC, place DESC LIMIT $2`;
}

/** Returns a scope as a word of the index. It contains a colon, so that no text contains the same word. */
export function scopeWord(scope: number): string {
  return `scope:${scope}`;
}

/** What `recall` looks for in a scope. */
export interface Search {
  readonly scope: number;
  readonly limit: number;
  readonly asOf: number;
  /** Stems of the words. Absent for a text without words. */
  readonly stems?: readonly string[];
  /** Whether the text is empty, so that the latest entries are wanted. */
  readonly isEmpty: boolean;
}

/** Returns the stems of the words of a text. `undefined` if it has no words. */
export async function stemsOf(queries: MemoryQueries, text: string): Promise<readonly string[] | undefined> {
  const words = wantedWords(text);
  if (words === null) return undefined;
  const rows = await queries.all<{ readonly lexeme: string }>(stems, words);
  return rows.map(({ lexeme }) => lexeme);
}

export async function searchEpisodes(queries: MemoryQueries, search: Search): Promise<readonly Episode[]> {
  const sql = { latest: latestEpisodes, found: foundEpisodes };
  return (await searched<EpisodeRow>(queries, search, sql)).map(episodeOf);
}

export function searchFacts(queries: MemoryQueries, search: Search): Promise<readonly Fact[]> {
  return searched<Fact>(queries, search, { latest: latestFacts, found: foundFacts });
}

/**
 * Returns the entries for a search. A text without words, such as "?", finds nothing. An empty text finds the
 * latest entries.
 */
async function searched<Row extends object>(
  queries: MemoryQueries,
  { scope, limit, asOf, stems: words, isEmpty }: Search,
  { latest, found }: { readonly latest: string; readonly found: string },
): Promise<readonly Row[]> {
  if (isEmpty) return queries.all<Row>(latest, scope, limit, asOf);
  if (words === undefined || words.length === 0) return [];
  const oneOf = words.map((word) => `'${word}'`).join(" | ");
  return queries.all<Row>(found, scope, limit, `'${scopeWord(scope)}' & (${oneOf})`, asOf, words);
}
