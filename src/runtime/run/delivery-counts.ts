import type { Delivery, EventDraft, Inbox } from "../../kernel/index.ts";
import type { TaskState } from "../journal/task-state.ts";

/**
 * I4: how often each message of the run's tasks was returned to the inbox, at the time of the owner's last read.
 * The inbox has the exact count.
 */
export class DeliveryCounts {
  readonly #inbox: Inbox;
  #counts: Map<string, number> | undefined;

  constructor(inbox: Inbox) {
    this.#inbox = inbox;
  }

  /** Loads the counts of the messages that tasks received under earlier owners. Returns `undefined` if there are no such messages. */
  load(tasks: Iterable<TaskState>): Promise<void> | undefined {
    let loading: Promise<void>[] | undefined;
    // A task that has ended counts as well, because it may be resumed.
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

  /**
   * Returns a `mail_dead_letter` event for each of these messages that reaches `maxDeliveries` if it is returned to
   * the inbox now.
   */
  deadLetterEvents(messageIds: readonly string[]): readonly EventDraft[] {
    return messageIds.flatMap((messageId): EventDraft[] => {
      const deliveries = (this.#counts?.get(messageId) ?? 0) + 1;
      if (deliveries < this.#inbox.settings.maxDeliveries) return [];
      return [{ type: "mail_dead_letter", data: { messageId, deliveries } }];
    });
  }
}
