import {
  lineOf,
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
import { deliveryOf, handedBack, MessageState, type MessageRow, type PlacedRow } from "../sql/message-row.ts";
import type { Queries, Value } from "./db/queries.ts";
import type { Tables } from "./db/tables.ts";
import type { Transaction } from "./db/transaction.ts";

const { WAITING, BEHIND, TAKEN, DEAD, ACKNOWLEDGED } = MessageState;
const columns = `deliveries, redelivered, not_before AS "notBefore", run_id AS "runId", body`;
/** The same condition as in the partial indexes. */
const isHere = `state < ${DEAD}`;
/** A new id is behind all ids of the agent, because its inbox is locked. */
const atTheEnd = "nextval('{message_places}')";

const insertMessage = `INSERT INTO {messages} (agent_id, message_id, state, deliveries, redelivered, not_before, line, asks, sender_tenant, sender_user, body)
  VALUES ($1, $2, ${BEHIND}, 0, 0, 0, $3, $4, $5, $6, $7) ON CONFLICT (agent_id, message_id) DO NOTHING`;
const selectHere = `SELECT ${columns} FROM {messages} WHERE agent_id = $1 AND ${isHere} ORDER BY id LIMIT $2`;
const findMessages = `SELECT ${columns} FROM unnest($2::text[]) WITH ORDINALITY AS wanted (name, index)
  JOIN {messages} ON agent_id = $1 AND message_id = wanted.name AND state < ${ACKNOWLEDGED} ORDER BY wanted.index`;
/** S6: whether any tenant is asked for ($4), or the sender of a message has tenant $5. */
const isOfTenant = "($4::integer = 1 OR sender_tenant IS NOT DISTINCT FROM $5::text)";
const selectHeads = `SELECT ${columns} FROM {messages}
  WHERE agent_id = $1 AND state = ${WAITING} AND not_before <= $2 AND ${isOfTenant}
  ORDER BY not_before, id LIMIT $3`;
const nextTime = `SELECT min(not_before) AS at FROM {messages} WHERE agent_id = $1 AND state = ${WAITING} AND not_before > $2`;
const anyTaken = `SELECT 1 FROM {messages} WHERE agent_id = $1 AND state = ${TAKEN} LIMIT 1`;
const agentsWaiting = `SELECT wanted.agent_id AS "agentId" FROM unnest($1::text[]) WITH ORDINALITY AS wanted (agent_id, index)
  WHERE EXISTS (SELECT 1 FROM {messages} AS own WHERE own.agent_id = wanted.agent_id AND own.state = ${WAITING}) ORDER BY wanted.index`;
/**
 * Messages that may be delivered at time $2, and messages behind them or behind messages of run $6. With $2 = NULL only
 * the latter.
 */
const selectLines = `SELECT ${columns} FROM {messages} AS own
  WHERE agent_id = $1 AND ${isHere} AND ${isOfTenant} AND (
    (state = ${WAITING} AND not_before <= $2::float8) OR (state = ${BEHIND} AND EXISTS (
      SELECT 1 FROM (
        SELECT state AS first, not_before AS due, run_id AS taker FROM {messages}
        WHERE agent_id = $1 AND line = own.line AND asks = 0 AND ${isHere} ORDER BY id LIMIT 1
      ) AS head WHERE (first = ${WAITING} AND due <= $2::float8) OR (first = ${TAKEN} AND taker = $6::text)
    ))
  )
  ORDER BY id LIMIT $3`;
/** S6: whether the sender of a message is in the scope with tenant $1 and user $2; NULL means any. */
const isSentInScope = `($1::text IS NULL OR sender_tenant = $1) AND ($2::text IS NULL OR sender_user = $2)`;
const selectDead = `SELECT ${columns} FROM {messages}
  WHERE agent_id = $3 AND state = ${DEAD} AND ${isSentInScope} ORDER BY died, id`;
const selectAllDead = `SELECT ${columns} FROM {messages}
  WHERE state = ${DEAD} AND ${isSentInScope} ORDER BY agent_id, died, id`;
const idsOfDead = `SELECT message_id AS "messageId" FROM {messages}
  WHERE agent_id = $3 AND state = ${DEAD} AND ${isSentInScope} ORDER BY died, id`;
const reviveDead = `UPDATE {messages} SET id = ${atTheEnd}, state = ${BEHIND}, deliveries = 0, not_before = 0, died = NULL,
    redelivered = redelivered + 1
  WHERE agent_id = $1 AND message_id = $2 AND state = ${DEAD} RETURNING line`;
const firstSent = `SELECT id FROM {messages} WHERE agent_id = $1 AND line = $2 AND asks = 0 AND ${isHere} ORDER BY id LIMIT 1`;
const advanceSent = `UPDATE {messages} SET state = ${WAITING} WHERE id = $1 AND state = ${BEHIND}`;
const advanceAsking = `UPDATE {messages} SET state = ${WAITING}
  WHERE agent_id = $1 AND line = $2 AND asks = 1 AND id < $3 AND state = ${BEHIND}`;
const isFree = `SELECT 1 FROM {messages} WHERE agent_id = $1 AND message_id = $2 AND state IN (${WAITING}, ${BEHIND})`;
const takeFree = `UPDATE {messages} SET state = ${TAKEN}, run_id = $3
  WHERE agent_id = $1 AND message_id = $2 AND state IN (${WAITING}, ${BEHIND})`;
const takeDead = `UPDATE {messages} SET id = ${atTheEnd}, state = ${TAKEN}, died = NULL
  WHERE agent_id = $1 AND message_id = $2 AND run_id = $3 AND state = ${DEAD}`;
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

/** The name of the lock of an inbox. Holders of the lock change its messages. */
export function inboxLock(agentId: AgentId): string {
  return `inbox ${agentId}`;
}

export class PostgresInbox implements Inbox {
  readonly settings: InboxSettings;
  readonly #tables: Tables;

  constructor(tables: Tables, settings: InboxSettings) {
    this.#tables = tables;
    this.settings = settings;
  }

  deliver(message: Message): Promise<boolean> {
    return this.#write(message.to, (transaction) => this.#deliver(transaction, message));
  }

  peek(agentId: AgentId, limit = 100): Promise<readonly Delivery[]> {
    return this.#read(selectHere, agentId, limit);
  }

  find(agentId: AgentId, messageIds: readonly string[]): Promise<readonly Delivery[]> {
    return this.#read(findMessages, agentId, messageIds);
  }

  next(agentId: AgentId, query: InboxQuery): Promise<NextMail> {
    return this.#tables.database.read(async (queries) => {
      const rows = await nextRows(queries, agentId, query);
      const row = await queries.get<{ readonly at: number | null }>(nextTime, agentId, query.now);
      return { deliveries: rows.map(deliveryOf), at: row?.at ?? null };
    });
  }

  ack(agentId: AgentId, messageIds: readonly string[]): Promise<void> {
    return this.#write(agentId, (transaction) => this.#acknowledge(transaction, agentId, messageIds));
  }

  nack(agentId: AgentId, messageIds: readonly string[], at?: number): Promise<void> {
    return this.#write(agentId, (transaction) => this.#handBack(transaction, { agentId, messageIds, at }));
  }

  deadLetters(agentId?: AgentId, scope?: TenantScope): Promise<readonly Delivery[]> {
    const whose = [scope?.tenantId ?? null, scope?.userId ?? null] as const;
    return agentId === undefined
      ? this.#read(selectAllDead, ...whose)
      : this.#read(selectDead, ...whose, agentId);
  }

  redeliver(agentId: AgentId, messageIds?: readonly string[], scope?: TenantScope): Promise<number> {
    return this.#write(agentId, async (transaction) => {
      const whose = [scope?.tenantId ?? null, scope?.userId ?? null] as const;
      const dead = await transaction.all<{ readonly messageId: string }>(idsOfDead, ...whose, agentId);
      const again = dead.filter(({ messageId }) => messageIds?.includes(messageId) ?? true);
      for (const { messageId } of again) {
        const row = await transaction.get<{ readonly line: string }>(reviveDead, agentId, messageId);
        if (row !== undefined) await straighten(transaction, agentId, row.line);
      }
      return again.length;
    });
  }

  async waiting(agentIds: readonly AgentId[]): Promise<readonly AgentId[]> {
    const { statements } = this.#tables.database;
    const rows = await statements.all<{ readonly agentId: AgentId }>(agentsWaiting, agentIds);
    return rows.map(({ agentId }) => agentId);
  }

  /** Applies the inbox changes of a commit, inside its transaction, which holds the locks of the inboxes (`agentsIn`). */
  async applyNow(
    transaction: Transaction,
    changes: readonly InboxChange[],
    { runId, at }: CommitSource,
  ): Promise<void> {
    for (const change of changes) {
      if (change.type === "deliver") await this.#deliver(transaction, change.message);
      else if (change.type === "take") await take(transaction, change.agentId, change.messageIds, runId);
      else if (change.type === "ack")
        await this.#acknowledge(transaction, change.agentId, change.messageIds, runId);
      else await this.#handBack(transaction, { ...change, at, runId });
    }
    if (changes.length > 0) transaction.announce({ kind: "message" });
  }

  /** I5: whether all messages that these changes take are free. */
  async isFree(queries: Queries, changes: readonly InboxChange[]): Promise<boolean> {
    for (const change of changes)
      if (change.type === "take")
        for (const messageId of change.messageIds)
          if ((await queries.get(isFree, change.agentId, messageId)) === undefined) return false;
    return true;
  }

  /** I5: frees the messages of a deleted run. Call inside a transaction. */
  async free(transaction: Transaction, runId: RunId): Promise<void> {
    const agents = await transaction.all<{ readonly agentId: AgentId }>(agentsOfRun, runId);
    if (agents.length === 0) return;
    await transaction.lock(...agents.map(({ agentId }) => inboxLock(agentId)));
    const freed = await transaction.all<{ readonly agentId: AgentId; readonly line: string }>(
      freeTaken,
      runId,
    );
    for (const { agentId, line } of freed) await straighten(transaction, agentId, line);
    transaction.announce({ kind: "message" });
  }

  async #read(sql: string, ...values: readonly Value[]): Promise<readonly Delivery[]> {
    return (await this.#tables.database.statements.all<MessageRow>(sql, ...values)).map(deliveryOf);
  }

  #write<Result>(agentId: AgentId, apply: (transaction: Transaction) => Promise<Result>): Promise<Result> {
    return this.#tables.database.write(async (transaction) => {
      await transaction.lock(inboxLock(agentId));
      const result = await apply(transaction);
      transaction.announce({ kind: "message" });
      return result;
    });
  }

  async #deliver(queries: Queries, message: Message): Promise<boolean> {
    const { to, id, replyTo, sender } = message;
    const line = lineOf(message);
    const isNew = await queries.run(
      insertMessage,
      to,
      id,
      line,
      replyTo === undefined ? 0 : 1,
      sender?.tenantId ?? null,
      sender?.userId ?? null,
      JSON.stringify(message),
    );
    if (isNew > 0) await straighten(queries, to, line);
    return isNew > 0;
  }

  async #acknowledge(
    queries: Queries,
    agentId: AgentId,
    messageIds: readonly string[],
    runId: RunId | null = null,
  ): Promise<void> {
    for (const messageId of messageIds) {
      const row = await queries.get<PlacedRow>(findAnswered, agentId, messageId, runId);
      if (row === undefined) continue;
      await queries.run(acknowledge, row.id);
      await straighten(queries, agentId, row.line);
    }
  }

  async #handBack(queries: Queries, { agentId, messageIds, at, runId = null }: HandedBack): Promise<void> {
    const last = await queries.get<{ readonly died: number | null }>(lastDeath, agentId);
    const died = (last?.died ?? 0) + 1;
    for (const messageId of new Set(messageIds)) {
      const row = await queries.get<PlacedRow>(findHandedBack, agentId, messageId, runId);
      if (row === undefined) continue;
      const back = handedBack(row, this.settings, { at, died });
      await queries.run(handBack, back.state, back.deliveries, back.notBefore, back.died, row.id);
      await straighten(queries, agentId, row.line);
    }
  }
}

/** Messages that are handed back, by their run or from outside. */
interface HandedBack {
  readonly agentId: AgentId;
  readonly messageIds: readonly string[];
  readonly at?: number | undefined;
  readonly runId?: RunId | null;
}

/** Returns the agents whose inboxes these changes concern. */
export function agentsIn(changes: readonly InboxChange[]): readonly AgentId[] {
  return changes.map((change) => (change.type === "deliver" ? change.message.to : change.agentId));
}

async function nextRows(
  queries: Queries,
  agentId: AgentId,
  { mode, now, runId, tenantId, limit = 100 }: InboxQuery,
): Promise<readonly MessageRow[]> {
  const whose = [tenantId === undefined ? 1 : 0, tenantId ?? null] as const;
  if (mode === "each" && runId === undefined)
    return queries.all<MessageRow>(selectHeads, agentId, now, limit, ...whose);
  if (runId === undefined && (await queries.get(anyTaken, agentId)) !== undefined) return [];
  const freeBy = mode === "each" ? null : now;
  return queries.all<MessageRow>(selectLines, agentId, freeBy, limit, ...whose, runId ?? null);
}

async function take(
  queries: Queries,
  agentId: AgentId,
  messageIds: readonly string[],
  runId: RunId,
): Promise<void> {
  for (const messageId of messageIds)
    if ((await queries.run(takeFree, agentId, messageId, runId)) === 0)
      await queries.run(takeDead, agentId, messageId, runId);
}

/** I2: marks the messages of the line that no longer wait for an earlier message. */
async function straighten(queries: Queries, agentId: AgentId, line: string): Promise<void> {
  const first = (await queries.get<{ readonly id: number }>(firstSent, agentId, line))?.id;
  if (first !== undefined) await queries.run(advanceSent, first);
  await queries.run(advanceAsking, agentId, line, first ?? Number.MAX_SAFE_INTEGER);
}
