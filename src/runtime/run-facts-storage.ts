import { AsyncLocalStorage } from "node:async_hooks";
import type { RunFacts } from "../kernel/index.ts";

const storage = new AsyncLocalStorage<RunFacts>();

/** Who the run is for, anywhere inside it; `undefined` outside. */
export function getRunContext(): RunFacts | undefined {
  return storage.getStore();
}

export function withRunFacts<Result>(facts: RunFacts, body: () => Result): Result {
  return storage.run(facts, body);
}
