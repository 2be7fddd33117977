import { isPausedText, noTenant, RunState } from "../../codec/stored-run.ts";
import { unknownCost } from "../../run-cursor.ts";
import { isScheduled, isSuspended } from "../../sql/run-row.ts";
import { collated } from "./schema.ts";

/**
 * Format 14. A worker is judged by the lease that it registered with; the workers of format 13 had the default, as far as is known.
 * The number of unreported calls of format 13 is not known.
 */
const lostOwners = `
  ALTER TABLE {workers} ADD COLUMN lease_ms float8 NOT NULL DEFAULT 15000;
  ALTER TABLE {runs} ADD COLUMN lost TEXT;
  ALTER TABLE {runs} ADD COLUMN lost_at float8;
  DROP INDEX {runs_paused};
  CREATE INDEX runs_paused ON {runs} (id) WHERE ${isPausedText} AND ended IS NULL AND run_id IS NOT NULL;
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
  ALTER TABLE {usage_totals} ADD COLUMN lost_calls bigint NOT NULL DEFAULT 0;
`;

/** Format 15. `sessions.size` is the number of entries of a session, so that a list reads no entries. */
const sessionSizes = `
  ALTER TABLE {sessions} ADD COLUMN size bigint NOT NULL DEFAULT 0;
  UPDATE {sessions} AS sessions SET size = counted.size
    FROM (SELECT session, sum(count) AS size FROM {entries} GROUP BY session) AS counted WHERE counted.session = sessions.id;
`;

/** Format 16. Commits may hold what model calls were sent (J11). Earlier versions would neither erase it nor find contents in it. */
const sentRequests = "SELECT 1;";

/**
 * Format 17. `runs.change` is the id of the transaction of the last change of a run's summary (K5), and `runs.cost` follows from
 * `spent`: US dollars, or -1 if a price is unknown. `run_labels` has the run's tenant. The indexes of lists hold the time of creation.
 */
const runChanges = `
  ALTER TABLE {runs} ADD COLUMN change bigint NOT NULL DEFAULT 0;
  ALTER TABLE {runs} ADD COLUMN cost float8 NOT NULL GENERATED ALWAYS AS
    (CASE WHEN spent IS NULL THEN 0 ELSE coalesce((spent::json ->> 'costUsd')::float8, ${unknownCost}) END) STORED;
  CREATE INDEX runs_by_change ON {runs} (change);
  CREATE INDEX runs_by_cost ON {runs} (cost, id) WHERE run_id IS NOT NULL;
  DROP INDEX {runs_of_user};
  CREATE INDEX runs_of_user ON {runs} (user_id, created_at, id) WHERE user_id IS NOT NULL AND run_id IS NOT NULL;
  CREATE INDEX runs_of_user_in_tenant ON {runs} (tenant, user_id, created_at, id)
    WHERE tenant <> '${noTenant}' AND user_id IS NOT NULL AND run_id IS NOT NULL;
  DROP INDEX {runs_of_agent};
  CREATE INDEX runs_of_agent ON {runs} (agent_id, created_at, id) WHERE run_id IS NOT NULL;
  CREATE INDEX runs_of_name ON {runs} (split_part(agent_id, '/', 1), created_at, id) WHERE run_id IS NOT NULL;
  DROP INDEX {runs_of_tenant};
  CREATE INDEX runs_of_tenant ON {runs} (tenant, created_at, id) WHERE tenant <> '${noTenant}' AND run_id IS NOT NULL;
  DROP INDEX {runs_of_kind};
  CREATE INDEX runs_of_kind ON {runs} (kind, created_at, id) WHERE kind > 0 AND run_id IS NOT NULL;
  DROP INDEX {runs_suspended};
  CREATE INDEX runs_suspended ON {runs} (created_at, id) WHERE ${isSuspended} AND NOT ${isScheduled} AND run_id IS NOT NULL;
  DROP INDEX {runs_scheduled};
  CREATE INDEX runs_scheduled ON {runs} (created_at, id) WHERE ${isSuspended} AND ${isScheduled} AND run_id IS NOT NULL;
  DROP INDEX {runs_by_end};
  CREATE INDEX runs_by_end ON {runs} (ended, created_at, id) WHERE ended IS NOT NULL AND run_id IS NOT NULL;
  ALTER TABLE {run_labels} ADD COLUMN tenant TEXT NOT NULL DEFAULT '${noTenant}';
  ALTER TABLE {run_labels} ADD COLUMN created_at float8 NOT NULL DEFAULT 0;
  UPDATE {run_labels} AS labels SET tenant = runs.tenant, created_at = runs.created_at FROM {runs} AS runs WHERE runs.id = labels.run;
  DROP INDEX {runs_of_label};
  CREATE INDEX runs_of_label ON {run_labels} (md5(name || '=' || value), tenant, run);
`;

/** Format 18. `runs.kind` may be the index of `workflow`, which earlier versions would execute as an invocation. */
const workflows = "SELECT 1;";

/**
 * Format 19. `usage_totals` has a row per day and, for some weeks, one per hour (`hourPeriod`). `detailed` is 0 in rows with usage of
 * earlier formats, which counted neither failures nor durations. It is a column of its own, because it never changes. `latency_0` and
 * the following count calls by duration (`latencyBoundsMs`).
 */
const usageHours = `
  ALTER TABLE {usage_totals} RENAME COLUMN day TO period;
  ALTER TABLE {usage_totals} ADD COLUMN detailed integer NOT NULL DEFAULT 0;
  ALTER TABLE {usage_totals} ALTER COLUMN detailed SET DEFAULT 1;
  ALTER TABLE {usage_totals} ADD COLUMN failed_runs bigint NOT NULL DEFAULT 0;
  ALTER TABLE {usage_totals} ADD COLUMN failed_calls bigint NOT NULL DEFAULT 0;
  ${Array.from({ length: 25 }, (_each, bucket) => `ALTER TABLE {usage_totals} ADD COLUMN latency_${bucket} bigint NOT NULL DEFAULT 0;`).join("\n  ")}
`;

/** Format 20. Steps may have records of failed attempts (J5). Earlier versions would start with the first attempt again. */
const attempts = "SELECT 1;";

/** Format 21. Logs may have published values and updates. Earlier versions would not take an update that a step has recorded. */
const updates = "SELECT 1;";

/** Format 22. Runs may have compensations. Earlier versions would end a cancelled run without them. */
const compensations = "SELECT 1;";

/**
 * Format 23. A run may have callers, which wait for its end and may have reserved a part of their budget for it. Earlier
 * versions would end it without telling them.
 */
const calls = "SELECT 1;";

/** Format 24. Journals may have decisions of `ctx.patched`. Earlier versions would wait for a replay to reach them. */
const patches = "SELECT 1;";

/**
 * Format 25. `runs.flow` is the JSON of the limits of a run (L17). `gate` is the limit that it has to pass next, NULL if it is admitted.
 * `slot` is the limit of concurrency in which it has a place, until it ends. `rate` and `admitted_at` say for which rate it counts, and when.
 */
const flows = `
  ALTER TABLE {runs} ADD COLUMN flow TEXT;
  ALTER TABLE {runs} ADD COLUMN gate TEXT;
  ALTER TABLE {runs} ADD COLUMN slot TEXT;
  ALTER TABLE {runs} ADD COLUMN rate TEXT;
  ALTER TABLE {runs} ADD COLUMN admitted_at float8;
  CREATE INDEX runs_gated ON {runs} (wake_at) WHERE gate IS NOT NULL AND wake_at IS NOT NULL;
  CREATE INDEX runs_at_gate ON {runs} (gate, priority DESC, id) WHERE state = ${RunState.QUEUED};
  CREATE INDEX runs_queued ON {runs} (created_at, id) WHERE state = ${RunState.QUEUED} AND run_id IS NOT NULL;
  CREATE INDEX runs_in_slot ON {runs} (slot) WHERE slot IS NOT NULL;
  CREATE INDEX runs_of_rate ON {runs} (rate, admitted_at) WHERE rate IS NOT NULL;
`;

/** Format 26. Runs may have promises. Earlier versions would let a second step wait forever for a promise that is settled. */
const promises = "SELECT 1;";

/**
 * Format 27. Runs may be calls of objects, and commits may change the states of their keys (L19). Earlier versions would let several
 * calls of a key run at a time, and would not store the states. Runs may collect starts (L20), which earlier versions would lose.
 */
const objects = "SELECT 1;";

/** Format 28. Tasks may wait for money without a seat (B5). Earlier versions would not know the commands of their seats. */
const topUps = "SELECT 1;";

/** The amounts that a row of a month adds up. */
const monthAmounts = [
  "input_tokens",
  "output_tokens",
  "cached_tokens",
  "turns",
  "nano_usd",
  "lost_tokens",
  "lost_nano_usd",
  "unpriced",
  "runs",
  "lost_calls",
  "failed_runs",
  "failed_calls",
  ...Array.from({ length: 25 }, (_each, bucket) => `latency_${bucket}`),
];

/**
 * Format 29. `usage_totals` also has a row per month (`monthPeriod`), for caps per month (B7). Earlier versions would not add to it.
 * Cap shares may belong to an agent of a run (`capShareKey`).
 */
const months = `
  INSERT INTO {usage_totals} (period, tenant, user_name, agent, model, detailed, ${monthAmounts.join(", ")})
    SELECT 'm' || substr(period, 1, 7), tenant, user_name, agent, model, MIN(detailed), ${monthAmounts.map((column) => `SUM(${column})`).join(", ")}
    FROM {usage_totals} WHERE period < 'h' GROUP BY substr(period, 1, 7), tenant, user_name, agent, model;
`;

/** Format 30. Runs may be bound to a machine (L21). Earlier versions would claim them elsewhere. */
const hosts = "ALTER TABLE {runs} ADD COLUMN host TEXT;";

/**
 * Format 31. `run_scores` has all scores of runs (Z2), and `runs.scores` those that count, as JSON. Earlier versions would leave their
 * comments when the text of a run is erased (Z7).
 */
const scores = `
  ALTER TABLE {runs} ADD COLUMN scores TEXT;
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
`;

/**
 * Format 32. `runs_at_gate` also has the queued runs that have mail or an owner, which keep their turn (L17). Earlier versions would let
 * other runs overtake them.
 */
const turns = `
  DROP INDEX {runs_at_gate};
  CREATE INDEX runs_at_gate ON {runs} (gate, priority DESC, id) WHERE gate IS NOT NULL AND state IN (0, 1, 5);
`;

/** The statements that lead from each format to the next, beginning with the oldest one. */
export const migrations: readonly string[] = [
  lostOwners,
  sessionSizes,
  sentRequests,
  runChanges,
  workflows,
  usageHours,
  attempts,
  updates,
  compensations,
  calls,
  patches,
  flows,
  promises,
  objects,
  topUps,
  months,
  hosts,
  scores,
  turns,
].map(collated);
