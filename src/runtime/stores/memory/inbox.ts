import type { AgentId, DeadLetter, Inbox, Message } from "../../../kernel/index.ts";

interface Box {
  waiting: { readonly message: Message; deliveries: number }[];
  readonly dead: DeadLetter[];
  readonly seen: Set<string>;
}

export class MemoryInbox implements Inbox {
  readonly #boxes = new Map<AgentId, Box>();
  readonly #maxDeliveries: number;

  constructor(maxDeliveries: number) {
    this.#maxDeliveries = maxDeliveries;
  }

  async deliver(message: Message): Promise<boolean> {
    const box = this.#box(message.to);
    if (box.seen.has(message.id)) return false;
    box.seen.add(message.id);
    box.waiting.push({ message, deliveries: 0 });
    return true;
  }

  async peek(agentId: AgentId, limit = 100): Promise<readonly Message[]> {
    return this.#box(agentId)
      .waiting.slice(0, limit)
      .map(({ message }) => message);
  }

  async ack(agentId: AgentId, messageIds: readonly string[]): Promise<void> {
    const box = this.#box(agentId);
    box.waiting = box.waiting.filter(({ message }) => !messageIds.includes(message.id));
  }

  async nack(agentId: AgentId, messageIds: readonly string[]): Promise<void> {
    const box = this.#box(agentId);
    box.waiting = box.waiting.filter((each) => {
      if (!messageIds.includes(each.message.id)) return true;
      each.deliveries++;
      if (each.deliveries < this.#maxDeliveries) return true;
      box.dead.push({ message: each.message, deliveries: each.deliveries });
      return false;
    });
  }

  async deadLetters(agentId: AgentId): Promise<readonly DeadLetter[]> {
    return [...this.#box(agentId).dead];
  }

  #box(agentId: AgentId): Box {
    const known = this.#boxes.get(agentId);
    if (known !== undefined) return known;
    const box: Box = { waiting: [], dead: [], seen: new Set() };
    this.#boxes.set(agentId, box);
    return box;
  }
}
