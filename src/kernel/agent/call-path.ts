import type { Clock } from "../base/sources.ts";
import type { Event, EventType } from "../events/event.ts";
import type { EmittableEvent } from "../events/emittable-event.ts";
import type { RunId } from "../base/identity.ts";
import type { JsonValue } from "../base/json-value.ts";
import type { Delta } from "../messages/delta.ts";
import type { ExtensionPort } from "./extension-context.ts";
import type { RunFacts } from "../run/run-facts.ts";
import type { ModelPipeline, ToolPipeline } from "./call-pipeline.ts";

/**
 * The middleware and checks around an agent's model calls and tool calls, and the observer of its events. F1: the
 * agent composes them from its configuration, and again when the configuration changes. An absent part costs
 * nothing per call.
 *
 * @advanced
 */
export interface CallPath {
  /** The entries that each model call passes. */
  readonly model?: ModelPipeline;
  /** The entries that each tool call passes. */
  readonly tool?: ToolPipeline;
  /** The observer that receives the agent's events. It can neither change nor refuse a call. */
  readonly observer?: EventObserver;
}

/** The task that an observed event belongs to. */
export interface ObservedTask {
  /** User, session and run of the task. */
  readonly facts: RunFacts;
  /** The input that the task was started with. */
  readonly input: JsonValue;
  /** Whether the task is a child that continues its parent's prompt (`ctx.child`). */
  readonly sharesPrompt: boolean;
  /** The runtime's clock. */
  readonly clock: Clock;
  /** What the runtime provides to the extensions of the agent. */
  readonly extensionPort: ExtensionPort;
  /**
   * Writes an event to the run's log, with the restrictions of `ctx.emitEvent`. An event that is written after the
   * run has ended goes to the runtime's error listener instead (S4).
   */
  emitEvent(event: EmittableEvent): void;
}

/**
 * Receives an agent's events after they are durable, in the process that wrote them. It receives each event at most
 * once and none during a replay, because a replay writes no events.
 */
export interface EventObserver {
  /**
   * F1: whether the observer wants events or deltas of this type at the moment. If absent, the observer receives all of
   * them.
   */
  watches?(type: EventType | Delta["type"]): boolean;
  /** Receives one event. It must return synchronously and must not throw. */
  observe(event: Event, task: ObservedTask): void;
  /**
   * E2: receives a piece of a message or of a tool's progress while it is produced. Pieces are not durable: an attempt that
   * is repeated sends them again. If absent, the observer receives none.
   */
  observeDelta?(delta: Delta, task: ObservedTask): void;
  /** Resolves when all events of the run observed so far have been processed. `RunHandle.result` waits for it. */
  settled(runId: RunId): Promise<void>;
}
