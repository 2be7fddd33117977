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
      const known = new Set([...task.drained, ...this.messages.map(({ id }) => id)]);
      const waiting = await owner.store.inbox.peek(agentId);
      return waiting.map(({ message }) => message).filter(({ id }) => !known.has(id));
    });
  }
}
