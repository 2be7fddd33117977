import type { Event } from "./event.ts";
import type { ChatMiddleware, FunctionMiddleware } from "./middleware.ts";
import type { ToolGate } from "./tool-gate.ts";

/**
 * What stands around an agent's calls. Composed by the agent from what is configured, and again when that changes (F1): what is
 * absent is not there to be skipped.
 */
export interface CallPath {
  /** Around each model call: inside are the reservation, the call itself and its retries. */
  readonly chat?: ChatMiddleware;
  /** Around each tool's body, behind the gate. */
  readonly function?: FunctionMiddleware;
  readonly gate?: ToolGate;
  readonly observer?: EventObserver;
}

/**
 * Sees an agent's events once they are durable, in the process that wrote them: at most once each, never on a replay, because a
 * replay writes none.
 */
export interface EventObserver {
  /** Returns at once and does not throw. */
  observe(event: Event): void;
  /** Everything observed so far has been dealt with. The task's result is not given out before. */
  settled(): Promise<void>;
}
