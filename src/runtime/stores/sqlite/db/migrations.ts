import type { FileSchema } from "./migrate.ts";
import { unreleasedFormats } from "../../codec/stored-format.ts";
import { isPausedText, noTenant, RunState } from "../../codec/stored-run.ts";
import { unknownCost } from "../../run-cursor.ts";
import { isScheduled, isSuspended } from "../../sql/run-row.ts";
import { storeTables } from "./schema.ts";

/** "Reev" in the header of the file. It distinguishes Reeve's files from other SQLite databases. */
const applicationId = 0x52656576;

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
 * Each migration takes the tables from one format to the next, and `storeTables` creates those of the newest. A released migration
 * never changes; a later migration follows it. No version is released yet: until then, every change of the file's content adds a format.
 */
const migrations: readonly string[] = [
  // Format 14. The number of unreported calls of format 13 is not known.
  `
  ALTER TABLE runs ADD COLUMN lost TEXT;
  ALTER TABLE runs ADD COLUMN lost_at INTEGER;
  DROP INDEX runs_paused;
  CREATE INDEX runs_paused ON runs (ended) WHERE ${isPausedText} AND ended IS NULL AND run_id IS NOT NULL;
  ALTER TABLE usage_totals ADD COLUMN lost_calls INTEGER NOT NULL DEFAULT 0;
  `,
  // Format 15.
  `
  ALTER TABLE sessions ADD COLUMN size INTEGER NOT NULL DEFAULT 0;
  UPDATE sessions SET size = coalesce((SELECT sum(count) FROM entries WHERE session = sessions.id), 0);
  `,
  // Format 16. Commits may hold what model calls were sent (J11). Earlier versions would neither erase it nor find contents in it.
  "SELECT 1;",
  // Format 17.
  `
  ALTER TABLE runs ADD COLUMN change INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE runs ADD COLUMN cost REAL GENERATED ALWAYS AS (iif(spent IS NULL, 0, ifnull(spent ->> '$.costUsd', ${unknownCost}))) VIRTUAL;
  UPDATE runs SET change = id;
  CREATE TABLE freed_changes (last INTEGER NOT NULL);
  INSERT INTO freed_changes VALUES (0);
  CREATE TRIGGER run_freed AFTER DELETE ON runs BEGIN
    UPDATE freed_changes SET last = old.change WHERE last < old.change;
  END;
  CREATE INDEX runs_by_change ON runs (change);
  CREATE INDEX runs_by_cost ON runs (cost) WHERE run_id IS NOT NULL;
  DROP INDEX runs_of_user;
  CREATE INDEX runs_of_user ON runs (user_id, created_at) WHERE user_id IS NOT NULL AND run_id IS NOT NULL;
  CREATE INDEX runs_of_user_in_tenant ON runs (tenant, user_id, created_at)
    WHERE tenant <> '${noTenant}' AND user_id IS NOT NULL AND run_id IS NOT NULL;
  DROP INDEX runs_of_agent;
  CREATE INDEX runs_of_agent ON runs (agent_id, created_at) WHERE run_id IS NOT NULL;
  CREATE INDEX runs_of_name ON runs (substr(agent_id, 1, instr(agent_id || '/', '/') - 1), created_at) WHERE run_id IS NOT NULL;
  DROP INDEX runs_of_tenant;
  CREATE INDEX runs_of_tenant ON runs (tenant, created_at) WHERE tenant <> '${noTenant}' AND run_id IS NOT NULL;
  DROP INDEX runs_of_kind;
  CREATE INDEX runs_of_kind ON runs (kind, created_at) WHERE kind > 0 AND run_id IS NOT NULL;
  DROP INDEX runs_suspended;
  CREATE INDEX runs_suspended ON runs (created_at) WHERE ${isSuspended} AND NOT ${isScheduled} AND run_id IS NOT NULL;
  DROP INDEX runs_scheduled;
  CREATE INDEX runs_scheduled ON runs (created_at) WHERE ${isSuspended} AND ${isScheduled} AND run_id IS NOT NULL;
  DROP INDEX runs_by_end;
  CREATE INDEX runs_by_end ON runs (ended, created_at) WHERE ended IS NOT NULL AND run_id IS NOT NULL;
  CREATE TABLE labels_of_runs (
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    tenant TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    run INTEGER NOT NULL,
    PRIMARY KEY (name, value, created_at, run)
  ) WITHOUT ROWID;
  INSERT INTO labels_of_runs SELECT name, value, tenant, created_at, run FROM run_labels JOIN runs ON runs.id = run;
  DROP TABLE run_labels;
  ALTER TABLE labels_of_runs RENAME TO run_labels;
  CREATE INDEX labels_of_run ON run_labels (run);
  CREATE INDEX labels_of_tenant ON run_labels (tenant, name, value, created_at, run) WHERE tenant <> '${noTenant}';
  `,
  // Format 18. `runs.kind` may be the index of `workflow`, which earlier versions would execute as an invocation.
  "SELECT 1;",
  // Format 19.
  `
  ALTER TABLE usage_totals RENAME COLUMN day TO period;
  ALTER TABLE usage_totals ADD COLUMN detailed INTEGER NOT NULL DEFAULT 1;
  UPDATE usage_totals SET detailed = 0;
  ALTER TABLE usage_totals ADD COLUMN failed_runs INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE usage_totals ADD COLUMN failed_calls INTEGER NOT NULL DEFAULT 0;
  ${Array.from({ length: 25 }, (_each, bucket) => `ALTER TABLE usage_totals ADD COLUMN latency_${bucket} INTEGER NOT NULL DEFAULT 0;`).join("\n  ")}
  `,
  // Format 20. Steps may have records of failed attempts (J5). Earlier versions would start with the first attempt again.
  "SELECT 1;",
  // Format 21. Logs may have published values and updates. Earlier versions would not take an update that a step has recorded.
  "SELECT 1;",
  // Format 22. Runs may have compensations. Earlier versions would end a cancelled run without them.
  "SELECT 1;",
  // Format 23. A run may have callers, which wait for its end and may have reserved a part of their budget for it. Earlier
  // versions would end it without telling them.
  "SELECT 1;",
  // Format 24. Journals may have decisions of `ctx.patched`. Earlier versions would wait for a replay to reach them.
  "SELECT 1;",
  // Format 25.
  `
  ALTER TABLE runs ADD COLUMN flow TEXT;
  ALTER TABLE runs ADD COLUMN gate TEXT;
  ALTER TABLE runs ADD COLUMN slot TEXT;
  ALTER TABLE runs ADD COLUMN rate TEXT;
  ALTER TABLE runs ADD COLUMN admitted_at INTEGER;
  CREATE INDEX runs_gated ON runs (wake_at) WHERE gate IS NOT NULL AND wake_at IS NOT NULL;
  CREATE INDEX runs_at_gate ON runs (gate, priority DESC, id) WHERE state = ${RunState.QUEUED};
  CREATE INDEX runs_queued ON runs (created_at) WHERE state = ${RunState.QUEUED} AND run_id IS NOT NULL;
  CREATE INDEX runs_in_slot ON runs (slot) WHERE slot IS NOT NULL;
  CREATE INDEX runs_of_rate ON runs (rate, admitted_at) WHERE rate IS NOT NULL;
  `,
  // Format 26. Runs may have promises. Earlier versions would let a second step wait forever for a promise that is settled.
  "SELECT 1;",
  // Format 27. Runs may be calls of objects, and commits may change the states of their keys (L19). Earlier versions would let several
  // calls of a key run at a time, and would not store the states. Runs may collect starts (L20), which earlier versions would lose.
  "SELECT 1;",
  // Format 28. Tasks may wait for money without a seat (B5). Earlier versions would not know the commands of their seats.
  "SELECT 1;",
  // Format 29. `usage_totals` also has a row per month (`monthPeriod`), for caps per month (B7). Earlier versions would not add to it.
  // Cap shares may belong to an agent of a run (`capShareKey`).
  `
  INSERT INTO usage_totals (period, tenant, user, agent, model, detailed, ${monthAmounts.join(", ")})
    SELECT 'm' || substr(period, 1, 7), tenant, user, agent, model, MIN(detailed), ${monthAmounts.map((column) => `SUM(${column})`).join(", ")}
    FROM usage_totals WHERE period < 'h' GROUP BY substr(period, 1, 7), tenant, user, agent, model;
  `,
  // Format 30. Runs may be bound to a machine (L21). Earlier versions would claim them elsewhere.
  `
  ALTER TABLE runs ADD COLUMN host TEXT;
  CREATE INDEX runs_of_host ON runs (host) WHERE host IS NOT NULL AND state = 0;
  `,
  // Format 31. Runs may have scores. Earlier versions would leave their comments when the text of a run is erased (Z7).
  `
  ALTER TABLE runs ADD COLUMN scores TEXT;
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
  `,
  // Format 32. `runs_at_gate` also has the queued runs that have mail or an owner, which keep their turn (L17). Earlier versions would
  // let other runs overtake them.
  `
  DROP INDEX runs_at_gate;
  CREATE INDEX runs_at_gate ON runs (gate, priority DESC, id) WHERE gate IS NOT NULL AND state IN (0, 1, 5);
  `,
];

export const storeSchema: FileSchema = {
  applicationId,
  tables: storeTables,
  migrations,
  oldest: unreleasedFormats + 1,
};
