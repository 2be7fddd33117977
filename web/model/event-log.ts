import type { Event, EventType } from "../../src/kernel/index.ts";

/** Number of events that the page keeps. Older ones are read from the server when a view needs them. */
const most = 6_000;
/** Number of events that are dropped at once. */
const dropped = 1_000;

/** Types of events that a conversation shows. */
export const conversationTypes: ReadonlySet<EventType> = new Set<EventType>([
  "run_start",
  "run_recover",
  "run_fork",
  "run_pause",
  "run_resume",
  "run_cancel",
  "task_cancel",
  "run_steer",
  "input_unread",
  "input_withdraw",
  "agent_start",
  "turn_start",
  "message_end",
  "user_message",
  "tool_execution_start",
  "tool_execution_end",
  "permission_deny",
  "guardrail_decision",
  "approval_request",
  "approval_decision",
  "handoff",
  "worktree_open",
  "worktree_finish",
  "worktree_merge",
  "spawn_start",
  "spawn_wait",
  "spawn_refuse",
  "retry_start",
  "model_fallback",
  "budget_lost",
  "metered_call",
  "gateway_request",
  "attempt_start",
  "usage_corrected",
  "budget_top_up",
  "budget_exhausted",
  "budget_overrun",
  "task_reprioritize",
  "task_retry",
  "step_retry",
  "compensation_start",
  "compensation_end",
  "task_end",
]);

/** The newest events of a run. */
export class EventLog {
  #events: Event[] = [];
  #start = 0;

  /** Number of the first kept event. */
  get first(): number {
    return this.#events[0]?.seq ?? this.#start;
  }

  get last(): number {
    return this.#events.at(-1)?.seq ?? this.#start - 1;
  }

  /** Decides with which event the log starts, before the first one is added. */
  startAt(seq: number): void {
    this.#start = seq;
  }

  /** Adds the next event. An event that the log has already is ignored. */
  add(event: Event): void {
    if (event.seq <= this.last) return;
    this.#events.push(event);
    if (this.#events.length > most) this.#events = this.#events.slice(dropped);
  }

  at(seq: number): Event | undefined {
    return this.#events[seq - this.first];
  }

  /** The kept events with `from <= seq <= to`. */
  between(from: number, to: number): readonly Event[] {
    return this.#events.slice(Math.max(0, from - this.first), Math.max(0, to - this.first + 1));
  }
}
