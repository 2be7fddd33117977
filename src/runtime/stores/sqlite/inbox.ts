import type { AgentId, Delivery, Inbox, InboxChange, Message } from "../../../kernel/index.ts";
import type { Tables } from "./tables.ts";

/** An acknowledged message leaves its id behind (I1), and nothing else. */
const MessageState = Object.freeze({ WAITING: 0, DEAD: 1, ACKNOWLEDGED: 2 });

interface MessageRow {
  readonly deliveries: number;
  readonly body: string;
}

export class SqliteInbox implements Inbox {
  readonly maxDeliveries: number;
  readonly #tables: Tables;

  constructor(tables: Tables, maxDeliveries: number) {
    this.#tables = tables;
    this.maxDeliveries = maxDeliveries;
  }

  deliver(message: Message): Promise<boolean> {
    return this.#tables.write({
      apply: () => this.#deliver(message),
      committed: () => this.#tables.announce(),
    });
  }

  peek(agentId: AgentId, limit = 100): Promise<readonly Delivery[]> {
    return this.#tables.read(() =>
      this.#tables.database
        .all<MessageRow>(
          `SELECT deliveries, body FROM messages WHERE agent_id = ? AND state = ${MessageState.WAITING} ORDER BY id LIMIT ?`,
          agentId,
          limit,
        )
        .map(deliveryOf),
    );
  }

  ack(agentId: AgentId, messageIds: readonly string[]): Promise<void> {
    return this.#change({ type: "ack", agentId, messageIds });
  }

  nack(agentId: AgentId, messageIds: readonly string[]): Promise<void> {
    return this.#change({ type: "nack", agentId, messageIds });
  }

  deadLetters(agentId: AgentId): Promise<readonly Delivery[]> {
    return this.#tables.read(() =>
      this.#tables.database
        .all<MessageRow>(
          `SELECT deliveries, body FROM messages WHERE agent_id = ? AND state = ${MessageState.DEAD} ORDER BY died, id`,
          agentId,
        )
        .map(deliveryOf),
    );
  }

  waiting(agentIds: readonly AgentId[]): Promise<readonly AgentId[]> {
    return this.#tables.read(() =>
      agentIds.filter(
        (agentId) =>
          this.#tables.database.get(
            `SELECT 1 FROM messages WHERE agent_id = ? AND state = ${MessageState.WAITING} LIMIT 1`,
            agentId,
          ) !== undefined,
      ),
    );
  }

  /** For the journal, inside its transaction. */
  applyNow(changes: readonly InboxChange[]): void {
    for (const change of changes) {
      if (change.type === "deliver") this.#deliver(change.message);
      else if (change.type === "ack") this.#acknowledge(change.agentId, change.messageIds);
      else this.#handBack(change.agentId, change.messageIds);
    }
  }

  #change(change: InboxChange): Promise<void> {
    return this.#tables.write({
      apply: () => this.applyNow([change]),
      committed: () => this.#tables.announce(),
    });
  }

  #deliver(message: Message): boolean {
    const isNew = this.#tables.database.run(
      `INSERT OR IGNORE INTO messages (agent_id, message_id, state, deliveries, body) VALUES (?, ?, ${MessageState.WAITING}, 0, ?)`,
      message.to,
      message.id,
      JSON.stringify(message),
    );
    return isNew > 0;
  }

  #acknowledge(agentId: AgentId, messageIds: readonly string[]): void {
    for (const messageId of messageIds) {
      this.#tables.database.run(
        `UPDATE messages SET state = ${MessageState.ACKNOWLEDGED}, body = NULL
         WHERE agent_id = ? AND message_id = ? AND state = ${MessageState.WAITING}`,
        agentId,
        messageId,
      );
    }
  }

  #handBack(agentId: AgentId, messageIds: readonly string[]): void {
    const { database } = this.#tables;
    const last = database.get<{ readonly died: number | null }>(
      `SELECT max(died) AS died FROM messages WHERE agent_id = ? AND state = ${MessageState.DEAD}`,
      agentId,
    );
    for (const messageId of new Set(messageIds)) {
      database.run(
        `UPDATE messages SET deliveries = deliveries + 1,
           state = iif(deliveries + 1 < ?3, ${MessageState.WAITING}, ${MessageState.DEAD}),
           died = iif(deliveries + 1 < ?3, NULL, ?4)
         WHERE agent_id = ?1 AND message_id = ?2 AND state = ${MessageState.WAITING}`,
        agentId,
        messageId,
        this.maxDeliveries,
        (last?.died ?? 0) + 1,
      );
    }
  }
}

function deliveryOf({ deliveries, body }: MessageRow): Delivery {
  return { message: JSON.parse(body) as Message, deliveries };
}
