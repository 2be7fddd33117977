import {
  runKinds,
  runStatuses,
  type RunKind,
  type RunQuery,
  type RunSummaryStatus,
} from "../../../../kernel/index.ts";
import { noTenant, pausedText, RunState, tenantText, waitingText } from "../../codec/stored-run.ts";
import type { RunCursor } from "../../run-cursor.ts";
import { Conditions } from "../../sql/conditions.ts";
import { isScheduled, isSuspended } from "../../sql/run-row.ts";

const isPaused = `standing IS NOT DISTINCT FROM '${pausedText}'`;

/** The conditions repeat those of the partial indexes, so that the planner can use them. */
const unfinished: Readonly<Partial<Record<RunSummaryStatus, readonly string[]>>> = {
  pending: [
    `state = ${RunState.READY} AND ended IS NULL AND NOT ${isPaused}`,
    `state = ${RunState.HELD} AND ended IS NULL AND NOT ${isPaused}`,
    `${isSuspended} AND ${isScheduled}`,
  ],
  running: [`state = ${RunState.OWNED} AND ended IS NULL AND standing IS NULL AND owner IS NOT NULL`],
  waiting: [
    `${isSuspended} AND NOT ${isScheduled} AND NOT ${isPaused}`,
    `state = ${RunState.OWNED} AND ended IS NULL AND standing >= '${waitingText}' AND owner IS NOT NULL`,
  ],
  paused: [`standing = '${pausedText}' AND ended IS NULL`],
};

/** The conditions of the rows that have a status, in disjoint parts. A run may also end as `paused`. */
export function rowsOf(status: RunSummaryStatus): readonly string[] {
  const end = (runStatuses as readonly string[]).indexOf(status);
  return [...(unfinished[status] ?? []), ...(end < 0 ? [] : [`ended = ${end} AND ended IS NOT NULL`])];
}

/** The conditions of a part of a list. */
export function conditionsOf(query: RunQuery, rows: string | undefined, cursor: RunCursor): Conditions {
  const { sessionId, agentId, tenantId, userId, kind, createdAfter, createdBefore } = query;
  const { after, isByTime, labels } = cursor;
  const where = new Conditions().add("run_id IS NOT NULL");
  if (rows !== undefined) where.add(rows);
  if (sessionId !== undefined) where.add("session_id = ?", sessionId);
  if (agentId !== undefined) where.add("agent_id = ?", agentId);
  if (tenantId === null) where.add(`tenant = '${noTenant}'`);
  else if (tenantId !== undefined) where.add(`tenant = ? AND tenant <> '${noTenant}'`, tenantText(tenantId));
  if (userId === null) where.add("user_id IS NULL");
  else if (userId !== undefined) where.add("user_id = ? AND user_id IS NOT NULL", userId);
  if (kind !== undefined) where.add(kindTerm(kind));
  if (createdAfter !== undefined) where.add("created_at > ?", createdAfter);
  if (createdBefore !== undefined) where.add("created_at < ?", createdBefore);
  for (const [name, value] of labels)
    where.add(
      `EXISTS (SELECT 1 FROM {run_labels} AS label WHERE label.run = runs.id
         AND md5(label.name || '=' || label.value) = md5(?::text || '=' || ?::text) AND label.name = ? AND label.value = ?)`,
      name,
      value,
      name,
      value,
    );
  if (isByTime) where.add("(created_at, id) < (?, ?)", after.createdAt, after.place);
  else where.add("id < ?", after.place);
  return where;
}

/** The index holds only the kinds after the first, which most runs have. */
function kindTerm(kind: RunKind): string {
  const place = runKinds.indexOf(kind);
  return place === 0 ? "kind = 0" : `kind = ${place} AND kind > 0`;
}
