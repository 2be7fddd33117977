import type { ChatMessage } from "../messages/chat-message.ts";
import type { Event, EventData, EventType } from "../events/event.ts";
import type { Failure } from "../base/fault.ts";

type Eraser<Type extends EventType> = (data: EventData[Type]) => EventData[Type];

/** Marks an event type whose data holds no text of a user or a model, only ids, names, numbers and times. */
const wordless = null;

/** How the data of each event type is erased. A new event type needs an entry here. */
const erasers: { readonly [Type in EventType]: Eraser<Type> | typeof wordless } = {
  run_start: (data) => ({ ...data, input: null, metadata: {} }),
  input: (data) => ({ ...data, input: null }),
  run_fork: ({ input, ...data }) => (input === undefined ? data : { ...data, input: null }),
  run_steer: ({ metadata: _metadata, ...data }) => ({ ...data, input: null }),
  agent_start: (data) => ({ ...data, input: null }),
  agent_end: (data) => ({ ...data, output: "", interruptionReason: null }),
  agent_error: (data) => ({ ...data, failure: erasedFailure(data.failure) }),
  user_message: (data) => ({ ...data, message: erasedMessage(data.message) }),
  message_end: (data) => ({ ...data, message: erasedMessage(data.message) }),
  tool_execution_start: (data) => ({ ...data, input: null }),
  tool_execution_end: ({ metadata: _metadata, ...data }) => ({
    ...data,
    result: { output: { type: "text", text: "" }, isError: data.result.isError },
  }),
  permission_deny: (data) => ({ ...data, reason: "" }),
  approval_request: ({ parsedInput: _parsedInput, ...data }) => ({ ...data, input: null, reason: "" }),
  approval_decision: ({ decision, ...data }) => ({ ...data, decision: { decision: decision.decision } }),
  guardrail_decision: (data) => ({ ...data, reason: "" }),
  guardrail_error: (data) => ({ ...data, failure: erasedFailure(data.failure) }),
  hook_error: (data) => ({ ...data, failure: erasedFailure(data.failure) }),
  extension_notice: (data) => ({ ...data, message: "" }),
  extension_error: (data) => ({ ...data, failure: erasedFailure(data.failure) }),
  retry_start: (data) => ({ ...data, message: "" }),
  memory_write: ({ diff: _diff, ...data }) => data,
  model_fallback: (data) => ({ ...data, message: "" }),
  task_retry: (data) => ({ ...data, failure: erasedFailure(data.failure) }),
  architecture_event: (data) => ({ ...data, data: {} }),
  handoff: (data) => ({ ...data, task: "" }),
  // Only the text is erased. The outcome stays, because the caller that spawned the task or submitted the run relies on it.
  task_end: wordless,
  run_end: wordless,
  run_recover: wordless,
  run_pause: wordless,
  run_resume: wordless,
  run_cancel: wordless,
  run_carry_over: wordless,
  run_scheduled: wordless,
  compaction_scheduled: wordless,
  compaction_requested: ({ instructions: _instructions, ...data }) => data,
  compaction_skipped: ({ failure, ...data }) => ({
    ...data,
    ...(failure !== undefined && { failure: erasedFailure(failure) }),
  }),
  task_start: wordless,
  task_signal: wordless,
  task_suspend: wordless,
  task_wake: wordless,
  task_continue_as_new: wordless,
  journal_warning: wordless,
  step_end: wordless,
  mail_receive: wordless,
  mail_dead_letter: wordless,
  turn_start: wordless,
  turn_end: wordless,
  message_start: wordless,
  before_agent_start: wordless,
  context: wordless,
  save_point: wordless,
  settled: wordless,
  session_before_compact: wordless,
  session_compact: wordless,
  retry_end: wordless,
  memory_recall: wordless,
  budget_warning: wordless,
  budget_exhausted: wordless,
  budget_overrun: wordless,
  budget_lost: wordless,
  budget_top_up: wordless,
  spawn_start: wordless,
  spawn_wait: wordless,
  spawn_refuse: wordless,
  seat_grant: wordless,
  seat_yield: wordless,
  seat_pause: wordless,
  seat_recall: wordless,
  seat_keep: wordless,
  task_reprioritize: wordless,
  flow_start: wordless,
  flow_step_start: wordless,
  flow_step_end: wordless,
  flow_end: wordless,
};

/** The types of all events. */
export const eventTypes: readonly EventType[] = Object.keys(erasers) as EventType[];

/**
 * E1: keeps what happened, when, and at what cost, and removes the text. The chain covers the hash of the original
 * event.
 */
export function erasedEvent(event: Event): Event {
  const erase = erasers[event.type] as Eraser<EventType> | typeof wordless;
  if (erase === wordless || event.erased === true) return event;
  return { ...event, data: erase(event.data), erased: true } as Event;
}

export function erasedMessage<Message extends ChatMessage>(message: Message): Message {
  const { role } = message;
  return { role, content: role === "system" ? "" : [] } as unknown as Message;
}

export function erasedFailure({ code }: Failure): Failure {
  return { code, message: "" };
}
