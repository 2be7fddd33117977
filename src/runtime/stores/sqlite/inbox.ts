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
import type { Tables } from "./db/tables.ts";

const { WAITING, BEHIND, TAKEN, DEAD, ACKNOWLEDGED } = MessageState;
const columns = "deliveries, redelivered, not_before AS notBefore, run_id AS runId, body";
/** The same condition as in the partial indexes. */
const isHere = `state < ${DEAD}`;
const atTheEnd = "(SELECT max(id) + 1 FROM messages)";

const insertMessage = `INSERT OR IGNORE INTO messages (agent_id, message_id, state, deliveries, redelivered, not_before, line, asks, body)
  VALUES (?, ?, ${BEHIND}, 0, 0, 0, ?, ?, ?)`;
const selectHere = `SELECT ${columns} FROM messages WHERE agent_id = ? AND ${isHere} ORDER BY id LIMIT ? + 0`;
const findMessage = `SELECT ${columns} FROM messages WHERE agent_id = ? AND message_id = ? AND state < ${ACKNOWLEDGED}`;
/** S6: whether any tenant is asked for (?4), or the sender of a message has tenant ?5. */
const isOfTenant = `(?4 OR body ->> '$.sender.tenantId' IS ?5)`;
const selectHeads = `SELECT ${columns} FROM messages
  WHERE agent_id = ?1 AND state = ${WAITING} AND not_before <= ?2 AND ${isOfTenant}
  ORDER BY not_before, id LIMIT ?3 + 0`;
const nextTime = `SELECT min(not_before) AS at FROM messages WHERE agent_id = ? AND state = ${WAITING} AND not_before > ?`;
const anyTaken = `SELECT 1 FROM messages WHERE agent_id = ? AND state = ${TAKEN} LIMIT 1`;
const anyWaiting = `SELECT 1 FROM messages WHERE agent_id = ? AND state = ${WAITING} LIMIT 1`;
/**
 * Messages that may be delivered at time ?2, and messages behind them or behind messages of run ?6. With ?2 = NULL only
 * the latter.
 */
const selectLines = `SELECT ${columns} FROM messages AS own
  WHERE agent_id = ?1 AND ${isHere} AND ${isOfTenant} AND (
    (state = ${WAITING} AND not_before <= ?2) OR (state = ${BEHIND} AND EXISTS (
      SELECT 1 FROM (
        SELECT state AS first, not_before AS due, run_id AS taker FROM messages
        WHERE agent_id = ?1 AND line = own.line AND asks = 0 AND ${isHere} ORDER BY id LIMIT 1
      ) WHERE (first = ${WAITING} AND due <= ?2) OR (first = ${TAKEN} AND taker = ?6)
    ))
  )
  ORDER BY id LIMIT ?3 + 0`;
/** S6: whether the sender of a message is in the scope with tenant ?1 and user ?2; NULL means any. */
const isSentInScope = `(?1 IS NULL OR body ->> '$.sender.tenantId' IS ?1) AND (?2 IS NULL OR body ->> '$.sender.userId' IS ?2)`;
const selectDead = `SELECT ${columns} FROM messages
  WHERE agent_id = ?3 AND state = ${DEAD} AND ${isSentInScope} ORDER BY died, id`;
const selectAllDead = `SELECT ${columns} FROM messages
  WHERE agent_id > '' AND state = ${DEAD} AND ${isSentInScope} ORDER BY agent_id, died, id`;
const idsOfDead = `SELECT message_id AS messageId FROM messages
  WHERE agent_id = ?3 AND state = ${DEAD} AND ${isSentInScope} ORDER BY died, id`;
const reviveDead = `UPDATE messages SET id = ${atTheEnd}, state = ${BEHIND}, deliveries = 0, not_before = 0, died = NULL,
    redelivered = redelivered + 1
  WHERE agent_id = ? AND message_id = ? AND state = ${DEAD} RETURNING line`;
const firstSent = `SELECT id FROM messages WHERE agent_id = ? AND line = ? AND asks = 0 AND ${isHere} ORDER BY id LIMIT 1`;
const advanceSent = `UPDATE messages SET state = ${WAITING} WHERE id = ? AND state = ${BEHIND}`;
const advanceAsking = `UPDATE messages SET state = ${WAITING}
  WHERE agent_id = ? AND line = ? AND asks = 1 AND id < ? AND state = ${BEHIND}`;
const isFree = `SELECT 1 FROM messages WHERE agent_id = ? AND message_id = ? AND state IN (${WAITING}, ${BEHIND})`;
const takeFree = `UPDATE messages SET state = ${TAKEN}, run_id = ?3
  WHERE agent_id = ?1 AND message_id = ?2 AND state IN (${WAITING}, ${BEHIND})`;
const takeDead = `UPDATE messages SET id = ${atTheEnd}, state = ${TAKEN}, died = NULL
  WHERE agent_id = ?1 AND message_id = ?2 AND run_id = ?3 AND state = ${DEAD}`;
const findAnswered = `SELECT id, line, deliveries FROM messages
  WHERE agent_id = ?1 AND message_id = ?2 AND ${isHere} AND (?3 IS NULL OR state <> ${TAKEN} OR run_id = ?3)`;
const acknowledge = `UPDATE messages SET state = ${ACKNOWLEDGED}, line = NULL, run_id = NULL, body = NULL WHERE id = ?`;
const findHandedBack = `SELECT id, line, deliveries FROM messages
  WHERE agent_id = ?1 AND message_id = ?2 AND ${isHere} AND (?3 IS NULL OR (state = ${TAKEN} AND run_id = ?3))`;
const handBack = "UPDATE messages SET state = ?, deliveries = ?, not_before = ?, died = ? WHERE id = ?";
const lastDeath = `SELECT max(died) AS died FROM messages WHERE agent_id = ? AND state = ${DEAD}`;
const freeTaken = `UPDATE messages SET state = ${BEHIND} WHERE run_id = ? AND state = ${TAKEN}
  RETURNING agent_id AS agentId, line`;

export class SqliteInbox implements Inbox {
  readonly settings: InboxSettings;
  readonly #tables: Tables;

  constructor(tables: Tables, settings: InboxSettings) {
    this.#tables = tables;
    this.settings = settings;
  }

  deliver(message: Message): Promise<boolean> {
    return this.#write(() => this.#deliver(message));
  }

  peek(agentId: AgentId, limit = 100): Promise<readonly Delivery[]> {
    return this.#read(selectHere, agentId, limit);
  }

  async find(agentId: AgentId, messageIds: readonly string[]): Promise<readonly Delivery[]> {
    const { database } = this.#tables;
    return this.#tables.read(() =>
      messageIds
        .flatMap((messageId) => database.get<MessageRow>(findMessage, agentId, messageId) ?? [])
        .map(deliveryOf),
    );
  }

  async next(agentId: AgentId, query: InboxQuery): Promise<NextMail> {
    const { mode: mail, now, runId, tenantId, limit = 100 } = query;
    const { database } = this.#tables;
    const whose = [tenantId === undefined ? 1 : 0, tenantId ?? null] as const;
    const rows = (): readonly MessageRow[] => {
      if (mail === "each" && runId === undefined)
        return database.all<MessageRow>(selectHeads, agentId, now, limit, ...whose);
      if (runId === undefined && database.get(anyTaken, agentId) !== undefined) return [];
      const freeBy = mail === "each" ? null : now;
      return database.all<MessageRow>(selectLines, agentId, freeBy, limit, ...whose, runId ?? null);
    };
    return this.#tables.read(() => ({
      deliveries: rows().map(deliveryOf),
      at: database.get<{ readonly at: number | null }>(nextTime, agentId, now)?.at ?? null,
    }));
  }

  ack(agentId: AgentId, messageIds: readonly string[]): Promise<void> {
    return this.#write(() => this.#acknowledge(agentId, messageIds));
  }

  nack(agentId: AgentId, messageIds: readonly string[], at?: number): Promise<void> {
    return this.#write(() => this.#handBack(agentId, messageIds, at));
  }

  deadLetters(agentId?: AgentId, scope?: TenantScope): Promise<readonly Delivery[]> {
    const whose = [scope?.tenantId ?? null, scope?.userId ?? null] as const;
    return agentId === undefined
      ? this.#read(selectAllDead, ...whose)
      : this.#read(selectDead, ...whose, agentId);
  }

  redeliver(agentId: AgentId, messageIds?: readonly string[], scope?: TenantScope): Promise<number> {
    const { database } = this.#tables;
    return this.#write(() => {
      const dead = database.all<{ readonly messageId: string }>(
        idsOfDead,
        scope?.tenantId ?? null,
        scope?.userId ?? null,
        agentId,
      );
      const again = dead.filter(({ messageId }) => messageIds?.includes(messageId) ?? true);
      for (const { messageId } of again) {
        const row = database.get<{ readonly line: string }>(reviveDead, agentId, messageId);
        if (row !== undefined) this.#straighten(agentId, row.line);
      }
      return again.length;
    });
  }

  async waiting(agentIds: readonly AgentId[]): Promise<readonly AgentId[]> {
    return this.#tables.read(() =>
      agentIds.filter((agentId) => this.#tables.database.get(anyWaiting, agentId) !== undefined),
    );
  }

  /** Applies the inbox changes of a commit, inside its transaction. */
  applyNow(changes: readonly InboxChange[], { runId, at }: CommitSource): void {
    for (const change of changes) {
      if (change.type === "deliver") this.#deliver(change.message);
      else if (change.type === "take") this.#take(change.agentId, change.messageIds, runId);
      else if (change.type === "ack") this.#acknowledge(change.agentId, change.messageIds, runId);
      else this.#handBack(change.agentId, change.messageIds, at, runId);
    }
  }

  /** I5: whether all messages that these changes take are free. Call inside a transaction. */
  isFreeNow(changes: readonly InboxChange[]): boolean {
    const { database } = this.#tables;
    return changes.every(
      (change) =>
        change.type !== "take" ||
        change.messageIds.every((messageId) => database.get(isFree, change.agentId, messageId) !== undefined),
    );
  }

  /** I5: frees the messages of a deleted run. Call inside a transaction. */
  freeNow(runId: RunId): void {
    const freed = this.#tables.database.all<{ readonly agentId: AgentId; readonly line: string }>(
      freeTaken,
      runId,
    );
    for (const { agentId, line } of freed) this.#straighten(agentId, line);
    if (freed.length > 0) this.#tables.announce({ kind: "message" });
  }

  async #read(sql: string, ...parameters: readonly (string | number | null)[]): Promise<readonly Delivery[]> {
    return this.#tables.read(() => this.#tables.database.all<MessageRow>(sql, ...parameters).map(deliveryOf));
  }

  #write<Result>(apply: () => Result): Promise<Result> {
    return this.#tables.write({ apply, committed: () => this.#tables.announce({ kind: "message" }) });
  }

  #deliver(message: Message): boolean {
    const { to, id, replyTo } = message;
    const line = lineOf(message);
    const asks = replyTo === undefined ? 0 : 1;
    const isNew = this.#tables.database.run(insertMessage, to, id, line, asks, JSON.stringify(message)) > 0;
    if (isNew) this.#straighten(to, line);
    return isNew;
  }

  #take(agentId: AgentId, messageIds: readonly string[], runId: RunId): void {
    const { database } = this.#tables;
    for (const messageId of messageIds)
      if (database.run(takeFree, agentId, messageId, runId) === 0)
        database.run(takeDead, agentId, messageId, runId);
  }

  #acknowledge(agentId: AgentId, messageIds: readonly string[], runId: RunId | null = null): void {
    const { database } = this.#tables;
    for (const messageId of messageIds) {
      const row = database.get<PlacedRow>(findAnswered, agentId, messageId, runId);
      if (row === undefined) continue;
      database.run(acknowledge, row.id);
      this.#straighten(agentId, row.line);
    }
  }

  #handBack(agentId: AgentId, messageIds: readonly string[], at?: number, runId: RunId | null = null): void {
    const { database } = this.#tables;
    const last = database.get<{ readonly died: number | null }>(lastDeath, agentId);
    const died = (last?.died ?? 0) + 1;
    for (const messageId of new Set(messageIds)) {
      const row = database.get<PlacedRow>(findHandedBack, agentId, messageId, runId);
      if (row === undefined) continue;
      const back = handedBack(row, this.settings, { at, died });
      database.run(handBack, back.state, back.deliveries, back.notBefore, back.died, row.id);
      this.#straighten(agentId, row.line);
    }
  }

  /** I2: marks the messages of the line that no longer wait for an earlier message. */
  #straighten(agentId: AgentId, line: string): void {
    const { database } = this.#tables;
    const first = database.get<{ readonly id: number }>(firstSent, agentId, line)?.id;
    if (first !== undefined) database.run(advanceSent, first);
    database.run(advanceAsking, agentId, line, first ?? Number.MAX_SAFE_INTEGER);
  }
}
