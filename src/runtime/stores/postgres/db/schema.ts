import { OwnerKind } from "../../codec/owner-kind.ts";
import { isPausedText, noTenant, RunState } from "../../codec/stored-run.ts";
import { unknownCost } from "../../run-cursor.ts";
import { isCompacting, isInQueue, isScheduled, isSuspended } from "../../sql/run-row.ts";
import { isUnnamed } from "../../sql/session-rows.ts";

/** L5: SQL for the user in the turns between users. All runs without a user count as one user. */
export const turnUser = "coalesce(user_id, '')";

/**
 * Returns statements in which `TEXT` columns are compared by their UTF-8 bytes, whatever the locale of the database
 * is.
 */
export function collated(statements: string): string {
  return statements.replaceAll(/\bTEXT\b/gu, 'text COLLATE "C"');
}

const latencies = Array.from({ length: 25 }, (_each, bucket) => `latency_${bucket}`);

/**
 * Creates the tables of the newest format. An upgrade (`formatSteps`) leads schemas of earlier formats to the same
 * tables. The tables and columns mean what those of the SQLite store mean (`sqlite/db/schema.ts`), with these
 * differences:
 *
 * - `TEXT` is `text COLLATE "C"`: texts are compared by their UTF-8 bytes, whatever the locale of the database is.
 * - Times are `float8`, which holds every integer up to 2^53 and every time that a clock can return.
 * - `commits` has the primary key (run, number). It makes the first write win (J1), and finds the commits of a run.
 * - `runs.holder` is absent: the primary key of `commits` refuses the writes of a second store of the same owner.
 * - `entries` has the key (session, place). `id` is what `content_owners` refers to; it stays when an entry is
 *   moved.
 * - `messages.id` comes from the sequence `message_places`, so that a message can be moved to the end.
 * - `workers`: a worker is alive while `beat_at` is younger than its own lease, by the database's clock.
 *   `incarnation` is the number of the registration: with its next sign of life, a worker finds out that its row
 *   was deleted or replaced. `process` names its process (`worker-process.ts`).
 * - `lost_workers` has a row for each registration whose runs other workers have taken over. `ended`: the process
 *   is known to have ended. `withdrawn`: the worker has given a sign of life since.
 * - `runs.change` is the id of the transaction of the last change of a run's summary (K5).
 * - `approvals.number` is the commit that asks, so that a question is found without a search for its event.
 * - `append_commit` checks the lease and writes the commit (`fencedInsert`). The server plans the statements of a
 *   function once per connection; planning them for each commit takes longer than executing them, because `runs`
 *   has many indexes. The owner is compared in a way that no index supports, so that the row is found by its key.
 * - `deltas` is unlogged: it is empty after a crash of the server.
 * - Triggers remove the ownership of contents with the owner's row. A content that has lost its last owner loses
 *   its hash; its row is locked first, because a transaction in progress may be about to become an owner.
 */
export const storeTables = collated(`
  CREATE TABLE {runs} (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run_id TEXT UNIQUE,
    agent_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    tenant TEXT NOT NULL,
    priority integer NOT NULL,
    agent_version TEXT,
    created_at float8 NOT NULL,
    epoch bigint NOT NULL,
    state integer NOT NULL,
    owner TEXT,
    wake_at float8,
    ready_at float8 NOT NULL,
    mail_count bigint NOT NULL,
    user_id TEXT,
    standing TEXT,
    ended integer,
    ended_at float8,
    recoveries integer NOT NULL DEFAULT 0,
    recovered_at bigint,
    erases TEXT,
    erasing integer,
    kind integer NOT NULL,
    title TEXT,
    start_at float8,
    spent TEXT,
    recoveries_in_all integer NOT NULL DEFAULT 0,
    lost TEXT,
    lost_at float8,
    change bigint NOT NULL DEFAULT 0,
    cost float8 NOT NULL GENERATED ALWAYS AS
      (CASE WHEN spent IS NULL THEN 0 ELSE coalesce((spent::json ->> 'costUsd')::float8, ${unknownCost}) END) STORED,
    flow TEXT,
    gate TEXT,
    slot TEXT,
    rate TEXT,
    admitted_at float8,
    host TEXT,
    scores TEXT
  ) WITH (fillfactor = 70);
  CREATE INDEX runs_ready ON {runs} (agent_id, tenant, priority DESC, (${turnUser}), ready_at) WHERE state = ${RunState.READY};
  CREATE INDEX runs_owned ON {runs} (owner) WHERE owner IS NOT NULL;
  CREATE INDEX runs_waking ON {runs} (wake_at) WHERE wake_at IS NOT NULL;
  CREATE INDEX runs_of_session ON {runs} (session_id, ended) WHERE run_id IS NOT NULL;
  CREATE INDEX runs_of_agent ON {runs} (agent_id, created_at, id) WHERE run_id IS NOT NULL;
  CREATE INDEX runs_of_name ON {runs} (split_part(agent_id, '/', 1), created_at, id) WHERE run_id IS NOT NULL;
  CREATE INDEX runs_of_tenant ON {runs} (tenant, created_at, id) WHERE tenant <> '${noTenant}' AND run_id IS NOT NULL;
  CREATE INDEX runs_of_user ON {runs} (user_id, created_at, id) WHERE user_id IS NOT NULL AND run_id IS NOT NULL;
  CREATE INDEX runs_of_user_in_tenant ON {runs} (tenant, user_id, created_at, id)
    WHERE tenant <> '${noTenant}' AND user_id IS NOT NULL AND run_id IS NOT NULL;
  CREATE INDEX runs_by_creation ON {runs} (created_at, id) WHERE run_id IS NOT NULL;
  CREATE INDEX runs_of_kind ON {runs} (kind, created_at, id) WHERE kind > 0 AND run_id IS NOT NULL;
  CREATE INDEX runs_compacting ON {runs} (session_id) WHERE ${isCompacting};
  CREATE INDEX runs_held ON {runs} (session_id) WHERE state = ${RunState.HELD};
  CREATE INDEX runs_suspended ON {runs} (created_at, id) WHERE ${isSuspended} AND NOT ${isScheduled} AND run_id IS NOT NULL;
  CREATE INDEX runs_scheduled ON {runs} (created_at, id) WHERE ${isSuspended} AND ${isScheduled} AND run_id IS NOT NULL;
  CREATE INDEX runs_paused ON {runs} (id) WHERE ${isPausedText} AND ended IS NULL AND run_id IS NOT NULL;
  CREATE INDEX runs_by_end ON {runs} (ended, created_at, id) WHERE ended IS NOT NULL AND run_id IS NOT NULL;
  CREATE INDEX runs_by_age_of_end ON {runs} (ended_at) WHERE ended_at IS NOT NULL AND run_id IS NOT NULL;
  CREATE INDEX runs_erasing ON {runs} (id) WHERE erasing = 1;
  CREATE INDEX runs_deleted ON {runs} (id) WHERE run_id IS NULL;
  CREATE INDEX runs_by_change ON {runs} (change);
  CREATE INDEX runs_by_cost ON {runs} (cost, id) WHERE run_id IS NOT NULL;
  CREATE INDEX runs_gated ON {runs} (wake_at) WHERE gate IS NOT NULL AND wake_at IS NOT NULL;
  CREATE INDEX runs_at_gate ON {runs} (gate, priority DESC, id) WHERE ${isInQueue};
  CREATE INDEX runs_queued ON {runs} (created_at, id) WHERE state = ${RunState.QUEUED} AND run_id IS NOT NULL;
  CREATE INDEX runs_in_slot ON {runs} (slot) WHERE slot IS NOT NULL;
  CREATE INDEX runs_of_rate ON {runs} (rate, admitted_at) WHERE rate IS NOT NULL;

  CREATE TABLE {workers} (
    worker_id TEXT PRIMARY KEY,
    incarnation bigint NOT NULL,
    beat_at timestamptz NOT NULL,
    process TEXT,
    lease_ms float8 NOT NULL DEFAULT 15000
  ) WITH (fillfactor = 50);
  CREATE TABLE {lost_workers} (
    worker_id TEXT NOT NULL,
    incarnation bigint NOT NULL,
    beat_at timestamptz NOT NULL,
    lease_ms float8 NOT NULL,
    process TEXT,
    ended boolean NOT NULL,
    withdrawn boolean NOT NULL DEFAULT false,
    PRIMARY KEY (worker_id, incarnation)
  );

  CREATE TABLE {run_metadata} (
    run bigint PRIMARY KEY,
    body TEXT NOT NULL
  );
  CREATE TABLE {run_labels} (
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    run bigint NOT NULL,
    tenant TEXT NOT NULL DEFAULT '${noTenant}',
    created_at float8 NOT NULL DEFAULT 0,
    PRIMARY KEY (run, name)
  );
  CREATE INDEX runs_of_label ON {run_labels} (md5(name || '=' || value), tenant, run);

  CREATE TABLE {run_scores} (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run bigint NOT NULL,
    name TEXT NOT NULL,
    author TEXT NOT NULL,
    value float8 NOT NULL,
    comment TEXT,
    at float8 NOT NULL,
    replaced_at float8
  );
  CREATE INDEX scores_of_run ON {run_scores} (run, id);
  CREATE INDEX scores_by_value ON {run_scores} (name, value, run) WHERE replaced_at IS NULL;

  CREATE TABLE {approvals} (
    place bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run bigint NOT NULL,
    approval_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    requester TEXT NOT NULL,
    number bigint NOT NULL,
    seq bigint NOT NULL,
    UNIQUE (run, approval_id)
  );

  CREATE TABLE {commits} (
    run bigint NOT NULL,
    number bigint NOT NULL,
    id bigint GENERATED ALWAYS AS IDENTITY,
    at float8 NOT NULL,
    next_event bigint NOT NULL,
    link TEXT NOT NULL,
    body TEXT NOT NULL,
    refs TEXT,
    seal TEXT,
    PRIMARY KEY (run, number)
  );

  CREATE UNLOGGED TABLE {deltas} (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run bigint NOT NULL,
    about TEXT NOT NULL,
    body TEXT NOT NULL
  );
  CREATE INDEX deltas_of_run ON {deltas} (run, id);

  CREATE FUNCTION {append_commit}(p_run bigint, p_number bigint, p_at float8, p_next bigint, p_link text, p_body text,
      p_refs text, p_epoch bigint, p_owner text, p_cleared text[]) RETURNS bigint LANGUAGE plpgsql AS $append$
    DECLARE made bigint;
  BEGIN
    PERFORM 1 FROM {runs} WHERE id = p_run AND epoch = p_epoch AND owner IS NOT DISTINCT FROM p_owner FOR SHARE;
    IF NOT FOUND THEN RETURN NULL; END IF;
    IF cardinality(p_cleared) > 0 THEN DELETE FROM {deltas} WHERE run = p_run AND about = ANY(p_cleared); END IF;
    INSERT INTO {commits} (run, number, at, next_event, link, body, refs)
      VALUES (p_run, p_number, p_at, p_next, p_link, p_body, p_refs)
      ON CONFLICT (run, number) DO NOTHING RETURNING id INTO made;
    RETURN made;
  END $append$;

  CREATE TABLE {mail_ids} (
    run bigint NOT NULL,
    mail_id TEXT NOT NULL,
    PRIMARY KEY (run, mail_id)
  );
  CREATE INDEX mail_of_submits ON {mail_ids} (mail_id) WHERE mail_id >= 'submit ' AND mail_id < 'submit!';
  CREATE TABLE {mail} (
    run bigint NOT NULL,
    place bigint NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (run, place)
  );

  CREATE SEQUENCE {message_places};
  CREATE TABLE {messages} (
    id bigint PRIMARY KEY DEFAULT nextval('{message_places}'),
    agent_id TEXT NOT NULL,
    message_id TEXT NOT NULL,
    state integer NOT NULL,
    deliveries integer NOT NULL,
    redelivered integer NOT NULL,
    not_before float8 NOT NULL,
    line TEXT,
    asks integer NOT NULL,
    run_id TEXT,
    sender_tenant TEXT,
    sender_user TEXT,
    died bigint,
    body TEXT,
    UNIQUE (agent_id, message_id)
  );
  CREATE INDEX messages_here ON {messages} (agent_id, id) WHERE state < 3;
  CREATE INDEX messages_sent ON {messages} (agent_id, line, id) WHERE asks = 0 AND state < 3;
  CREATE INDEX messages_asking ON {messages} (agent_id, line, id) WHERE asks = 1 AND state = 1;
  CREATE INDEX messages_next ON {messages} (agent_id, not_before, id) WHERE state = 0;
  CREATE INDEX messages_taken ON {messages} (agent_id) WHERE state = 2;
  CREATE INDEX messages_of_run ON {messages} (run_id) WHERE state = 2;
  CREATE INDEX messages_dead ON {messages} (agent_id, died) WHERE state = 3;

  CREATE TABLE {sessions} (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session_id TEXT UNIQUE,
    agent_id TEXT NOT NULL,
    tenant TEXT NOT NULL,
    user_id TEXT,
    updated_at float8 NOT NULL,
    leaf_id TEXT,
    last_id TEXT,
    name TEXT,
    title TEXT,
    size bigint NOT NULL DEFAULT 0
  ) WITH (fillfactor = 80);
  CREATE INDEX sessions_by_age ON {sessions} (updated_at, id) WHERE session_id IS NOT NULL;
  CREATE INDEX sessions_unnamed ON {sessions} (updated_at, session_id) WHERE ${isUnnamed};
  CREATE INDEX sessions_of_agent ON {sessions} (agent_id, updated_at, id) WHERE session_id IS NOT NULL;
  CREATE INDEX sessions_of_tenant ON {sessions} (tenant, updated_at, id) WHERE tenant <> '${noTenant}' AND session_id IS NOT NULL;
  CREATE INDEX sessions_of_user ON {sessions} (user_id, updated_at, id) WHERE user_id IS NOT NULL AND session_id IS NOT NULL;
  CREATE INDEX sessions_deleted ON {sessions} (id) WHERE session_id IS NULL;
  CREATE TABLE {entries} (
    session bigint NOT NULL,
    place bigint NOT NULL,
    id bigint GENERATED ALWAYS AS IDENTITY,
    stem TEXT NOT NULL,
    number bigint NOT NULL,
    count integer NOT NULL,
    run_id TEXT,
    task bigint,
    visibility integer NOT NULL,
    type TEXT NOT NULL,
    body TEXT NOT NULL,
    refs TEXT,
    seal TEXT NOT NULL,
    PRIMARY KEY (session, place)
  );
  CREATE INDEX entries_by_name ON {entries} (session, stem, number);
  CREATE INDEX entries_unseen ON {entries} (session, run_id) WHERE visibility < 2;

  CREATE TABLE {contents} (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    hash TEXT,
    tenant TEXT NOT NULL,
    UNIQUE (hash, tenant)
  );
  CREATE INDEX contents_deleted ON {contents} (id) WHERE hash IS NULL;
  CREATE TABLE {content_pieces} (
    content bigint NOT NULL,
    place integer NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (content, place)
  );
  CREATE TABLE {content_owners} (
    content bigint NOT NULL,
    kind integer NOT NULL,
    owner bigint NOT NULL,
    PRIMARY KEY (kind, owner, content)
  );
  CREATE INDEX owners_of_content ON {content_owners} (content);
  CREATE FUNCTION {disown}() RETURNS trigger LANGUAGE plpgsql AS $disown$ BEGIN
    DELETE FROM {content_owners} WHERE kind = TG_ARGV[0]::integer AND owner = old.id;
    RETURN NULL;
  END $disown$;
  CREATE TRIGGER commit_removed AFTER DELETE ON {commits} FOR EACH ROW WHEN (old.refs IS NOT NULL)
    EXECUTE FUNCTION {disown}(${OwnerKind.COMMIT});
  CREATE TRIGGER entries_removed AFTER DELETE ON {entries} FOR EACH ROW WHEN (old.refs IS NOT NULL)
    EXECUTE FUNCTION {disown}(${OwnerKind.ENTRIES});
  CREATE TRIGGER session_removed AFTER DELETE ON {sessions} FOR EACH ROW
    EXECUTE FUNCTION {disown}(${OwnerKind.SESSION});
  CREATE FUNCTION {free_content}() RETURNS trigger LANGUAGE plpgsql AS $free$ BEGIN
    PERFORM 1 FROM {contents} WHERE id = old.content FOR UPDATE;
    UPDATE {contents} SET hash = NULL WHERE id = old.content
      AND NOT EXISTS (SELECT 1 FROM {content_owners} WHERE content = old.content);
    RETURN NULL;
  END $free$;
  CREATE TRIGGER content_disowned AFTER DELETE ON {content_owners} FOR EACH ROW EXECUTE FUNCTION {free_content}();

  CREATE TABLE {followers} (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    topic_id TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    UNIQUE (topic_id, agent_id)
  );

  CREATE TABLE {usage_totals} (
    period TEXT NOT NULL,
    tenant TEXT NOT NULL,
    user_name TEXT NOT NULL,
    agent TEXT NOT NULL,
    model TEXT NOT NULL,
    input_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    cached_tokens bigint NOT NULL,
    turns bigint NOT NULL,
    nano_usd bigint NOT NULL,
    lost_tokens bigint NOT NULL,
    lost_nano_usd bigint NOT NULL,
    unpriced bigint NOT NULL,
    runs bigint NOT NULL,
    lost_calls bigint NOT NULL DEFAULT 0,
    detailed integer NOT NULL DEFAULT 1,
    failed_runs bigint NOT NULL DEFAULT 0,
    failed_calls bigint NOT NULL DEFAULT 0,
    ${latencies.map((name) => `${name} bigint NOT NULL DEFAULT 0,`).join("\n    ")}
    PRIMARY KEY (period, tenant, user_name, agent, model)
  ) WITH (fillfactor = 70);
  CREATE TABLE {allotments} (
    day TEXT NOT NULL,
    tenant TEXT NOT NULL,
    user_name TEXT NOT NULL,
    run_id TEXT NOT NULL,
    nano_usd bigint NOT NULL,
    PRIMARY KEY (day, tenant, user_name, run_id)
  );
  CREATE INDEX allotments_of_run ON {allotments} (run_id);

  CREATE TABLE {records} (
    version bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    namespace TEXT NOT NULL,
    tenant TEXT NOT NULL,
    key TEXT NOT NULL,
    due_at float8,
    body TEXT NOT NULL,
    UNIQUE (namespace, tenant, key)
  );
  CREATE INDEX records_due ON {records} (namespace, due_at) WHERE due_at IS NOT NULL;
`);
