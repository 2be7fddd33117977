import { AsyncLocalStorage } from "node:async_hooks";
import type { RunFacts, TaskRecord } from "../kernel/index.ts";
import { Inside } from "./inside.ts";

const storage = new AsyncLocalStorage<Inside>();

/** Who the run is for, anywhere inside it; `undefined` outside. */
export function getRunContext(): RunFacts | undefined {
  return storage.getStore()?.facts;
}

/** Where the code stands that asks; `undefined` outside of any task. */
export function currentInside(): Inside | undefined {
  return storage.getStore();
}

/** For code that is one of several lines in a task. */
export function insideBranch<Result>(body: () => Result): Result {
  const around = storage.getStore();
  return around === undefined ? body() : storage.run(around.branch(), body);
}

/** For the code of a task. */
export function insideTask<Result>(inside: Inside, body: () => Result): Result {
  return storage.run(inside, body);
}

/** For code that is shown a run. */
export function withRunFacts<Result>(facts: RunFacts, body: () => Result): Result {
  const present = storage.getStore()?.facts;
  return present !== undefined && areSame(present, facts) ? body() : storage.run(new Inside(facts), body);
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
