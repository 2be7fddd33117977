import { AsyncLocalStorage } from "node:async_hooks";
import type { RunFacts, TaskRecord } from "../../kernel/index.ts";

/** A task whose code may wait for what another run comes to. */
export interface SlotYielder {
  /** The task has no slot meanwhile: the run that is waited for may need it. It has one again when its code goes on. */
  yieldSlotWhile<Value>(work: Promise<Value>): Promise<Value>;
  /** The same, and a stop of the task that comes meanwhile ends the wait. */
  yieldSlotUnlessCancelled<Value>(work: Promise<Value>): Promise<Value>;
}

/** Where code stands: whom it works for, and in which task. */
export interface Inside {
  readonly facts: RunFacts;
  /** While it is at work here: a socket or a timer that the code made may outlive it, and holds on to this. */
  task: SlotYielder | undefined;
}

const storage = new AsyncLocalStorage<Inside>();

/** Who the run is for, anywhere inside it; `undefined` outside. */
export function getRunContext(): RunFacts | undefined {
  return storage.getStore()?.facts;
}

/** The task whose code asks; `undefined` outside of any. */
export function currentTask(): SlotYielder | undefined {
  return storage.getStore()?.task;
}

/** For the code of a task. */
export function insideTask<Result>(inside: Inside, body: () => Result): Result {
  return storage.run(inside, body);
}

/** For code that is shown a run. */
export function withRunFacts<Result>(facts: RunFacts, body: () => Result): Result {
  const present = storage.getStore()?.facts;
  return present !== undefined && areSame(present, facts)
    ? body()
    : storage.run({ facts, task: undefined }, body);
}

function areSame(one: RunFacts, other: RunFacts): boolean {
  return (
    one.runId === other.runId &&
    one.sessionId === other.sessionId &&
    one.userId === other.userId &&
    one.metadata === other.metadata
  );
}

/** Who a task works for. */
export function factsOf({ supervision, userId, metadata }: TaskRecord): RunFacts {
  const { sessionId, runId } = supervision;
  return { userId, sessionId, runId, metadata };
}
