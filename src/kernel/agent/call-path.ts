import type { Clock } from "../base/clock.ts";
import type { Event, EventType } from "../events/event.ts";
import type { EmittableEvent } from "../events/emittable-event.ts";
import type { RunId } from "../base/identity.ts";
import type { JsonValue } from "../base/json-value.ts";
import type { ChatMiddleware, FunctionMiddleware } from "./middleware.ts";
import type { RunFacts } from "../run/run-facts.ts";
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

/** What an observer is told of the task an event belongs to. */
export interface ObservedTask {
  readonly facts: RunFacts;
  /** What the task was started with. */
  readonly input: JsonValue;
  readonly clock: Clock;
  /** Into the run's log, what code may tell (`ctx.emitEvent`); once the run has ended, to whoever hears of the runtime's errors (S4). */
  emitEvent(event: EmittableEvent): void;
}

/**
 * Sees an agent's events once they are durable, in the process that wrote them: at most once each, never on a replay, because a
 * replay writes none.
 */
export interface EventObserver {
  /** Whether events of this type are anything to it, now; absent: all are. Those that are not are not shown (F1). */
  watches?(type: EventType): boolean;
  /** Returns at once and does not throw. */
  observe(event: Event, task: ObservedTask): void;
  /** Everything observed so far of the run has been dealt with. Its result is not given out before. */
  settled(runId: RunId): Promise<void>;
}
