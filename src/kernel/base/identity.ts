import { describeValue } from "./describe-value.ts";
import { Fault } from "./fault.ts";

declare const brand: unique symbol;
type Id<Name extends string> = string & { readonly [brand]: Name };

/** The address of an agent with an inbox, such as `researcher`, or `researcher/eu` for one of several instances. */
export type AgentId = Id<"AgentId">;
/** The address of a topic, such as `agent.progress/run_7`. */
export type TopicId = Id<"TopicId">;
/**
 * The id of a run, which is one execution with all its tasks: `run_<id>`. Budgets, seats, cancellation and the
 * event log belong to a run.
 */
export type RunId = Id<"RunId">;
/**
 * The id of a task, which is the work of one agent in a run: `t0` is the root, `t1` the first task that was
 * spawned. Unique within its run.
 */
export type TaskId = Id<"TaskId">;
/**
 * The id of a conversation, which outlives runs. The caller chooses it, or the runtime derives it from the run
 * (`unnamedSessionId`) or from an outer session (`sessionWithin`).
 */
export type SessionId = Id<"SessionId">;

export interface AgentAddress {
  readonly name: string;
  /** Distinguishes several instances of one agent. */
  readonly key?: string;
}

export interface TopicAddress {
  readonly type: string;
  readonly source: string;
}

const word = /^[A-Za-z0-9_][A-Za-z0-9_.:@-]{0,127}$/;
const anyAgent = /^[A-Za-z0-9_][A-Za-z0-9_.:@-]{0,127}(?:\/[A-Za-z0-9_][A-Za-z0-9_.:@-]{0,127})?$/;
/** Matches a session id with a segment that is empty, `.` or `..`. */
const noSegment = /(?:^|\/)\.*(?:\/|$)/;
const anySession = /^[A-Za-z0-9_][A-Za-z0-9_.:@/-]{0,255}$/;
/** Matches a session id of a single segment, the common case, which needs no further check. */
const oneSegment = /^[A-Za-z0-9_][A-Za-z0-9_.:@-]{0,255}$/;
const anyRun = /^run_[A-Za-z0-9_-]{1,64}$/;
/** Maximum length of a run id in characters. */
export const longestRunId = 68;
/** Matches the session id of a run that was submitted without a `sessionId`. */
const unnamed = /^ses_(run_[A-Za-z0-9_-]{1,64})(?:\.[A-Za-z0-9_-]{1,64})?$/;
const ownPart = /^[A-Za-z0-9_-]{1,64}$/;
const wordRule = "1 to 128 letters, digits, and _ . : @ -, starting with a letter, digit or _";

/** Makes the id of an agent: `formatAgentId({ name: "researcher", key: "eu" })` is `researcher/eu`. */
export function formatAgentId({ name, key }: AgentAddress): AgentId {
  requireMatch(word, name, "agent name", wordRule);
  if (key === undefined) return name as AgentId;
  requireMatch(word, key, "agent key", wordRule);
  return `${name}/${key}` as AgentId;
}

/** Checks that a text is an agent id and returns it as one. */
export function agentIdOf(text: string): AgentId {
  return typeof text === "string" && anyAgent.test(text)
    ? (text as AgentId)
    : formatAgentId(parseAgentId(text));
}

export function parseAgentId(text: string): AgentAddress {
  const [name = "", ...keys] = requireText(text, "agent id").split("/");
  const key = keys.length === 0 ? {} : { key: keys.join("/") };
  formatAgentId({ name, ...key });
  return { name, ...key };
}

/** Returns the name in an agent id. It does not check the text again, because it was checked when it became an id. */
export function agentNameOf(agentId: AgentId): string {
  const end = agentId.indexOf("/");
  return end === -1 ? agentId : agentId.slice(0, end);
}

/**
 * Returns the name by which usage and caps count the calls of an agent. For agents of Reeve itself, whose names
 * begin with `reeve:`, it is the whole id, because the key says for which program they act, as in
 * `reeve:gateway/bot`.
 */
export function usageNameOf(agentId: AgentId): string {
  return agentId.startsWith("reeve:") ? agentId : agentNameOf(agentId);
}

/** Makes the id of a topic: `formatTopicId({ type: "news", source: "eu" })` is `news/eu`. */
export function formatTopicId({ type, source }: TopicAddress): TopicId {
  requireMatch(word, type, "topic type", wordRule);
  requireMatch(word, source, "topic source", wordRule);
  return `${type}/${source}` as TopicId;
}

/** Splits the id of a topic into type and source. Throws a fault if the text is not a topic id. */
export function parseTopicId(text: string): TopicAddress {
  const cut = requireText(text, "topic id").indexOf("/");
  const address = { type: text.slice(0, Math.max(cut, 0)), source: text.slice(cut + 1) };
  if (cut < 0) throw refused("topic id", text, "a type and a source joined by /");
  formatTopicId(address);
  return address;
}

/** Makes the id of a run: `formatRunId("parcel")` is `run_parcel`. */
export function formatRunId(id: string): RunId {
  return parseRunId(`run_${id}`);
}

export function parseRunId(text: string): RunId {
  requireMatch(anyRun, text, "run id", "run_ and 1 to 64 letters, digits, _ or -");
  return text as RunId;
}

/** The id of the root task, the same in every run. */
export const rootTaskId = "t0" as TaskId;

/** Formats the number of a task; 0 is the root. */
export function formatTaskId(ordinal: number): TaskId {
  if (!Number.isSafeInteger(ordinal) || ordinal < 0)
    throw refused("task number", ordinal, "an integer from 0");
  return `t${ordinal}` as TaskId;
}

export function parseTaskId(text: string): TaskId {
  requireMatch(/^t(0|[1-9][0-9]{0,15})$/, text, "task id", "t and a number, such as t0");
  formatTaskId(Number(text.slice(1)));
  return text as TaskId;
}

/** Makes the id of a session: `formatSessionId("ann")` is `ses_ann`. */
export function formatSessionId(id: string): SessionId {
  return parseSessionId(`ses_${id}`);
}

/**
 * Returns the session id of a run that was submitted without one. `own` is a new unique id. Pass it if an earlier
 * run with the same run id may have left a session; it is then appended.
 */
export function unnamedSessionId(runId: RunId, own?: string): SessionId {
  return named(`ses_${runId}`, own);
}

/**
 * Returns the session id of a fork of a run whose session id the caller chose. It contains a dot, which no run id
 * has, so that it never equals an unnamed session id. `own` is as in `unnamedSessionId`.
 */
export function forkSessionId(runId: RunId, own?: string): SessionId {
  return named(`ses_fork.${runId.slice("run_".length)}`, own);
}

function named(name: string, own: string | undefined): SessionId {
  if (own === undefined) return name as SessionId;
  requireMatch(ownPart, own, "new id", "1 to 64 letters, digits, _ or -");
  return `${name}.${own}` as SessionId;
}

/** Whether the runtime created the session for this run, because the caller chose no session id. */
export function isUnnamedSession(sessionId: SessionId, runId: RunId): boolean {
  return unnamedBy(sessionId) === runId;
}

/**
 * Returns the run for which the runtime created the session, because the caller chose no session id. `undefined`
 * for other sessions.
 */
export function unnamedBy(sessionId: SessionId): RunId | undefined {
  return unnamed.exec(sessionId)?.[1] as RunId | undefined;
}

/** Checks that a text is a session id and returns it as one. Throws a fault otherwise. */
export function parseSessionId(text: string): SessionId {
  if (typeof text === "string" && oneSegment.test(text)) return text as SessionId;
  requireMatch(
    anySession,
    text,
    "session id",
    "1 to 256 letters, digits, and _ . : @ / -, starting with a letter, digit or _",
  );
  if (noSegment.test(text)) {
    throw refused("session id", text, "made of segments that are not empty, . or ..");
  }
  return text as SessionId;
}

/**
 * The id of a worker's session inside a conversation: `chat-42#<name>`. Ids that callers choose contain no `#`, so
 * that no conversation has the id of a worker's session. With an empty name, it is the common prefix of all worker
 * sessions of the conversation.
 */
export function sessionWithin(conversation: SessionId, name: string): SessionId {
  return `${conversation}#${name}` as SessionId;
}

/** The conversation that contains the session, or the session itself if it is a conversation. @advanced */
export function conversationOf(sessionId: SessionId): SessionId {
  const end = sessionId.indexOf("#");
  return end === -1 ? sessionId : (sessionId.slice(0, end) as SessionId);
}

function requireText(value: unknown, what: string): string {
  if (typeof value !== "string") throw refused(what, value, "a string");
  return value;
}

function requireMatch(pattern: RegExp, value: unknown, what: string, rule: string): void {
  if (!pattern.test(requireText(value, what))) throw refused(what, value, rule);
}

function refused(what: string, value: unknown, rule: string): Fault {
  return new Fault("invalid_argument", `invalid ${what} ${describeValue(value)}: expected ${rule}`);
}
