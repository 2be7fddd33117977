import type { Commit, Erasure } from "./commit.ts";
import { erasedEvent, erasedFailure, erasedMessage } from "./erased-event.ts";
import type { TaskId } from "../base/identity.ts";
import type { InboxChange } from "./inbox.ts";
import type { JsonObject, JsonValue } from "../base/json-value.ts";
import type { Mail } from "./mailbox.ts";
import type { Message } from "../messages/message.ts";
import type { LlmReply } from "../messages/llm-reply.ts";
import type { Resolution } from "../run/resolution.ts";
import type { StepOutcome, StepRecord } from "../run/step-record.ts";
import type { InheritedRequest } from "../run/inherited-request.ts";
import type { TaskChange } from "../run/task.ts";

/**
 * Returns the commit without the text of these tasks, or the same object if it has none. Erasing twice changes nothing.
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
 * Keeps what the fold of a run needs: the usage of a model call, the number of items that a drain returned, and the names
 * of the branches that settled when the others were abandoned.
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

/** Keeps the ids of messages. Steering and follow-up input has no ids and becomes `null`. */
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
  const { inherits, addedInstructions: _erased, ...task } = change.task;
  const messages = task.messages.map(withoutWords);
  const kept = inherits === undefined ? {} : { inherits: withoutContents(inherits) };
  return { ...change, task: { ...task, ...kept, input: null, metadata: {}, messages } };
}

/** Erases the messages that a child shares. Its hashes stay, because they do not reveal the content. */
function withoutContents(inherits: InheritedRequest): InheritedRequest {
  return "contents" in inherits ? { ...inherits, contents: {} } : inherits;
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
