import {
  lineOf,
  redeliveryDelayMs,
  type AgentId,
  type Delivery,
  type Inbox,
  type InboxChange,
  type InboxQuery,
  type InboxSettings,
  type Message,
  type NextMail,
  type RunId,
  type TenantScope,
} from "../../../kernel/index.ts";
import type { CommitSource } from "../commit-source.ts";
import type { Dialect } from "./dialect.ts";
import type { SqlTables } from "./tables.ts";
import { all, announce, get, lock, run, type Value, type Work } from "./work.ts";

/**
 * I2: states of a message. A message with the state `BEHIND` waits for an earlier message of its line. I1: of an
 * acknowledged message, only the id is kept.
 */
const MessageState = Object.freeze({ WAITING: 0, BEHIND: 1, TAKEN: 2, DEAD: 3, ACKNOWLEDGED: 4 });
const { WAITING, BEHIND, TAKEN, DEAD, ACKNOWLEDGED } = MessageState;

interface MessageRow {
  readonly deliveries: number;
  readonly redelivered: number;
  readonly notBefore: number;
  readonly runId: RunId | null;
  readonly body: string;
}

/** A message with its line. */
interface PlacedRow {
  readonly id: number;
  readonly line: string;
  readonly deliveries: number;
}

const columns = `deliveries, redelivered, not_before AS "notBefore", run_id AS "runId", body`;
/** SQL condition for messages in the inbox. It must be the same as in the partial indexes. */
const isHere = `state < ${DEAD}`;
const selectHere = `SELECT ${columns} FROM {messages} WHERE agent_id = $1 AND ${isHere} ORDER BY id LIMIT $2 + 0`;
const findMessages = `SELECT ${columns} FROM {messages}
  WHERE agent_id = $1 AND message_id = ANY($2::text[]) AND state < ${ACKNOWLEDGED}`;
const nextTime = `SELECT min(not_before) AS at FROM {messages} WHERE agent_id = $1 AND state = ${WAITING} AND not_before > $2`;
const anyTaken = `SELECT 1 FROM {messages} WHERE agent_id = $1 AND state = ${TAKEN} LIMIT 1`;
const agentsWaiting = `SELECT name FROM (SELECT unnest($1::text[]) AS name) AS wanted
  WHERE EXISTS (SELECT 1 FROM {messages} WHERE agent_id = name AND state = ${WAITING})`;
const firstSent = `SELECT id FROM {messages} WHERE agent_id = $1 AND line = $2 AND asks = 0 AND ${isHere} ORDER BY id LIMIT 1`;
const advanceSent = `UPDATE {messages} SET state = ${WAITING} WHERE id = $1 AND state = ${BEHIND}`;
const advanceAsking = `UPDATE {messages} SET state = ${WAITING}
  WHERE agent_id = $1 AND line = $2 AND asks = 1 AND id < $3 AND state = ${BEHIND}`;
const isFree = `SELECT 1 FROM {messages} WHERE agent_id = $1 AND message_id = $2 AND state IN (${WAITING}, ${BEHIND})`;
const takeFree = `UPDATE {messages} SET state = ${TAKEN}, run_id = $3
  WHERE agent_id = $1 AND message_id = $2 AND state IN (${WAITING}, ${BEHIND})`;
const findAnswered = `SELECT id, line, deliveries FROM {messages}
  WHERE agent_id = $1 AND message_id = $2 AND ${isHere} AND ($3::text IS NULL OR state <> ${TAKEN} OR run_id = $3)`;
const acknowledge = `UPDATE {messages} SET state = ${ACKNOWLEDGED}, line = NULL, run_id = NULL, body = NULL WHERE id = $1`;
const findHandedBack = `SELECT id, line, deliveries FROM {messages}
  WHERE agent_id = $1 AND message_id = $2 AND ${isHere} AND ($3::text IS NULL OR (state = ${TAKEN} AND run_id = $3))`;
const handBack =
  "UPDATE {messages} SET state = $1, deliveries = $2, not_before = $3, died = $4 WHERE id = $5";
const lastDeath = `SELECT max(died) AS died FROM {messages} WHERE agent_id = $1 AND state = ${DEAD}`;
const agentsOfRun = `SELECT DISTINCT agent_id AS "agentId" FROM {messages} WHERE run_id = $1 AND state = ${TAKEN}`;
const freeTaken = `UPDATE {messages} SET state = ${BEHIND} WHERE run_id = $1 AND state = ${TAKEN}
  RETURNING agent_id AS "agentId", line`;

/** Returns the statements that differ between the SQL dialects. */
function statementsOf({ lastMessagePlace, senderTenant, senderUser, senderColumns }: Dialect) {
  /** S6: SQL condition that any tenant is wanted ($4 is 1), or the sender of a message has tenant $5. */
  const isOfTenant = `($4::integer = 1 OR ${senderTenant} IS NOT DISTINCT FROM $5::text)`;
  /** S6: SQL condition that the sender of a message is in the scope with tenant $1 and user $2. NULL means any. */
  const isSentInScope = `($1::text IS NULL OR ${senderTenant} = $1) AND ($2::text IS NULL OR ${senderUser} = $2)`;
  const added = senderColumns.map((name) => `, ${name}`).join("");
  const places = senderColumns.map((_name, index) => `, $${index + 6}`).join("");
  return {
    insertMessage: `INSERT INTO {messages} (agent_id, message_id, state, deliveries, redelivered, not_before, line, asks, body${added})
      VALUES ($1, $2, ${BEHIND}, 0, 0, 0, $3, $4, $5${places}) ON CONFLICT (agent_id, message_id) DO NOTHING`,
    selectHeads: `SELECT ${columns} FROM {messages}
  WHERE agent_id = $1 AND state = ${WAITING} AND not_before <= $2 AND ${isOfTenant}
  ORDER BY not_before, id LIMIT $3 + 0`,
    /**
     * SQL for the messages that may be delivered at time $2, and for the messages after them or after messages of
     * run $6. If $2 is NULL, only for the messages after those of run $6.
     */
    selectLines: `SELECT ${columns} FROM {messages} AS own
  WHERE agent_id = $1 AND ${isHere} AND ${isOfTenant} AND (
    (state = ${WAITING} AND not_before <= $2::float8) OR (state = ${BEHIND} AND (
      SELECT (state = ${WAITING} AND not_before <= $2::float8) OR (state = ${TAKEN} AND run_id = $6::text) FROM {messages}
      WHERE agent_id = $1 AND line = own.line AND asks = 0 AND ${isHere} ORDER BY id LIMIT 1
    ))
  )
  ORDER BY id LIMIT $3 + 0`,
    selectDead: `SELECT ${columns} FROM {messages}
  WHERE agent_id = $3 AND state = ${DEAD} AND ${isSentInScope} ORDER BY died, id`,
    selectAllDead: `SELECT ${columns} FROM {messages}
  WHERE agent_id > '' AND state = ${DEAD} AND ${isSentInScope} ORDER BY agent_id, died, id`,
    idsOfDead: `SELECT message_id AS "messageId" FROM {messages}
  WHERE agent_id = $3 AND state = ${DEAD} AND ${isSentInScope} ORDER BY died, id`,
    reviveDead: `UPDATE {messages} SET id = ${lastMessagePlace}, state = ${BEHIND}, deliveries = 0, not_before = 0, died = NULL,
    redelivered = redelivered + 1
  WHERE agent_id = $1 AND message_id = $2 AND state = ${DEAD} RETURNING line`,
    takeDead: `UPDATE {messages} SET id = ${lastMessagePlace}, state = ${TAKEN}, died = NULL
  WHERE agent_id = $1 AND message_id = $2 AND run_id = $3 AND state = ${DEAD}`,
  };
}

/** Returns the name of the lock of an inbox. A transaction needs it to change messages of the inbox. */
export function inboxLock(agentId: AgentId): string {
  return `inbox ${agentId}`;
}

/**
 * Returns the names of the locks of the messages that these changes take. A transaction that creates a run takes
 * them, so that another transaction for the same run finds out at once that it is not the first.
 */
export function takeLocks(changes: readonly InboxChange[]): readonly string[] {
  return changes.flatMap((change) =>
    change.type === "take" ? change.messageIds.map((id) => `take ${change.agentId} ${id}`) : [],
  );
}

/** Returns the agents whose inboxes these changes concern. */
export function agentsIn(changes: readonly InboxChange[]): readonly AgentId[] {
  return changes.map((change) => (change.type === "deliver" ? change.message.to : change.agentId));
}

export class SqlInbox implements Inbox {
  readonly settings: InboxSettings;
  readonly #tables: SqlTables;
  readonly #sql: ReturnType<typeof statementsOf>;

  constructor(tables: SqlTables, settings: InboxSettings) {
    this.#tables = tables;
    this.settings = settings;
    this.#sql = statementsOf(tables.dialect);
  }

  deliver(message: Message): Promise<boolean> {
    return this.#write(message.to, () => this.#deliver(message));
  }

  peek(agentId: AgentId, limit = 100): Promise<readonly Delivery[]> {
    return this.#read(selectHere, agentId, limit);
  }

  async find(agentId: AgentId, messageIds: readonly string[]): Promise<readonly Delivery[]> {
    const found = await this.#read(findMessages, agentId, messageIds);
    const byId = new Map(found.map((delivery) => [delivery.message.id, delivery]));
    return messageIds.flatMap((messageId) => byId.get(messageId) ?? []);
  }

  async next(agentId: AgentId, query: InboxQuery): Promise<NextMail> {
    return this.#tables.snapshot(() => this.#next(agentId, query));
  }

  *#next(agentId: AgentId, query: InboxQuery): Work<NextMail> {
    const rows = yield* this.#nextRows(agentId, query);
    const row = yield* get<{ readonly at: number | null }>(nextTime, agentId, query.now);
    return { deliveries: rows.map(deliveryOf), at: row?.at ?? null };
  }

  *#nextRows(
    agentId: AgentId,
    { mode, now, runId, tenantId, limit = 100 }: InboxQuery,
  ): Work<readonly MessageRow[]> {
    const whose = [tenantId === undefined ? 1 : 0, tenantId ?? null] as const;
    if (mode === "each" && runId === undefined)
      return yield* all<MessageRow>(this.#sql.selectHeads, agentId, now, limit, ...whose);
    if (runId === undefined && (yield* get(anyTaken, agentId)) !== undefined) return [];
    const freeBy = mode === "each" ? null : now;
    return yield* all<MessageRow>(this.#sql.selectLines, agentId, freeBy, limit, ...whose, runId ?? null);
  }

  ack(agentId: AgentId, messageIds: readonly string[]): Promise<void> {
    return this.#write(agentId, () => acknowledgeAll(agentId, messageIds));
  }

  nack(agentId: AgentId, messageIds: readonly string[], at?: number): Promise<void> {
    return this.#write(agentId, () => this.#handBack({ agentId, messageIds, at }));
  }

  deadLetters(agentId?: AgentId, scope?: TenantScope): Promise<readonly Delivery[]> {
    const { selectDead, selectAllDead } = this.#sql;
    return agentId === undefined
      ? this.#read(selectAllDead, ...sendersIn(scope))
      : this.#read(selectDead, ...sendersIn(scope), agentId);
  }

  redeliver(agentId: AgentId, messageIds?: readonly string[], scope?: TenantScope): Promise<number> {
    return this.#write(agentId, () => this.#redeliver(agentId, messageIds, scope));
  }

  *#redeliver(
    agentId: AgentId,
    messageIds: readonly string[] | undefined,
    scope: TenantScope | undefined,
  ): Work<number> {
    const { idsOfDead, reviveDead } = this.#sql;
    const dead = yield* all<{ readonly messageId: string }>(idsOfDead, ...sendersIn(scope), agentId);
    const again = dead.filter(({ messageId }) => messageIds?.includes(messageId) ?? true);
    for (const { messageId } of again) {
      const row = yield* get<{ readonly line: string }>(reviveDead, agentId, messageId);
      if (row !== undefined) yield* straighten(agentId, row.line);
    }
    return again.length;
  }

  async waiting(agentIds: readonly AgentId[]): Promise<readonly AgentId[]> {
    const rows = await this.#tables.query(() => all<{ readonly name: AgentId }>(agentsWaiting, agentIds));
    const found = new Set(rows.map(({ name }) => name));
    return agentIds.filter((agentId) => found.has(agentId));
  }

  /** Applies the inbox changes of a commit, inside its transaction, which holds the locks of the inboxes (`agentsIn`). */
  *applyNow(changes: readonly InboxChange[], { runId, at }: CommitSource): Work<void> {
    for (const change of changes) {
      if (change.type === "deliver") yield* this.#deliver(change.message);
      else if (change.type === "take") yield* this.#take(change.agentId, change.messageIds, runId);
      else if (change.type === "ack") yield* acknowledgeAll(change.agentId, change.messageIds, runId);
      else yield* this.#handBack({ ...change, at, runId });
    }
    // A message that is taken makes no other one available.
    if (changes.some(({ type }) => type !== "take")) yield* announce({ kind: "message" });
  }

  async #read(sql: string, ...values: readonly Value[]): Promise<readonly Delivery[]> {
    return (await this.#tables.query(() => all<MessageRow>(sql, ...values))).map(deliveryOf);
  }

  #write<Result>(agentId: AgentId, change: () => Work<Result>): Promise<Result> {
    return this.#tables.transact(function* () {
      yield* lock(inboxLock(agentId));
      const result = yield* change();
      yield* announce({ kind: "message" });
      return result;
    });
  }

  *#deliver(message: Message): Work<boolean> {
    const { to, id, replyTo, sender } = message;
    const line = lineOf(message);
    const asks = replyTo === undefined ? 0 : 1;
    const senders = [sender?.tenantId ?? null, sender?.userId ?? null];
    const stored = senders.slice(0, this.#tables.dialect.senderColumns.length);
    const values = [to, id, line, asks, JSON.stringify(message), ...stored];
    const isNew = yield* run(this.#sql.insertMessage, ...values);
    if (isNew > 0) yield* straighten(to, line);
    return isNew > 0;
  }

  *#take(agentId: AgentId, messageIds: readonly string[], runId: RunId): Work<void> {
    for (const messageId of messageIds)
      if ((yield* run(takeFree, agentId, messageId, runId)) === 0)
        yield* run(this.#sql.takeDead, agentId, messageId, runId);
  }

  /** I4: hands messages back. A message that was delivered too often becomes a dead letter. */
  *#handBack({ agentId, messageIds, at, runId = null }: HandedBack): Work<void> {
    const { maxDeliveries } = this.settings;
    const last = yield* get<{ readonly died: number | null }>(lastDeath, agentId);
    const died = (last?.died ?? 0) + 1;
    for (const messageId of new Set(messageIds)) {
      const row = yield* get<PlacedRow>(findHandedBack, agentId, messageId, runId);
      if (row === undefined) continue;
      const deliveries = row.deliveries + 1;
      const notBefore = at === undefined ? 0 : at + redeliveryDelayMs(deliveries, this.settings);
      if (deliveries >= maxDeliveries) yield* run(handBack, DEAD, deliveries, 0, died, row.id);
      else yield* run(handBack, BEHIND, deliveries, notBefore, null, row.id);
      yield* straighten(agentId, row.line);
    }
  }
}

/** Messages that are handed back, by their run or from outside any run. */
interface HandedBack {
  readonly agentId: AgentId;
  readonly messageIds: readonly string[];
  readonly at?: number | undefined;
  readonly runId?: RunId | null;
}

/** I5: whether no run holds the messages that these changes take. */
export function* areFree(changes: readonly InboxChange[]): Work<boolean> {
  for (const change of changes)
    if (change.type === "take")
      for (const messageId of change.messageIds)
        if ((yield* get(isFree, change.agentId, messageId)) === undefined) return false;
  return true;
}

/** I5: releases the messages of a deleted run. Call it inside a transaction. */
export function* freeMessages(runId: RunId): Work<void> {
  const agents = yield* all<{ readonly agentId: AgentId }>(agentsOfRun, runId);
  if (agents.length === 0) return;
  yield* lock(...agents.map(({ agentId }) => inboxLock(agentId)));
  const freed = yield* all<{ readonly agentId: AgentId; readonly line: string }>(freeTaken, runId);
  for (const { agentId, line } of freed) yield* straighten(agentId, line);
  yield* announce({ kind: "message" });
}

function* acknowledgeAll(
  agentId: AgentId,
  messageIds: readonly string[],
  runId: RunId | null = null,
): Work<void> {
  for (const messageId of messageIds) {
    const row = yield* get<PlacedRow>(findAnswered, agentId, messageId, runId);
    if (row === undefined) continue;
    yield* run(acknowledge, row.id);
    yield* straighten(agentId, row.line);
  }
}

/** I2: marks the messages of the line that no longer wait for an earlier message. */
function* straighten(agentId: AgentId, line: string): Work<void> {
  const first = (yield* get<{ readonly id: number }>(firstSent, agentId, line))?.id;
  if (first !== undefined) yield* run(advanceSent, first);
  yield* run(advanceAsking, agentId, line, first ?? Number.MAX_SAFE_INTEGER);
}

function sendersIn(scope: TenantScope | undefined): readonly [string | null, string | null] {
  return [scope?.tenantId ?? null, scope?.userId ?? null];
}

function deliveryOf({ deliveries, redelivered, notBefore, runId, body }: MessageRow): Delivery {
  return {
    message: JSON.parse(body) as Message,
    deliveries,
    ...(notBefore > 0 && { notBefore }),
    ...(runId !== null && { runId }),
    ...(redelivered > 0 && { redelivered }),
  };
}
