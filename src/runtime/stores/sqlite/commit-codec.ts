import {
  digestOf,
  type AgentId,
  type Commit,
  type Event,
  type Hash,
  type RunId,
  type StepRecord,
  type TaskId,
} from "../../../kernel/index.ts";
import { referEntry, referEvent, restoreEntry, restoreEvent } from "./shared-content.ts";
import type { StoredCommit, StoredEvent, StoredStep } from "./stored-commit.ts";

/** What a commit need not say, since its run and its row do. */
export interface CommitFrame {
  readonly runId: RunId;
  readonly agentId: AgentId;
  readonly number: number;
  readonly at: number;
  /** The seq after its last event. */
  readonly nextEvent: number;
}

const rootTask = "t0" as TaskId;

/** The text of a commit's row: everything in it once, nothing that its row says. */
export function encodeCommit(commit: Commit, agentId: AgentId, hash: Hash): string {
  const { number: _number, at, steps = [], events = [], sessions = [], ...rest } = commit;
  const stored: { -readonly [Key in keyof StoredCommit]: StoredCommit[Key] } = {};
  if (steps.length > 0) stored.steps = steps.map((step) => encodeStep(step, hash));
  if (events.length > 0) stored.events = encodeEvents(events, { steps, at, agentId });
  if (sessions.length > 0) stored.sessions = sessions.map((change) => referEntry(change, steps));
  for (const [key, value] of Object.entries(rest)) {
    if (!Array.isArray(value) || value.length > 0) Object.assign(stored, { [key]: value });
  }
  return JSON.stringify(stored);
}

/** Throws a `SyntaxError` when the text is not what `encodeCommit` wrote. */
export function decodeCommit(body: string, frame: CommitFrame): Commit {
  const { steps, events, sessions, ...rest } = JSON.parse(body) as StoredCommit;
  const { number, at } = frame;
  const commit: { -readonly [Key in keyof Commit]: Commit[Key] } = { number, at, ...rest };
  const records = steps?.map(decodeStep) ?? [];
  if (steps !== undefined) commit.steps = records;
  if (events !== undefined) commit.events = decodeEvents(events, records, frame);
  if (sessions !== undefined) commit.sessions = sessions.map((change) => restoreEntry(change, records));
  return commit;
}

function encodeStep(step: StepRecord, hash: Hash): StoredStep {
  const { taskId, address, kind, name, outcome } = step;
  const settled = outcome.kind === "ok" ? { value: outcome.value } : { failure: outcome.failure };
  const stored = { address, kind, name, digest: digestOf(step, hash), ...settled };
  return taskId === rootTask ? stored : { taskId, ...stored };
}

function decodeStep({ taskId = rootTask, value, failure, ...rest }: StoredStep): StepRecord {
  const outcome = failure === undefined ? { kind: "ok", value } : { kind: "failed", failure };
  return { taskId, ...rest, outcome } as StepRecord;
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
    if (reference !== undefined) stored.from = reference.from;
    stored.data = reference?.data ?? event.data;
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
