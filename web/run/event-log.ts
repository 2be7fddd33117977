import type { Event, EventType, TaskId } from "../../src/kernel/index.ts";

/** Number of events that the page keeps. Older ones are read from the server when a view needs them. */
const most = 20_000;
const dropped = 5_000;

/** Types of events that a conversation shows. */
export const conversationTypes: ReadonlySet<EventType> = new Set<EventType>([
  "run_start",
  "run_recover",
  "run_fork",
  "run_pause",
  "run_resume",
  "run_cancel",
  "run_steer",
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
  "spawn_refuse",
  "retry_start",
  "model_fallback",
  "budget_lost",
  "budget_top_up",
  "budget_exhausted",
  "budget_overrun",
  "task_retry",
  "task_end",
]);

/** The newest events of a run, and those that conversations show by task. */
export class EventLog {
  #events: Event[] = [];
  #byTask = new Map<TaskId, Event[]>();
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
    if (conversationTypes.has(event.type)) {
      const list = this.#byTask.get(event.taskId);
      if (list === undefined) this.#byTask.set(event.taskId, [event]);
      else list.push(event);
    }
    if (this.#events.length > most) this.#drop();
  }

  at(seq: number): Event | undefined {
    return this.#events[seq - this.first];
  }

  /** The kept events with `from <= seq <= to`. */
  between(from: number, to: number): readonly Event[] {
    return this.#events.slice(Math.max(0, from - this.first), Math.max(0, to - this.first + 1));
  }

  /** The events that the conversation of a task shows. */
  ofTask(taskId: TaskId): readonly Event[] {
    return this.#byTask.get(taskId) ?? [];
  }

  #drop(): void {
    this.#events = this.#events.slice(dropped);
    const { first } = this;
    for (const [taskId, list] of this.#byTask)
      this.#byTask.set(
        taskId,
        list.filter(({ seq }) => seq >= first),
      );
  }
}
