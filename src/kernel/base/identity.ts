import { describeValue } from "./describe-value.ts";
import { Fault } from "./fault.ts";

declare const brand: unique symbol;
type Id<Name extends string> = string & { readonly [brand]: Name };

/** The address of an agent with an inbox: `researcher`, or `researcher/eu` for one instance of several. */
export type AgentId = Id<"AgentId">;
/** The address of a topic: `agent.progress/run_7`. */
export type TopicId = Id<"TopicId">;
/** One execution tree: `run_<id>`. Scopes budgets, headcount, cancellation and the event log. */
export type RunId = Id<"RunId">;
/** One agent's node in a run: `t0` is the root, `t1` the first task spawned. Unique within its run. */
export type TaskId = Id<"TaskId">;
/** A conversation; outlives runs. Chosen by the user, or that of a run which was given none (`unnamedSessionId`); or one within it (`sessionWithin`). */
export type SessionId = Id<"SessionId">;

export interface AgentAddress {
  readonly name: string;
  /** Tells instances of one agent apart. */
  readonly key?: string;
}

export interface TopicAddress {
  readonly type: string;
  readonly source: string;
}

const word = /^[A-Za-z0-9_][A-Za-z0-9_.:@-]{0,127}$/;
const anyAgent = /^[A-Za-z0-9_][A-Za-z0-9_.:@-]{0,127}(?:\/[A-Za-z0-9_][A-Za-z0-9_.:@-]{0,127})?$/;
/** A segment that is empty, . or .. */
const noSegment = /(?:^|\/)\.*(?:\/|$)/;
const anySession = /^[A-Za-z0-9_][A-Za-z0-9_.:@/-]{0,255}$/;
/** Most sessions have one segment: then there is nothing to look for. */
const oneSegment = /^[A-Za-z0-9_][A-Za-z0-9_.:@-]{0,255}$/;
const anyRun = /^run_[A-Za-z0-9_-]{1,64}$/;
/** In characters. */
export const longestRunId = 68;
/** Of a run that was given none. */
const unnamed = /^ses_(run_[A-Za-z0-9_-]{1,64})(?:\.[A-Za-z0-9_-]{1,64})?$/;
const ownPart = /^[A-Za-z0-9_-]{1,64}$/;
const wordRule = "1 to 128 letters, digits, and _ . : @ -, starting with a letter, digit or _";

export function formatAgentId({ name, key }: AgentAddress): AgentId {
  requireMatch(word, name, "agent name", wordRule);
  if (key === undefined) return name as AgentId;
  requireMatch(word, key, "agent key", wordRule);
  return `${name}/${key}` as AgentId;
}

/** The text, if it is the id of an agent. */
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

/** Its text was looked at when it became an id. */
export function agentNameOf(agentId: AgentId): string {
  const end = agentId.indexOf("/");
  return end === -1 ? agentId : agentId.slice(0, end);
}

export function formatTopicId({ type, source }: TopicAddress): TopicId {
  requireMatch(word, type, "topic type", wordRule);
  requireMatch(word, source, "topic source", wordRule);
  return `${type}/${source}` as TopicId;
}

export function parseTopicId(text: string): TopicAddress {
  const cut = requireText(text, "topic id").indexOf("/");
  const address = { type: text.slice(0, Math.max(cut, 0)), source: text.slice(cut + 1) };
  if (cut < 0) throw refused("topic id", text, "a type and a source joined by /");
  formatTopicId(address);
  return address;
}

export function formatRunId(id: string): RunId {
  return parseRunId(`run_${id}`);
}

export function parseRunId(text: string): RunId {
  requireMatch(anyRun, text, "run id", "run_ and 1 to 64 letters, digits, _ or -");
  return text as RunId;
}

/** The root of every run. */
export const rootTaskId = "t0" as TaskId;

/** Counts from 0, the root. */
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

export function formatSessionId(id: string): SessionId {
  return parseSessionId(`ses_${id}`);
}

/**
 * That of a run which was given none: whoever comes back to it has to be told its name. `own`: an id never given before, where that of the
 * run may have been another's, whose session is still there.
 */
export function unnamedSessionId(runId: RunId, own?: string): SessionId {
  return named(`ses_${runId}`, own);
}

/** That of a fork of a run whose session was given. No id of a run has a dot: it is that of no run which was given none. `own` as there. */
export function forkSessionId(runId: RunId, own?: string): SessionId {
  return named(`ses_fork.${runId.slice("run_".length)}`, own);
}

function named(name: string, own: string | undefined): SessionId {
  if (own === undefined) return name as SessionId;
  requireMatch(ownPart, own, "new id", "1 to 64 letters, digits, _ or -");
  return `${name}.${own}` as SessionId;
}

/** Whether it is one of those. */
export function isUnnamedSession(sessionId: SessionId, runId: RunId): boolean {
  return unnamedBy(sessionId) === runId;
}

/** The run whose session it is, if it is that of a run which was given none; no id of a run has a dot. */
export function unnamedBy(sessionId: SessionId): RunId | undefined {
  return unnamed.exec(sessionId)?.[1] as RunId | undefined;
}

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
 * That of one who works within a conversation: `chat-42#<name>`. Nobody is given it by naming it, and no two conversations have one in common: an
 * id that is given has no `#`. Of no name: what all of a conversation begin with.
 */
export function sessionWithin(conversation: SessionId, name: string): SessionId {
  return `${conversation}#${name}` as SessionId;
}

/** The conversation that a session is within, or is. */
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
  return new Fault(
    "invalid_argument",
    `${describeValue(value)} is not ${/^[aeiou]/.test(what) ? "an" : "a"} ${what}: it must be ${rule}`,
  );
}
