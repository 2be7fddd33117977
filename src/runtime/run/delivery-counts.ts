import type { Delivery, EventDraft, Inbox } from "../../kernel/index.ts";
import type { TaskState } from "../journal/run-state.ts";

/** How often the messages of a run's tasks had been handed back when this owner last looked; the inbox itself keeps count (I4). */
export class DeliveryCounts {
  readonly #inbox: Inbox;
  #counts: Map<string, number> | undefined;

  constructor(inbox: Inbox) {
    this.#inbox = inbox;
  }

  /** Of the messages that tasks were given before this owner had them. Nothing to wait for where there are none. */
  load(tasks: Iterable<TaskState>): Promise<void> | undefined {
    let loading: Promise<void>[] | undefined;
    // Also of one that has ended: it may be resumed.
    for (const task of tasks) if (task.messages.length > 0) (loading ??= []).push(this.#load(task));
    return loading && Promise.all(loading).then(() => undefined);
  }

  async #load({ record, messages }: TaskState): Promise<void> {
    const messageIds = messages.map(({ id }) => id);
    this.note(await this.#inbox.find(record.agentId, messageIds));
  }

  note(deliveries: readonly Delivery[]): void {
    this.#counts ??= new Map();
    for (const { message, deliveries: count } of deliveries) this.#counts.set(message.id, count);
  }

  /** What is to be told of those that are handed back once too often. */
  handBack(messageIds: readonly string[]): readonly EventDraft[] {
    return messageIds.flatMap((messageId): EventDraft[] => {
      const deliveries = (this.#counts?.get(messageId) ?? 0) + 1;
      if (deliveries < this.#inbox.settings.maxDeliveries) return [];
      return [{ type: "mail_dead_letter", data: { messageId, deliveries } }];
    });
  }
}
