import type { FileSchema } from "./migrate.ts";
import { noTenant, RunState } from "./run-row.ts";

/** "Reev", in the header of the file: tells our files from those of others. */
const applicationId = 0x52656576;

/** A session has room for so many rows of entries. */
export const mostStrands = 4_194_304;

/** The condition that rows of `entries` are those of a session: they lie together. */
export function entriesOfSession(session: string): string {
  return `entries.id > ${session} * ${mostStrands} AND entries.id < (${session} + 1) * ${mostStrands}`;
}

/** The condition that a row of `sessions` may be one that nobody named (`unnamedSessionId`): "`" is the sign after "_". */
export const isUnnamed = "session_id >= 'ses_run_' AND session_id < 'ses_run`'";

/**
 * From each version of the tables to the next; the first makes them. What has been released is never changed, only followed. None has been
 * yet: until then, whoever changes what a file holds counts `unreleased` up.
 *
 * Keys are integers. A commit is one row, written behind the last, with its events inside; `next_event` is the seq after its last, so that
 * the commit of any seq is found by halving. `places` says where a run's commits lie, those from `number` on in one row; it is brought
 * up to date for many commits at once and says in `placed` how far it is: an index kept with every commit would write a page more
 * for each run that writes.
 * The text of a large commit lies in the blob `commit NUMBER` of its run, and its `body` is empty. `erases` says whose words retention took; `erasing` is 1 until they are out of the file, and a commit they were taken out of has a
 * `seal`, which says what its `link` in the chain followed from. `ended` is how a run ended, by its place in `runStatuses`. Indexes of one column are in the order of creation within it.
 * `state` of a message: see `MessageState`; `line` is its sender's, `asks` is 1 if it wants a reply. `died` counts the times at which messages of an agent became dead letters. A row of `entries` holds `count` of them that follow each other, the first named by `stem` and `number`; those of a
 * session lie together, in the order in which they came.
 * What is deleted loses its name first (`run_id`, `session_id` or the blob's `run_id` is NULL) and is collected later. No index
 * that those use who look for work mentions a run that is suspended without a time to wake.
 */
const migrations: readonly string[] = [
  `
  CREATE TABLE runs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id TEXT UNIQUE,
    agent_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    tenant TEXT NOT NULL,
    priority INTEGER NOT NULL,
    agent_version TEXT,
    created_at INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    state INTEGER NOT NULL,
    owner TEXT,
    holder INTEGER,
    wake_at INTEGER,
    ready_at INTEGER NOT NULL,
    mail_count INTEGER NOT NULL,
    user_id TEXT,
    ended INTEGER,
    ended_at INTEGER,
    erases TEXT,
    erasing INTEGER
  );
  CREATE INDEX runs_ready ON runs (agent_id, tenant, priority DESC, ready_at) WHERE state = 0;
  CREATE INDEX runs_owned ON runs (owner) WHERE owner IS NOT NULL;
  CREATE INDEX runs_waking ON runs (wake_at) WHERE wake_at IS NOT NULL;
  CREATE INDEX runs_of_session ON runs (session_id, ended) WHERE run_id IS NOT NULL;
  CREATE INDEX runs_of_agent ON runs (agent_id) WHERE run_id IS NOT NULL;
  CREATE INDEX runs_of_tenant ON runs (tenant) WHERE tenant <> '${noTenant}' AND run_id IS NOT NULL;
  CREATE INDEX runs_suspended ON runs (state) WHERE state = ${RunState.SUSPENDED} AND ended IS NULL AND run_id IS NOT NULL;
  CREATE INDEX runs_by_end ON runs (ended) WHERE ended IS NOT NULL AND run_id IS NOT NULL;
  CREATE INDEX runs_by_age_of_end ON runs (ended_at) WHERE ended_at IS NOT NULL AND run_id IS NOT NULL;
  CREATE INDEX runs_erasing ON runs (erasing) WHERE erasing = 1;

  CREATE TABLE commits (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    number INTEGER NOT NULL,
    at INTEGER NOT NULL,
    next_event INTEGER NOT NULL,
    link TEXT NOT NULL,
    body TEXT NOT NULL,
    seal TEXT
  );
  CREATE TABLE places (
    run INTEGER NOT NULL,
    number INTEGER NOT NULL,
    commit_ids TEXT NOT NULL,
    PRIMARY KEY (run, number)
  ) WITHOUT ROWID;
  CREATE TABLE placed (through INTEGER NOT NULL);
  INSERT INTO placed VALUES (0);

  CREATE TABLE deltas (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run INTEGER NOT NULL,
    about TEXT NOT NULL,
    body TEXT NOT NULL
  );
  CREATE INDEX deltas_of_run ON deltas (run, about);

  CREATE TABLE mail_ids (
    run INTEGER NOT NULL,
    mail_id TEXT NOT NULL,
    PRIMARY KEY (run, mail_id)
  ) WITHOUT ROWID;
  CREATE INDEX mail_of_submits ON mail_ids (mail_id) WHERE mail_id >= 'submit ' AND mail_id < 'submit!';
  CREATE TABLE mail (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    place INTEGER NOT NULL,
    body TEXT NOT NULL
  );
  CREATE UNIQUE INDEX mail_of_run ON mail (run, place);

  CREATE TABLE messages (
    id INTEGER PRIMARY KEY,
    agent_id TEXT NOT NULL,
    message_id TEXT NOT NULL,
    state INTEGER NOT NULL,
    deliveries INTEGER NOT NULL,
    redelivered INTEGER NOT NULL,
    not_before INTEGER NOT NULL,
    line TEXT,
    asks INTEGER NOT NULL,
    run_id TEXT,
    died INTEGER,
    body TEXT
  );
  CREATE UNIQUE INDEX messages_by_id ON messages (agent_id, message_id);
  CREATE INDEX messages_here ON messages (agent_id, id) WHERE state < 3;
  CREATE INDEX messages_sent ON messages (agent_id, line, id) WHERE asks = 0 AND state < 3;
  CREATE INDEX messages_asking ON messages (agent_id, line, id) WHERE asks = 1 AND state = 1;
  CREATE INDEX messages_next ON messages (agent_id, not_before, id) WHERE state = 0;
  CREATE INDEX messages_taken ON messages (agent_id) WHERE state = 2;
  CREATE INDEX messages_of_run ON messages (run_id) WHERE state = 2;
  CREATE INDEX messages_dead ON messages (agent_id, died) WHERE state = 3;

  CREATE TABLE sessions (
    id INTEGER PRIMARY KEY,
    session_id TEXT UNIQUE,
    agent_id TEXT NOT NULL,
    updated_at INTEGER NOT NULL
  );
  CREATE INDEX sessions_by_age ON sessions (updated_at) WHERE session_id IS NOT NULL;
  CREATE INDEX sessions_unnamed ON sessions (updated_at, session_id) WHERE ${isUnnamed};
  CREATE INDEX sessions_of_agent ON sessions (agent_id, updated_at) WHERE session_id IS NOT NULL;
  CREATE TABLE entries (
    id INTEGER PRIMARY KEY CHECK (id / ${mostStrands} = session),
    session INTEGER NOT NULL,
    stem TEXT NOT NULL,
    number INTEGER NOT NULL,
    count INTEGER NOT NULL,
    run_id TEXT,
    task INTEGER,
    visibility INTEGER NOT NULL,
    type TEXT NOT NULL,
    body TEXT NOT NULL
  );
  CREATE INDEX entries_by_name ON entries (session, stem, number, count);

  CREATE TABLE blobs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id TEXT,
    blob_id TEXT NOT NULL,
    UNIQUE (run_id, blob_id)
  );
  CREATE TABLE blob_pieces (
    id INTEGER PRIMARY KEY,
    blob INTEGER NOT NULL,
    bytes BLOB NOT NULL
  );
  CREATE INDEX pieces_of_blob ON blob_pieces (blob, id);

  CREATE TABLE followers (
    id INTEGER PRIMARY KEY,
    topic_id TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    UNIQUE (topic_id, agent_id)
  );
  `,
];

export const storeSchema: FileSchema = { applicationId, migrations, unreleased: 6 };
