import type { RunId, SessionId } from "../base/identity.ts";
import type { JsonObject } from "../base/json-value.ts";

/** Whom a run is for. Read-only. Tools and hooks read it with `getRunContext()` anywhere inside the run. */
export interface RunFacts {
  /** Id of the user. Memory, permissions and caches are separate for each user. `null` for a run without a user. */
  readonly userId: string | null;
  /** Id of the session. */
  readonly sessionId: SessionId;
  /** Id of the run. */
  readonly runId: RunId;
  /** Data that the caller passed to `submit`. */
  readonly metadata: JsonObject;
}

/** The storage behind `getRunContext()`: the platform's asynchronous context, which the runtime injects. */
export interface RunFactsStorage {
  /** Returns the facts of the current run. `undefined` outside a run. */
  get(): RunFacts | undefined;
  /** Calls `body` with these facts as the current ones and returns its result. */
  run<Result>(facts: RunFacts, body: () => Result): Result;
}
