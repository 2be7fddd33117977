import type { RunId, SessionId } from "../base/identity.ts";
import type { JsonObject } from "../base/json-value.ts";

/** Who a run is for: read-only scope that tools and hooks may ask for anywhere inside it (`getRunContext()`). */
export interface RunFacts {
  /** The wall between users in memory, permissions and caches. */
  readonly userId: string | null;
  readonly sessionId: SessionId;
  readonly runId: RunId;
  readonly metadata: JsonObject;
}

/** Where `getRunContext()` reads from; the platform's async storage, handed in. */
export interface RunFactsStorage {
  get(): RunFacts | undefined;
  run<Result>(facts: RunFacts, body: () => Result): Result;
}
