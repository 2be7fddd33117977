import type { AgentId, Delivery, Inbox, InboxChange, Message } from "../../../kernel/index.ts";
import type { Tables } from "./tables.ts";

interface Box {
  waiting: Delivery[];
  readonly dead: Delivery[];
  readonly seen: Set<string>;
}

export class MemoryInbox implements Inbox {
  readonly maxDeliveries: number;
  readonly #boxes = new Map<AgentId, Box>();
  readonly #tables: Tables;

  constructor(tables: Tables, maxDeliveries: number) {
    this.#tables = tables;
    this.maxDeliveries = maxDeliveries;
  }

  async deliver(message: Message): Promise<boolean> {
    return this.#deliver(message);
  }

  async peek(agentId: AgentId, limit = 100): Promise<readonly Delivery[]> {
    return this.#box(agentId).waiting.slice(0, limit);
  }

  async ack(agentId: AgentId, messageIds: readonly string[]): Promise<void> {
    this.applyNow([{ type: "ack", agentId, messageIds }]);
  }

  async nack(agentId: AgentId, messageIds: readonly string[]): Promise<void> {
    this.applyNow([{ type: "nack", agentId, messageIds }]);
  }

  async deadLetters(agentId: AgentId): Promise<readonly Delivery[]> {
    return [...this.#box(agentId).dead];
  }

  async waiting(agentIds: readonly AgentId[]): Promise<readonly AgentId[]> {
    return agentIds.filter((agentId) => this.#box(agentId).waiting.length > 0);
  }

  /** For the journal, which applies a commit's changes with the rest of it. */
  applyNow(changes: readonly InboxChange[]): void {
    for (const change of changes) {
      if (change.type === "deliver") {
        this.#deliver(change.message);
        continue;
      }
      const box = this.#box(change.agentId);
      const named = new Set(change.messageIds);
      box.waiting = box.waiting.flatMap((delivery) => {
        if (!named.has(delivery.message.id)) return [delivery];
        return change.type === "ack" ? [] : this.#handBack(box, delivery);
      });
      this.#tables.announce();
    }
  }

  #deliver(message: Message): boolean {
    const box = this.#box(message.to);
    if (box.seen.has(message.id)) return false;
    box.seen.add(message.id);
    box.waiting.push({ message, deliveries: 0 });
    this.#tables.announce();
    return true;
  }

  #handBack(box: Box, { message, deliveries }: Delivery): Delivery[] {
    const again = { message, deliveries: deliveries + 1 };
    if (again.deliveries < this.maxDeliveries) return [again];
    box.dead.push(again);
    return [];
  }

  #box(agentId: AgentId): Box {
    const known = this.#boxes.get(agentId);
    if (known !== undefined) return known;
    const box: Box = { waiting: [], dead: [], seen: new Set() };
    this.#boxes.set(agentId, box);
    return box;
  }
}
