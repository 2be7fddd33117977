import type { TaskId } from "../../kernel/index.ts";
import { pendingForever } from "../process/pending-forever.ts";
import type { TaskSlots } from "../process/task-slots.ts";
import type { TaskHost } from "./task-host.ts";

/** The slot of one task: taken when its code is to go on, given back while it only waits. */
export class TaskSlot {
  readonly #slots: TaskSlots;
  readonly #host: TaskHost;
  readonly #taskId: TaskId;
  #isHeld = false;
  #coming: Promise<void> | undefined;
  #isOver = false;

  constructor(slots: TaskSlots, host: TaskHost, taskId: TaskId) {
    this.#slots = slots;
    this.#host = host;
    this.#taskId = taskId;
  }

  get isHeld(): boolean {
    return this.#isHeld;
  }

  /** It was asked for, and others have them all. */
  get isComing(): boolean {
    return this.#coming !== undefined;
  }

  /** Nothing to wait for if it is held, or there is one to be had. Never settles once the task is over. */
  take(): Promise<void> | undefined {
    if (this.#isOver) return pendingForever();
    if (!this.#isHeld && this.#coming === undefined) this.#isHeld = this.#slots.tryTake();
    return this.#isHeld ? undefined : (this.#coming ??= this.#wait());
  }

  give(): void {
    if (!this.#isHeld) return;
    this.#isHeld = false;
    this.#slots.give();
  }

  /** One that is coming goes to the next. */
  giveUp(): void {
    this.#isOver = true;
    this.give();
  }

  #wait(): Promise<void> {
    return this.#slots.take(this.#host.seats.priority(this.#taskId), this.#host.tenantId).then(() => {
      this.#coming = undefined;
      this.#isHeld = !this.#isOver;
      if (this.#isHeld) return undefined;
      this.#slots.give();
      return pendingForever();
    });
  }
}
