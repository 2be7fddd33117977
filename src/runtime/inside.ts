import type { RunFacts } from "../kernel/index.ts";

/** A task whose code may wait for what another run comes to. */
export interface OutsideWaiter {
  /** The task has no slot meanwhile, unless other code of it works: the run that is waited for may need it. It has one again when its code goes on. */
  outside<Value>(inside: Inside, work: Promise<Value>): Promise<Value>;
  /** The same, and a stop of the task that comes meanwhile ends the wait. */
  outsideUnlessStopped<Value>(inside: Inside, work: Promise<Value>): Promise<Value>;
}

/** Where code stands: whom it works for, in which task, and in which of several lines that go side by side there. */
export class Inside {
  readonly facts: RunFacts;
  readonly #around: Inside | undefined;
  #task: OutsideWaiter | undefined;
  /** Of its code and that of the lines within it, how much waits for another run. */
  #outside = 0;

  constructor(facts: RunFacts, task?: OutsideWaiter, around?: Inside) {
    this.facts = facts;
    this.#task = task;
    this.#around = around;
  }

  /** One of several lines: a branch, or one of the tools that are called together. */
  branch(): Inside {
    return new Inside(this.facts, undefined, this);
  }

  /** While it is at work here: a socket or a timer that the code made may outlive it, and holds on to this. */
  get task(): OutsideWaiter | undefined {
    return this.#around === undefined ? this.#task : this.#around.task;
  }

  /** Whoever works here may be who waits for another run. */
  get isOutside(): boolean {
    return this.#outside > 0;
  }

  /** The code that waits, or has gone on, stands in all that is around it. */
  noteOutside(by: 1 | -1): void {
    this.#outside += by;
    this.#around?.noteOutside(by);
  }

  letGo(): void {
    this.#task = undefined;
  }
}
