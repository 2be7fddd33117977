import type { Dialect } from "../../sql/dialect.ts";

export const postgresDialect: Dialect = {
  writesInQueries: true,
  userColumn: "user_name",
  senderColumns: ["sender_tenant", "sender_user"],
  // The inbox of the agent is locked.
  lastMessagePlace: "nextval('{message_places}')",
  senderTenant: "sender_tenant",
  senderUser: "sender_user",

  leave: "owner = NULL",
  sliceMs: Infinity,
  hasApprovalNumbers: true,

  lastCommitAt: "(SELECT at FROM {commits} WHERE run = runs.id ORDER BY number DESC LIMIT 1)",
  agentName: "split_part(agent_id, '/', 1)",
  probesIndexes: false,
  // Transactions with lower ids have ended. Those with this id or a higher one may still add rows.
  changePosition: "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint - 1 AS position",
  hasLabel: (
    name,
    value,
  ) => `EXISTS (SELECT 1 FROM {run_labels} AS label WHERE label.run = runs.id AND label.tenant = runs.tenant
    AND md5(label.name || '=' || label.value) = md5(${name}::text || '=' || ${value}::text)
    AND label.name = ${name} AND label.value = ${value})`,

  entryPlace: "place",
  nextEntryPlace: "(SELECT coalesce(max(place), 0) + 1 FROM {entries} WHERE session = $1)",
  placeBefore: () => 0,
  // A statement costs a round trip.
  entriesAhead: 32,
  entriesOf: (session, { as = "entries", after, upTo } = {}) =>
    `${as}.session = ${session}${after === undefined ? "" : ` AND ${as}.place > ${after}`}${upTo === undefined ? "" : ` AND ${as}.place <= ${upTo}`}`,
  copyEntries: `INSERT INTO {entries} (place, session, stem, number, count, run_id, task, visibility, type, body, refs, seal)
    SELECT $3::bigint + copied.ordinal, $2::bigint, stem, number, count, run_id, task, visibility, type, body, refs, copied.pair ->> 1
    FROM json_array_elements($4::json) WITH ORDINALITY AS copied (pair, ordinal)
    JOIN {entries} AS entries ON session = $1 AND place = (copied.pair ->> 0)::bigint`,

  insertPiece: "INSERT INTO {content_pieces} (content, place, data) VALUES ($1, $2, $3)",
  storesTextPieces: false,
  readContent: "SELECT data FROM {content_pieces} WHERE content = $1 ORDER BY place",
  readAnyContents: `SELECT hash, data FROM (SELECT DISTINCT ON (hash) id, hash FROM {contents} WHERE hash = ANY($1::text[])) AS found
    JOIN {content_pieces} ON content = found.id ORDER BY found.id, place`,
};
