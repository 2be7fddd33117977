import { piecesPerContent } from "../../sql/content-rows.ts";
import type { Dialect, EntryRange } from "../../sql/dialect.ts";
import { isChanged } from "../../sql/run-row.ts";
import { rowsPerSession } from "./schema.ts";

/** Returns the SQL condition for rows of a session. The ids of these rows form one contiguous range. */
function entriesOf(session: string, { as = "entries", after, upTo }: EntryRange = {}): string {
  const from = after ?? `${session} * ${rowsPerSession}`;
  const to = upTo === undefined ? `< (${session} + 1) * ${rowsPerSession}` : `<= ${upTo}`;
  return `${as}.id > ${from} AND ${as}.id ${to}`;
}

function piecesOf(content: string): string {
  return `content_pieces.id >= ${content} * ${piecesPerContent} AND content_pieces.id < (${content} + 1) * ${piecesPerContent}`;
}

/** K5: SQL for a number that is at least as great as every change number so far, including those of deleted rows. */
const lastChange = "max((SELECT last FROM freed_changes), (SELECT ifnull(max(change), 0) FROM runs))";
const nextChange = `(1 + ${lastChange})`;

export const sqliteDialect: Dialect = {
  writesInQueries: false,
  userColumn: "user",
  senderColumns: [],
  lastMessagePlace: "(SELECT max(id) + 1 FROM messages)",
  senderTenant: "body ->> '$.sender.tenantId'",
  senderUser: "body ->> '$.sender.userId'",

  leave: "owner = NULL, holder = NULL",
  holderColumn: "holder",
  // A transaction blocks the event loop.
  sliceMs: 2,
  hasApprovalNumbers: false,

  lastCommitAt: `(SELECT at FROM commits WHERE id =
    (SELECT commit_ids ->> '$[#-1]' FROM places WHERE run = runs.id ORDER BY number DESC LIMIT 1))`,
  lateCommits: "SELECT run, at, max(id) FROM commits WHERE id > (SELECT through FROM placed) GROUP BY run",
  hasLabel: (name, value) =>
    `EXISTS (SELECT 1 FROM run_labels AS more INDEXED BY labels_of_run WHERE more.run = runs.id AND more.name = ${name} AND more.value = ${value})`,
  labelSource: "run_labels CROSS JOIN runs ON runs.id = run_labels.run",
  probesIndexes: true,
  changePosition: `SELECT ${lastChange} AS position`,
  agentName: "substr(agent_id, 1, instr(agent_id || '/', '/') - 1)",

  entryPlace: "id",
  nextEntryPlace: `1 + coalesce((SELECT id FROM entries WHERE ${entriesOf("$1")} ORDER BY id DESC LIMIT 1), $1 * ${rowsPerSession})`,
  placeBefore: (session) => session * rowsPerSession,
  entriesAhead: 1,
  entriesOf,
  copyEntries: `INSERT INTO entries (id, session, stem, number, count, run_id, task, visibility, type, body, refs, seal)
    SELECT $3 + json_each.key + 1, $2, stem, number, count, run_id, task, visibility, entries.type, body, refs,
      json_each.value ->> 1
    FROM json_each($4) CROSS JOIN entries ON entries.id = json_each.value ->> 0 AND session = $1`,

  insertPiece: `INSERT INTO content_pieces (id, data) VALUES ($1 * ${piecesPerContent} + $2, $3)`,
  storesTextPieces: true,
  readContent: `SELECT data FROM content_pieces WHERE ${piecesOf("$1")} ORDER BY id`,
  readAnyContents: `SELECT hash, data FROM contents CROSS JOIN content_pieces ON ${piecesOf("contents.id")}
    WHERE contents.id IN (SELECT min(id) FROM contents WHERE hash = ANY($1::text[]) GROUP BY hash) ORDER BY content_pieces.id`,
};

/**
 * Returns the text of a statement that both SQL stores share (`Work`) in the form for SQLite: the tables have no
 * schema, lists are JSON, and types of parameters and locks of rows are removed.
 */
export function sqliteText(sql: string): string {
  return sql
    .replaceAll(/\{([a-z_]+)\}/gu, "$1")
    .replaceAll(/= ANY\((\$\d+)::[a-z]+\[\]\)/gu, "IN (SELECT value FROM json_each($1))")
    .replaceAll(/<> ALL\((\$\d+)::[a-z]+\[\]\)/gu, "NOT IN (SELECT value FROM json_each($1))")
    .replaceAll(/SELECT unnest\((\$\d+)::[a-z]+\[\]\) AS ([a-z]+)/gu, "SELECT value AS $2 FROM json_each($1)")
    .replaceAll(/::[a-z0-9]+| COLLATE "C"/gu, "")
    .replaceAll("pg_current_xact_id()", nextChange)
    .replaceAll("strpos(", "instr(")
    .replaceAll(/ FOR (?:SHARE|UPDATE|NO KEY UPDATE)/gu, "")
    .replaceAll(/\$(\d+)/gu, "?$1");
}

/** K5: `isChanged` for statements that only SQLite uses. */
export const isChangedHere = sqliteText(isChanged);
