import type { Message, TaskInbox } from "../kernel/index.ts";
import type { TaskContext } from "./task-context.ts";
import type { TaskRunner } from "./task-runner.ts";

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
    const { agentId, owner, task } = this.#runner;
    return this.#ctx.drain(async () => {
      const known = task.drained.size + task.record.messages.length;
      const waiting = await owner.store.inbox.peek(agentId, known + batch);
      // In the breath of the record: two branches that drain at once share nothing.
      return () => {
        const given = new Set([...task.drained.keys(), ...task.record.messages.map(({ id }) => id)]);
        return waiting.map(({ message }) => message).filter(({ id }) => !given.has(id));
      };
    });
  }
}

/** How many new messages one drain gives at most. */
const batch = 100;
