import type { EventDraft, Message, TaskInbox } from "../../kernel/index.ts";
import type { TaskContext } from "./task-context.ts";
import type { TaskRunner } from "../task/task-runner.ts";

export class TaskInboxView implements TaskInbox {
  readonly messages: readonly Message[];
  readonly #ctx: TaskContext;
  readonly #runner: TaskRunner;

  constructor(ctx: TaskContext, runner: TaskRunner, messages: readonly Message[]) {
    this.#ctx = ctx;
    this.#runner = runner;
    this.messages = messages;
  }

  drain(): Promise<readonly Message[]> {
    const { agent, agentId, facts, log, worker, task, host } = this.#runner;
    const { runId } = facts;
    const { inbox: mode = "each" } = agent;
    return this.#ctx.drain(async (open) => {
      // Messages of an earlier drain may not be written yet.
      const limit = task.drained.length + batch;
      // S6: a run never reads the messages of another tenant.
      const query = { mode, now: worker.clock.now(), runId, limit, tenantId: host.tenantId };
      const { deliveries: waiting } = await log.reading(worker.store.inbox.next(agentId, query));
      host.deliveries.note(waiting);
      // Evaluated synchronously with the record, so two branches that drain at once never get the same message.
      return () => {
        const given = new Set([...task.drained, ...task.record.messages].map(({ id }) => id));
        const fresh = waiting.map(({ message }) => message).filter(({ id }) => !given.has(id));
        for (const message of fresh) open.emit(mailReceived(message));
        const messageIds = fresh.map(({ id }) => id);
        if (messageIds.length > 0) log.add({ inbox: [{ type: "take", agentId, messageIds }] });
        return fresh;
      };
    });
  }
}

/** Maximum number of new messages that one read of the inbox returns. */
const batch = 100;

export function mailReceived({ id, from }: Message): EventDraft {
  return { type: "mail_receive", data: { messageId: id, from } };
}
