import type { Failure } from "../base/fault.ts";
import type { TaskId } from "../base/identity.ts";
import type { JsonObject, JsonValue } from "../base/json-value.ts";
import type { Event, EventData, EventType } from "../events/event.ts";
import type { ChatMessage } from "../messages/chat-message.ts";
import type { LlmReply } from "../messages/llm-reply.ts";
import type { Message } from "../messages/message.ts";
import type { Resolution } from "../run/approval.ts";
import type { StoredChanges } from "../run/run-changes.ts";
import type { InheritedRequest } from "../run/spawn-options.ts";
import type { SentRequest } from "../run/sent-request.ts";
import type { SomePaths } from "../run/task-folder.ts";
import type { StepOutcome, StepRecord } from "../run/step.ts";
import type { TaskChange } from "../run/task.ts";
import type { Commit, Erasure } from "./commit.ts";
import type { InboxChange } from "./inbox.ts";
import type { Mail } from "./mailbox.ts";

type Eraser<Type extends EventType> = (data: EventData[Type]) => EventData[Type];

/** Marks an event type whose data contains no text of a user or a model, only ids, names, numbers and times. */
const wordless = null;

/** How the data of each event type is erased. A new event type needs an entry here. */
const erasers: { readonly [Type in EventType]: Eraser<Type> | typeof wordless } = {
  run_start: ({ changes, ...data }) => ({
    ...data,
    input: null,
    metadata: {},
    ...(changes !== undefined && { changes: erasedChanges(changes) }),
  }),
  run_adopt: wordless,
  input: (data) => ({ ...data, input: null }),
  run_fork: ({ input, instructions, toolResults, ...data }) => ({
    ...data,
    ...(input !== undefined && { input: null }),
    ...(instructions !== undefined && { instructions: "" }),
    ...(toolResults !== undefined && {
      toolResults: toolResults.map((each) => ({ ...each, output: { type: "text", text: "" } as const })),
    }),
  }),
  run_steer: ({ metadata: _metadata, ...data }) => ({ ...data, input: null }),
  input_unread: (data) => ({ ...data, input: null }),
  agent_start: (data) => ({ ...data, input: null }),
  agent_end: (data) => ({ ...data, output: "", interruptionReason: null }),
  agent_error: (data) => ({ ...data, failure: erasedFailure(data.failure) }),
  user_message: (data) => ({ ...data, message: erasedMessage(data.message) }),
  message_end: (data) => ({ ...data, message: erasedMessage(data.message) }),
  tool_execution_start: ({ foreign: _foreign, ...data }) => ({ ...data, input: null }),
  tool_execution_end: ({ metadata: _metadata, ...data }) => ({
    ...data,
    result: { output: { type: "text", text: "" }, isError: data.result.isError },
  }),
  permission_deny: (data) => ({ ...data, reason: "" }),
  approval_request: ({ parsedInput: _parsedInput, foreign, ...data }) => ({
    ...data,
    input: null,
    reason: "",
    ...(foreign !== undefined && { foreign: { program: foreign.program } }),
  }),
  approval_decision: ({ decision, ...data }) => ({ ...data, decision: { decision: decision.decision } }),
  guardrail_decision: (data) => ({ ...data, reason: "" }),
  guardrail_error: (data) => ({ ...data, failure: erasedFailure(data.failure) }),
  hook_error: (data) => ({ ...data, failure: erasedFailure(data.failure) }),
  extension_notice: (data) => ({ ...data, message: "" }),
  extension_error: (data) => ({ ...data, failure: erasedFailure(data.failure) }),
  retry_start: (data) => ({ ...data, message: "" }),
  memory_write: ({ diff: _diff, ...data }) => data,
  model_fallback: (data) => ({ ...data, message: "" }),
  step_retry: (data) => ({ ...data, failure: erasedFailure(data.failure) }),
  compensation_start: (data) => ({ ...data, failure: erasedFailure(data.failure) }),
  compensation_end: ({ failed }) => ({
    failed: failed.map(({ name, failure }) => ({ name, failure: erasedFailure(failure) })),
  }),
  task_retry: (data) => ({ ...data, failure: erasedFailure(data.failure) }),
  architecture_event: (data) => ({ ...data, data: {} }),
  gateway_request: ({ reason, ...data }) => ({
    ...data,
    model: null,
    ...(reason !== undefined && { reason: "" }),
  }),
  handoff: (data) => ({ ...data, task: "" }),
  worktree_open: (data) => ({
    ...data,
    uncommitted: erasedPaths(data.uncommitted),
    ignored: erasedPaths(data.ignored),
    submodules: erasedPaths(data.submodules),
    copied: [],
  }),
  worktree_finish: (data) => ({
    ...data,
    changed: erasedPaths(data.changed),
    uncommitted: erasedPaths(data.uncommitted),
    overlaps: [],
  }),
  worktree_merge: ({ reason: _reason, ...data }) => ({
    ...data,
    changed: erasedPaths(data.changed),
    conflicts: erasedPaths(data.conflicts),
  }),
  worktree_remove: wordless,
  // Only the text is erased. The outcome stays, because the caller that spawned the task or submitted the run relies on it.
  task_end: wordless,
  run_end: wordless,
  run_recover: wordless,
  run_bind: wordless,
  run_pause: wordless,
  run_resume: wordless,
  run_cancel: wordless,
  task_cancel: wordless,
  run_carry_over: wordless,
  input_withdraw: wordless,
  run_scheduled: wordless,
  compaction_scheduled: wordless,
  compaction_requested: ({ instructions: _instructions, ...data }) => data,
  compaction_skipped: ({ failure, ...data }) => ({
    ...data,
    ...(failure !== undefined && { failure: erasedFailure(failure) }),
  }),
  task_start: wordless,
  task_signal: wordless,
  promise_reopen: wordless,
  value_published: (data) => ({ ...data, value: null }),
  state_changed: ({ object, key, state }) => ({ object, key, ...(state !== undefined && { state: null }) }),
  update_start: wordless,
  update_end: ({ reply, ...data }) => ({
    ...data,
    reply:
      reply.status === "completed"
        ? { ...reply, value: null }
        : { ...reply, failure: erasedFailure(reply.failure) },
  }),
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
  metered_call: wordless,
  attempt_start: wordless,
  usage_corrected: wordless,
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
 * E1: returns the event without its text, with what happened, when, and at what cost. The hash chain covers the
 * hash of the original event.
 */
function erasedEvent(event: Event): Event {
  const erase = erasers[event.type] as Eraser<EventType> | typeof wordless;
  if (erase === wordless || event.erased === true) return event;
  return { ...event, data: erase(event.data), erased: true } as Event;
}

function erasedMessage<Chat extends ChatMessage>(message: Chat): Chat {
  const { role } = message;
  return { role, content: role === "system" ? "" : [] } as unknown as Chat;
}

function erasedPaths({ count }: SomePaths): SomePaths {
  return { count, paths: [] };
}

function erasedFailure({ code }: Failure): Failure {
  return { code, message: "" };
}

/**
 * Returns the commit without the text of these tasks, or the same object if it contains no such text. Erasing twice
 * changes nothing.
 *
 * @advanced
 */
export function eraseCommit(commit: Commit, erasures: readonly Erasure[]): Commit {
  const tasks = new Set(erasures.map(({ taskId }) => taskId));
  const agents = new Set<string | null>(erasures.map(({ agentId }) => agentId));
  const has = ({ taskId }: { readonly taskId: TaskId }): boolean => tasks.has(taskId);
  const erased: { -readonly [Key in keyof Commit]: Commit[Key] } = { ...commit };
  let isChanged = false;
  const change = <Key extends keyof Commit>(key: Key, value: Commit[Key]): void => {
    erased[key] = value;
    isChanged = true;
  };
  if (commit.events?.some(has) === true)
    change(
      "events",
      commit.events.map((event) => (has(event) ? erasedEvent(event) : event)),
    );
  if (commit.steps?.some(has) === true)
    change(
      "steps",
      commit.steps.map((step) => (has(step) ? { ...step, outcome: erasedOutcome(step) } : step)),
    );
  if (commit.requests?.some(has) === true)
    change(
      "requests",
      commit.requests.map((each) => (has(each) ? erasedRequest(each) : each)),
    );
  if (commit.resolves?.some(has) === true)
    change(
      "resolves",
      commit.resolves.map((each) => (has(each) ? erasedResolution(each) : each)),
    );
  if (commit.tasks !== undefined)
    change(
      "tasks",
      commit.tasks.map((each) => erasedChange(each, tasks)),
    );
  if (commit.mail?.some(({ from }) => agents.has(from)) === true)
    change(
      "mail",
      commit.mail.map((mail) => (agents.has(mail.from) ? erasedMail(mail) : mail)),
    );
  if (commit.inbox !== undefined)
    change(
      "inbox",
      commit.inbox.map((each) => erasedDelivery(each, agents)),
    );
  return isChanged ? erased : commit;
}

/**
 * Erases an outcome except for what the state of a run is computed from: the usage of a model call, the number of
 * inputs that a read returned, and the names of the branches that settled when the others were abandoned.
 */
function erasedOutcome({ kind, name, outcome }: StepRecord): StepOutcome {
  if (outcome.kind === "failed") return { kind: "failed", failure: erasedFailure(outcome.failure) };
  if (kind === "drain") return { kind: "ok", value: erasedDrain(name, outcome.value) };
  if (kind === "abandon") return outcome;
  if (kind === "race" && isObject(outcome.value))
    return { kind: "ok", value: { winner: outcome.value["winner"] ?? null, value: null } };
  if (kind !== "llm" || !isObject(outcome.value)) return { kind: "ok", value: null };
  const reply = outcome.value as unknown as LlmReply;
  const value = { ...reply, message: erasedMessage(reply.message) };
  return { kind: "ok", value: value as unknown as JsonValue };
}

/**
 * Erases inputs that a task has read, except for the ids of messages. Steering and follow-up input has no ids and
 * becomes `null`.
 */
function erasedDrain(queue: string, given: JsonValue): JsonValue {
  if (!Array.isArray(given)) return [];
  const isSaid = queue === "steer" || queue === "follow_up";
  return (given as readonly JsonValue[]).map((each) =>
    isSaid || !isObject(each) ? null : (withoutWords(each as unknown as Message) as unknown as JsonValue),
  );
}

function erasedChange(change: TaskChange, tasks: ReadonlySet<TaskId>): TaskChange {
  if (change.type === "continue" && tasks.has(change.taskId)) return { ...change, input: null };
  if (change.type === "end" && change.next !== undefined && tasks.has(change.taskId))
    return { ...change, next: change.next.map((run) => ({ ...run, input: null, metadata: {} })) };
  if (change.type !== "create" || !tasks.has(change.task.taskId)) return change;
  const { inherits, addedInstructions: _erased, changes, folder, ...task } = change.task;
  const messages = task.messages.map(withoutWords);
  const kept = {
    ...(inherits !== undefined && { inherits: withoutContents(inherits) }),
    ...(changes !== undefined && { changes: erasedChanges(changes) }),
    // The notes name files of the user.
    ...(folder !== undefined && { folder: { ...folder, notes: "" } }),
  };
  return { ...change, task: { ...task, ...kept, input: null, metadata: {}, messages } };
}

/** Erases the changes of a caller except for the model and the names of the agent's tools. */
function erasedChanges({
  instructions: _instructions,
  clientTools: _clientTools,
  ...changes
}: StoredChanges): StoredChanges {
  return changes;
}

/**
 * Erases the messages that a child shares with its parent. Their hashes remain, because they do not reveal the
 * content.
 */
function withoutContents(inherits: InheritedRequest): InheritedRequest {
  return "contents" in inherits ? { ...inherits, contents: {} } : inherits;
}

/**
 * Erases the recorded parts of a model request except for the hashes, which do not reveal the content. Settings are
 * erased because they may contain texts, such as those that end an answer.
 */
function erasedRequest({
  messages: _messages,
  contents: _contents,
  frame,
  ...place
}: SentRequest): SentRequest {
  if (frame === undefined) return place;
  const { settings: _settings, ...kept } = frame;
  return { ...place, frame: kept };
}

function erasedResolution({ metadata: _metadata, ...resolution }: Resolution): Resolution {
  return { ...resolution, value: null };
}

function erasedMail(mail: Mail): Mail {
  return mail.body.type === "resolve" ? { ...mail, body: { ...mail.body, value: null } } : mail;
}

function erasedDelivery(change: InboxChange, agents: ReadonlySet<string | null>): InboxChange {
  if (change.type !== "deliver" || !agents.has(change.message.from)) return change;
  return { ...change, message: withoutWords(change.message) };
}

function withoutWords(message: Message): Message {
  const { sender } = message;
  return { ...message, body: null, ...(sender !== undefined && { sender: { ...sender, metadata: {} } }) };
}

function isObject(value: JsonValue): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
