import { OwnerKind } from "../../codec/owner-kind.ts";
import { firstPromisedFormat, formatSteps } from "../../codec/stored-format.ts";
import { isPausedText, noTenant, RunState } from "../../codec/stored-run.ts";
import { unknownCost } from "../../run-cursor.ts";
import { isCompacting, isInQueue, isScheduled, isSuspended } from "../../sql/run-row.ts";
import { isUnnamed } from "../../sql/session-rows.ts";
import type { FileSchema } from "./migrate.ts";

/** Maximum number of rows of `entries` per session. */
export const rowsPerSession = 4_194_304;

/** L5: SQL for the user in the turns between users. All runs without a user count as one user. */
export const turnUser = "ifnull(user_id, '')";

const latencies = Array.from({ length: 25 }, (_each, bucket) => `latency_${bucket}`);

/**
 * Creates the tables of the newest format in a new file. An upgrade (`formatSteps`) leads files of earlier formats
 * to the same tables.
 *
 * - Keys are integers. An index of one column lists rows with the same value in the order of their creation.
 * - `commits`: one row per commit, with its events inside. Rows are appended. `next_event` is the sequence number
 *   after the last event, so that a binary search finds the commit of any event.
 * - `contents`: large values of commits and entries, each once per tenant. `refs` in `commits` and `entries` lists
 *   the contents of a row and their places in its `body` (`ContentRef`). The pieces of a content have successive
 *   ids; a short text is one piece and stored as text. `content_owners` lists the rows that need a content
 *   (`OwnerKind`); triggers remove a row's ownership with the row, and mark a content that has lost its last owner
 *   as deleted.
 * - `places`: the ids of a run's commits. One row covers successive commits, starting with `number`. The table is
 *   updated for many commits at once; `placed` contains the id up to which it is complete. An index that every
 *   commit updates would write one more page for each run that writes.
 * - `runs.erases` lists the tasks whose text retention erased. `erasing` is 1 until the text is removed from the
 *   file. A commit whose text was erased has a `seal`, which covers the link that its own `link` in the chain
 *   follows.
 * - `runs.recoveries` counts recoveries in a row (L7). It is valid while commit `recovered_at` is the last one, so
 *   that a commit need not update it. `lost` is JSON of the first owner of this count (`LostOwner`), and `lost_at`
 *   the time of the last loss. A release ends the count. `recoveries_in_all` counts all recoveries.
 * - `runs.kind` is an index into `runKinds`. A run is scheduled while it is suspended until its `start_at` (L9).
 * - `runs.spent` is the JSON of a `RunSpend` (K3). NULL means that the run has used nothing.
 * - `runs.change` is the number of the last change of a run's summary (K5). `freed_changes` holds the highest
 *   number of a deleted row.
 * - `runs.cost` follows from `spent`: US dollars, or -1 if a price is unknown.
 * - `runs.flow` is the JSON of the limits of a run (L17). `gate` is the limit that it has to pass next, NULL if it
 *   is admitted. `slot` is the limit of concurrency in which it has a place, until it ends. `rate` and
 *   `admitted_at` say for which rate it counts, and when.
 * - `run_scores`: all scores of runs (Z2). `runs.scores` is the JSON of the current ones, without comments (Z3), so
 *   that a list reads no other table. NULL means that the run has none.
 * - `runs.host` is the machine to which a program has bound the run (L21).
 * - `approvals`: the open questions of runs (K4), in the order in which they were asked. `seq` is the event that
 *   asks.
 * - `run_metadata`: the metadata of a run, apart from its row, because each change of a row writes the whole row.
 *   `run_labels` holds its short top-level strings, by which runs are listed, with the run's tenant and time of
 *   creation.
 * - `runs.standing` is the last standing of a run that has not ended (`standingText`). NULL means running.
 * - `runs.ended` is the status with which a run ended, as an index into `runStatuses`.
 * - `messages`: for `state` see `MessageState`. `line` is the line of the sender. `asks` is 1 if the message asks
 *   for a reply. `died` orders the dead letters of an agent by the time at which they became dead letters.
 * - `sessions.leaf_id` is the current entry (N2), `last_id` the current entry of child tasks (N3). `name` and
 *   `title` repeat what entries say, and `size` is their number, so that a list reads no entries.
 * - `entries`: one row holds `count` successive entries, the first named by `stem` and `number`. The rows of a
 *   session are stored together, in the order of arrival. `seal` is the hash of the row (`Chain.entrySeal`).
 * - `usage_totals`: amounts of runs, also of deleted ones. Tenant, user and model are stored as `tenantText`
 *   returns them. A row holds a month (`monthPeriod`), a day or an hour (`hourPeriod`). `detailed` is 0 in rows
 *   with usage of formats before 19, which counted neither failures nor durations. `latency_0` and the following
 *   count calls by duration (`latencyBoundsMs`).
 * - `allotments`: cap shares, which are the parts of the spending caps that runs in progress hold (B7).
 * - `records`: a write deletes the row and inserts another one, so that `version` is never reused.
 * - Deletion first sets the name to NULL (`run_id`, `session_id` or the content's `hash`). The rows are freed
 *   later.
 * - The indexes for finding work do not contain runs that are suspended without a wake-up time.
 */
const storeTables = `
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
    standing TEXT,
    ended INTEGER,
    ended_at INTEGER,
    recoveries INTEGER NOT NULL DEFAULT 0,
    recovered_at INTEGER,
    erases TEXT,
    erasing INTEGER,
    kind INTEGER NOT NULL,
    title TEXT,
    start_at INTEGER,
    spent TEXT,
    recoveries_in_all INTEGER NOT NULL DEFAULT 0,
    lost TEXT,
    lost_at INTEGER,
    change INTEGER NOT NULL DEFAULT 0,
    cost REAL GENERATED ALWAYS AS (iif(spent IS NULL, 0, ifnull(spent ->> '$.costUsd', ${unknownCost}))) VIRTUAL,
    flow TEXT,
    gate TEXT,
    slot TEXT,
    rate TEXT,
    admitted_at INTEGER,
    host TEXT,
    scores TEXT
  );
  CREATE TABLE freed_changes (last INTEGER NOT NULL);
  INSERT INTO freed_changes VALUES (0);
  CREATE TRIGGER run_freed AFTER DELETE ON runs BEGIN
    UPDATE freed_changes SET last = old.change WHERE last < old.change;
  END;
  CREATE INDEX runs_ready ON runs (agent_id, tenant, priority DESC, ${turnUser}, ready_at) WHERE state = 0;
  CREATE INDEX runs_owned ON runs (owner) WHERE owner IS NOT NULL;
  CREATE INDEX runs_waking ON runs (wake_at) WHERE wake_at IS NOT NULL;
  CREATE INDEX runs_of_session ON runs (session_id, ended) WHERE run_id IS NOT NULL;
  CREATE INDEX runs_of_agent ON runs (agent_id, created_at) WHERE run_id IS NOT NULL;
  CREATE INDEX runs_of_name ON runs (substr(agent_id, 1, instr(agent_id || '/', '/') - 1), created_at) WHERE run_id IS NOT NULL;
  CREATE INDEX runs_of_tenant ON runs (tenant, created_at) WHERE tenant <> '${noTenant}' AND run_id IS NOT NULL;
  CREATE INDEX runs_of_user ON runs (user_id, created_at) WHERE user_id IS NOT NULL AND run_id IS NOT NULL;
  CREATE INDEX runs_of_user_in_tenant ON runs (tenant, user_id, created_at)
    WHERE tenant <> '${noTenant}' AND user_id IS NOT NULL AND run_id IS NOT NULL;
  CREATE INDEX runs_by_creation ON runs (created_at) WHERE run_id IS NOT NULL;
  CREATE INDEX runs_of_kind ON runs (kind, created_at) WHERE kind > 0 AND run_id IS NOT NULL;
  CREATE INDEX runs_compacting ON runs (session_id) WHERE ${isCompacting};
  CREATE INDEX runs_held ON runs (session_id) WHERE state = ${RunState.HELD};
  CREATE INDEX runs_suspended ON runs (created_at) WHERE ${isSuspended} AND NOT ${isScheduled} AND run_id IS NOT NULL;
  CREATE INDEX runs_scheduled ON runs (created_at) WHERE ${isSuspended} AND ${isScheduled} AND run_id IS NOT NULL;
  CREATE INDEX runs_paused ON runs (ended) WHERE ${isPausedText} AND ended IS NULL AND run_id IS NOT NULL;
  CREATE INDEX runs_by_end ON runs (ended, created_at) WHERE ended IS NOT NULL AND run_id IS NOT NULL;
  CREATE INDEX runs_by_age_of_end ON runs (ended_at) WHERE ended_at IS NOT NULL AND run_id IS NOT NULL;
  CREATE INDEX runs_erasing ON runs (erasing) WHERE erasing = 1;
  CREATE INDEX runs_by_change ON runs (change);
  CREATE INDEX runs_by_cost ON runs (cost) WHERE run_id IS NOT NULL;
  CREATE INDEX runs_gated ON runs (wake_at) WHERE gate IS NOT NULL AND wake_at IS NOT NULL;
  CREATE INDEX runs_at_gate ON runs (gate, priority DESC, id) WHERE ${isInQueue};
  CREATE INDEX runs_queued ON runs (created_at) WHERE state = ${RunState.QUEUED} AND run_id IS NOT NULL;
  CREATE INDEX runs_in_slot ON runs (slot) WHERE slot IS NOT NULL;
  CREATE INDEX runs_of_rate ON runs (rate, admitted_at) WHERE rate IS NOT NULL;
  CREATE INDEX runs_of_host ON runs (host) WHERE host IS NOT NULL AND state = 0;

  CREATE TABLE run_metadata (
    run INTEGER PRIMARY KEY,
    body TEXT NOT NULL
  );
  CREATE TABLE run_labels (
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    tenant TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    run INTEGER NOT NULL,
    PRIMARY KEY (name, value, created_at, run)
  ) WITHOUT ROWID;
  CREATE INDEX labels_of_run ON run_labels (run);
  CREATE INDEX labels_of_tenant ON run_labels (tenant, name, value, created_at, run) WHERE tenant <> '${noTenant}';

  CREATE TABLE run_scores (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    name TEXT NOT NULL,
    author TEXT NOT NULL,
    value REAL NOT NULL,
    comment TEXT,
    at INTEGER NOT NULL,
    replaced_at INTEGER
  );
  CREATE INDEX scores_of_run ON run_scores (run, id);
  CREATE INDEX scores_by_value ON run_scores (name, value, run) WHERE replaced_at IS NULL;

  CREATE TABLE approvals (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    run INTEGER NOT NULL,
    approval_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    requester TEXT NOT NULL,
    seq INTEGER NOT NULL
  );
  CREATE UNIQUE INDEX approvals_of_run ON approvals (run, approval_id);

  CREATE TABLE commits (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    number INTEGER NOT NULL,
    at INTEGER NOT NULL,
    next_event INTEGER NOT NULL,
    link TEXT NOT NULL,
    body TEXT NOT NULL,
    refs TEXT,
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
    tenant TEXT NOT NULL,
    user_id TEXT,
    updated_at INTEGER NOT NULL,
    leaf_id TEXT,
    last_id TEXT,
    name TEXT,
    title TEXT,
    size INTEGER NOT NULL DEFAULT 0
  );
  CREATE INDEX sessions_by_age ON sessions (updated_at) WHERE session_id IS NOT NULL;
  CREATE INDEX sessions_unnamed ON sessions (updated_at, session_id) WHERE ${isUnnamed};
  CREATE INDEX sessions_of_agent ON sessions (agent_id, updated_at) WHERE session_id IS NOT NULL;
  CREATE INDEX sessions_of_tenant ON sessions (tenant, updated_at) WHERE tenant <> '${noTenant}' AND session_id IS NOT NULL;
  CREATE INDEX sessions_of_user ON sessions (user_id, updated_at) WHERE user_id IS NOT NULL AND session_id IS NOT NULL;
  CREATE TABLE entries (
    id INTEGER PRIMARY KEY CHECK (id / ${rowsPerSession} = session),
    session INTEGER NOT NULL,
    stem TEXT NOT NULL,
    number INTEGER NOT NULL,
    count INTEGER NOT NULL,
    run_id TEXT,
    task INTEGER,
    visibility INTEGER NOT NULL,
    type TEXT NOT NULL,
    body TEXT NOT NULL,
    refs TEXT,
    seal TEXT NOT NULL
  );
  CREATE INDEX entries_by_name ON entries (session, stem, number, count);
  CREATE INDEX entries_unseen ON entries (session, run_id) WHERE visibility < 2;

  CREATE TABLE contents (
    id INTEGER PRIMARY KEY,
    hash TEXT,
    tenant TEXT NOT NULL
  );
  CREATE UNIQUE INDEX contents_by_hash ON contents (hash, tenant);
  CREATE TABLE content_pieces (
    id INTEGER PRIMARY KEY,
    data BLOB NOT NULL
  );
  CREATE TABLE content_owners (
    content INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    owner INTEGER NOT NULL,
    PRIMARY KEY (content, kind, owner)
  ) WITHOUT ROWID;
  CREATE INDEX contents_of_owner ON content_owners (kind, owner);
  CREATE TRIGGER commit_removed AFTER DELETE ON commits WHEN old.refs IS NOT NULL BEGIN
    DELETE FROM content_owners WHERE kind = ${OwnerKind.COMMIT} AND owner = old.id;
  END;
  CREATE TRIGGER entries_removed AFTER DELETE ON entries WHEN old.refs IS NOT NULL BEGIN
    DELETE FROM content_owners WHERE kind = ${OwnerKind.ENTRIES} AND owner = old.id;
  END;
  CREATE TRIGGER entries_moved AFTER UPDATE OF id ON entries WHEN old.refs IS NOT NULL BEGIN
    UPDATE content_owners SET owner = new.id WHERE kind = ${OwnerKind.ENTRIES} AND owner = old.id;
  END;
  CREATE TRIGGER session_removed AFTER DELETE ON sessions BEGIN
    DELETE FROM content_owners WHERE kind = ${OwnerKind.SESSION} AND owner = old.id;
  END;
  CREATE TRIGGER content_disowned AFTER DELETE ON content_owners
    WHEN NOT EXISTS (SELECT 1 FROM content_owners WHERE content = old.content) BEGIN
    UPDATE contents SET hash = NULL WHERE id = old.content;
  END;

  CREATE TABLE followers (
    id INTEGER PRIMARY KEY,
    topic_id TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    UNIQUE (topic_id, agent_id)
  );

  CREATE TABLE usage_totals (
    period TEXT NOT NULL,
    tenant TEXT NOT NULL,
    user TEXT NOT NULL,
    agent TEXT NOT NULL,
    model TEXT NOT NULL,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cached_tokens INTEGER NOT NULL,
    turns INTEGER NOT NULL,
    nano_usd INTEGER NOT NULL,
    lost_tokens INTEGER NOT NULL,
    lost_nano_usd INTEGER NOT NULL,
    unpriced INTEGER NOT NULL,
    runs INTEGER NOT NULL,
    lost_calls INTEGER NOT NULL DEFAULT 0,
    detailed INTEGER NOT NULL DEFAULT 1,
    failed_runs INTEGER NOT NULL DEFAULT 0,
    failed_calls INTEGER NOT NULL DEFAULT 0,
    ${latencies.map((name) => `${name} INTEGER NOT NULL DEFAULT 0,`).join("\n    ")}
    PRIMARY KEY (period, tenant, user, agent, model)
  ) WITHOUT ROWID;
  CREATE TABLE allotments (
    day TEXT NOT NULL,
    tenant TEXT NOT NULL,
    user TEXT NOT NULL,
    run_id TEXT NOT NULL,
    nano_usd INTEGER NOT NULL,
    PRIMARY KEY (day, tenant, user, run_id)
  ) WITHOUT ROWID;
  CREATE INDEX allotments_of_run ON allotments (run_id);

  CREATE TABLE records (
    version INTEGER PRIMARY KEY AUTOINCREMENT,
    namespace TEXT NOT NULL,
    tenant TEXT NOT NULL,
    key TEXT NOT NULL,
    due_at INTEGER,
    body TEXT NOT NULL
  );
  CREATE UNIQUE INDEX records_by_key ON records (namespace, tenant, key);
  CREATE INDEX records_due ON records (namespace, due_at) WHERE due_at IS NOT NULL;
  `;

/** The tables of a store. The application id is "Reev", which distinguishes stores from the databases of other programs. */
export const storeSchema: FileSchema = {
  applicationId: 0x52656576,
  tables: storeTables,
  oldest: firstPromisedFormat,
  migrations: formatSteps.map(({ changes, sqlite }) => ({ changes, script: sqlite })),
};
