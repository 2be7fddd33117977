import {
  digestOf,
  type AgentId,
  type Commit,
  type Event,
  type Hash,
  type JsonValue,
  type SessionChange,
  type SessionEntry,
  type SessionId,
  type StepAddress,
  type StepOpening,
  type StepRecord,
  type TaskId,
} from "../../../kernel/index.ts";
import { foldJson, unfoldJson } from "./folded-json.ts";
import type { RunKey } from "./run-row.ts";
import { referEvent, restoreEvent } from "./shared-content.ts";
import { decodeBooking, encodeBooking, type Bookkeeper } from "./stored-booking.ts";
import type { StoredChange, StoredCommit, StoredEvent, StoredOpening, StoredStep } from "./stored-commit.ts";

type Run = Pick<RunKey, "runId" | "agentId" | "sessionId">;

/** What a commit need not say, since its run and its row do. */
export interface CommitFrame extends Run {
  readonly number: number;
  readonly at: number;
  /** The seq after its last event. */
  readonly nextEvent: number;
}

const rootTask = "t0" as TaskId;

/** That of a fork may be very large, and folding takes time. */
const mostFolded = 16_384;

/** What most first commits hold. Stored ones name these by their place, and what follows after them: the list must not change. */
const common: readonly JsonValue[] = [
  { maxTokens: null, maxCostUsd: null, maxTurns: null, deadlineMs: null },
  { maxAgents: 50, allowPreempt: true },
];

function knownOf({ runId, agentId, sessionId }: Run): readonly JsonValue[] {
  return [...common, runId, agentId, sessionId];
}

function rootOf({ agentId }: Run): Bookkeeper {
  return { taskId: rootTask, agentId };
}

/** What is stored as the commit has it. */
const asTheyAre = [
  "voids",
  "tasks",
  "resolves",
  "headcount",
  "mailThrough",
  "mail",
  "inbox",
  "topics",
] as const satisfies readonly (keyof Commit & keyof StoredCommit)[];

/** The text of a commit's row: nothing that its row says, and no message twice. The first one, of which every run has one, is folded. */
export function encodeCommit(commit: Commit, run: Run, hash: Hash): string {
  const { number, at, opens, steps, events, ledger, sessions } = commit;
  const stored: { -readonly [Key in keyof StoredCommit]: StoredCommit[Key] } = {};
  if (steps !== undefined && steps.length > 0) stored.steps = steps.map((step) => encodeStep(step, hash));
  if (events !== undefined && events.length > 0)
    stored.events = encodeEvents(events, { steps: steps ?? [], at, agentId: run.agentId });
  if (opens !== undefined && opens.length > 0) stored.opens = opens.map(encodeOpening);
  if (ledger !== undefined && ledger.length > 0) {
    const root = rootOf(run);
    stored.ledger = ledger.map((command) => encodeBooking(command, root));
  }
  if (sessions !== undefined && sessions.length > 0)
    stored.sessions = sessions.map((change) => encodeChange(change, run));
  for (const key of asTheyAre) {
    const value = commit[key];
    if (value !== undefined && (!Array.isArray(value) || value.length > 0))
      (stored as Record<string, unknown>)[key] = value;
  }
  const text = JSON.stringify(stored);
  if (number > 0) return text;
  if (text.length > mostFolded) return JSON.stringify({ plain: stored });
  return JSON.stringify(foldJson(JSON.parse(text) as JsonValue, knownOf(run)));
}

/** Finds an entry of a session; nothing if it was removed since. */
export type FindEntry = (sessionId: SessionId, entryId: string) => SessionEntry | undefined;

/**
 * The commit as it was, but for entries that were removed from their sessions since. Throws a `SyntaxError` when the text is not what
 * `encodeCommit` wrote.
 */
export function decodeCommit(body: string, frame: CommitFrame, find: FindEntry): Commit {
  const parsed = JSON.parse(body) as JsonValue;
  const stored = (frame.number === 0
    ? unfoldJson(parsed, knownOf(frame))
    : parsed) as unknown as StoredCommit;
  const { opens, steps, events, ledger, sessions } = stored;
  // The parsed object becomes the commit: copying it would take as long as parsing it.
  const commit = stored as unknown as { -readonly [Key in keyof Commit]: Commit[Key] };
  commit.number = frame.number;
  commit.at = frame.at;
  const records = steps?.map(decodeStep) ?? [];
  if (steps !== undefined) commit.steps = records;
  if (events !== undefined) commit.events = decodeEvents(events, records, frame);
  if (opens !== undefined) commit.opens = opens.map(decodeOpening);
  if (ledger !== undefined) {
    const root = rootOf(frame);
    commit.ledger = ledger.map((booking) => decodeBooking(booking, root));
  }
  if (sessions !== undefined)
    commit.sessions = sessions.flatMap((change) => decodeChange(change, frame, find));
  return commit;
}

function encodeChange(change: SessionChange, run: Run): StoredChange {
  if (change.type !== "append") return change;
  const { entry, sessionId, agentId, visibility } = change;
  return {
    ...(sessionId !== run.sessionId && { sessionId }),
    ...(agentId !== run.agentId && { agentId }),
    ...(visibility !== "pending" && { visibility }),
    ...(entry.id.startsWith(`${run.runId}/`)
      ? { own: entry.id.slice(run.runId.length + 1) }
      : { entryId: entry.id }),
  };
}

function decodeChange(change: StoredChange, run: Run, find: FindEntry): SessionChange[] {
  if (change.type !== undefined) return [change];
  const { sessionId = run.sessionId, agentId = run.agentId, visibility = "pending" } = change;
  const entry = find(sessionId, "own" in change ? `${run.runId}/${change.own}` : change.entryId);
  return entry === undefined ? [] : [{ type: "append", sessionId, agentId, entry, visibility }];
}

function encodeOpening({ taskId, address, seq }: StepOpening): StoredOpening {
  return taskId === rootTask ? [address, seq] : [address, seq, taskId];
}

function decodeOpening([address, seq, taskId = rootTask]: StoredOpening): StepOpening {
  return { taskId, address: address as StepAddress, seq };
}

function encodeStep(step: StepRecord, hash: Hash): StoredStep {
  const { taskId, address, kind, name, outcome } = step;
  const digest = digestOf(step, hash);
  if (outcome.kind === "failed") return [address, kind, name, digest, null, taskId, outcome.failure];
  return taskId === rootTask
    ? [address, kind, name, digest, outcome.value]
    : [address, kind, name, digest, outcome.value, taskId];
}

function decodeStep([
  address,
  kind,
  name,
  digest,
  value,
  taskId = rootTask,
  failure,
]: StoredStep): StepRecord {
  const outcome = failure === undefined ? { kind: "ok", value } : { kind: "failed", failure };
  return { taskId, address, kind, name, digest, outcome } as StepRecord;
}

interface EncodeContext {
  readonly steps: readonly StepRecord[];
  readonly at: number;
  readonly agentId: AgentId;
}

function encodeEvents(events: readonly Event[], { steps, at, agentId }: EncodeContext): StoredEvent[] {
  let before: Pick<Event, "taskId" | "agentId" | "parentId" | "at"> = {
    taskId: rootTask,
    agentId,
    parentId: null,
    at,
  };
  return events.map((event) => {
    const stored: { -readonly [Key in keyof StoredEvent]?: StoredEvent[Key] } = { type: event.type };
    if (event.taskId !== before.taskId) stored.taskId = event.taskId;
    if (event.agentId !== before.agentId) stored.agentId = event.agentId;
    if (event.parentId !== before.parentId) stored.parentId = event.parentId;
    if (event.at !== before.at) stored.ago = at - event.at;
    const reference = referEvent(event, steps);
    if (reference === undefined) stored.data = event.data;
    else {
      stored.from = reference.from;
      if (reference.data !== undefined) stored.data = reference.data;
    }
    before = event;
    return stored as StoredEvent;
  });
}

function decodeEvents(
  events: readonly StoredEvent[],
  steps: readonly StepRecord[],
  { runId, agentId: runAgentId, at: committedAt, nextEvent }: CommitFrame,
): Event[] {
  let seq = nextEvent - events.length;
  let taskId = rootTask;
  let agentId = runAgentId;
  let parentId: TaskId | null = null;
  let at = committedAt;
  return events.map((stored) => {
    if (stored.taskId !== undefined) taskId = stored.taskId;
    if (stored.agentId !== undefined) agentId = stored.agentId;
    if (stored.parentId !== undefined) parentId = stored.parentId;
    if (stored.ago !== undefined) at = committedAt - stored.ago;
    const data = restoreEvent(stored, steps);
    return { seq: seq++, runId, taskId, agentId, parentId, type: stored.type, at, data } as Event;
  });
}
