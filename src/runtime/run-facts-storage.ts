import { AsyncLocalStorage } from "node:async_hooks";
import type { RunFacts, TaskRecord } from "../kernel/index.ts";

const storage = new AsyncLocalStorage<RunFacts>();

/** Who the run is for, anywhere inside it; `undefined` outside. */
export function getRunContext(): RunFacts | undefined {
  return storage.getStore();
}

export function withRunFacts<Result>(facts: RunFacts, body: () => Result): Result {
  const present = storage.getStore();
  return present !== undefined && areSame(present, facts) ? body() : storage.run(facts, body);
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
