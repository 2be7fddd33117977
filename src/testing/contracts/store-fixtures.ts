import {
  noUsage,
  eventDraft,
  formatAgentId,
  formatRunId,
  formatSessionId,
  rootTaskId,
  Priority,
  stepAt,
  Supervision,
  userMessage,
  type Commit,
  type EntryVisibility,
  type Event,
  type EventDraft,
  type JsonValue,
  type Lease,
  type RunId,
  type RunRecord,
  type SessionChange,
  type SessionEntry,
  type SessionId,
  type StepRecord,
  type Store,
} from "../../kernel/index.ts";

export const agentId = formatAgentId({ name: "tester" });
export const sessionId = formatSessionId("1");
export const rootTask = rootTaskId;

export function runRecord(name = "a"): RunRecord {
  return {
    runId: formatRunId(name),
    kind: "invocation",
    agentId,
    sessionId,
    tenantId: null,
    userId: null,
    priority: Priority.NORMAL,
    agentVersion: null,
    title: null,
    metadata: {},
    createdAt: 1,
    startAt: null,
    recoveries: 0,
  };
}

/** A session entry of run `a` whose message text is its id. */
export function sessionEntry(id: string, parentId: string | null, at = 1): SessionEntry {
  const message = userMessage(id);
  return { type: "message", id, parentId, at, runId: formatRunId("a"), taskId: rootTask, message };
}

export function placed(runId: RunId, seq: number, draft: EventDraft): Event {
  return { ...draft, seq, runId, taskId: rootTask, agentId, parentId: null, at: seq };
}

export function turnStart(runId: RunId, seq: number): Event {
  return placed(runId, seq, eventDraft("turn_start", { turn: seq }));
}

export function runEnd(runId: RunId, seq: number): Event {
  const data = { status: "completed", usage: noUsage, costUsd: 0, turns: 0 } as const;
  return placed(runId, seq, eventDraft("run_end", data));
}

export function stepRecord(index: number, value: JsonValue): StepRecord {
  return {
    taskId: rootTask,
    address: stepAt("", index),
    kind: "step",
    name: "work",
    digest: `digest-${index}`,
    outcome: { kind: "ok", value },
  };
}

/** Creates a run with its first commit, which contains `run_start`, and returns its id. */
export async function createRun(store: Store, name = "a"): Promise<RunId> {
  const record = runRecord(name);
  const ids = { next: () => name };
  const supervision = Supervision.root(agentId, { ids, sessionId }).toJSON();
  const start = eventDraft("run_start", { agentId, sessionId, input: "hello", supervision, metadata: {} });
  const first: Commit = { number: 0, at: 1, events: [placed(record.runId, 0, start)] };
  await store.journal.create(record, first);
  return record.runId;
}

/** Creates a run, enlists a worker and returns the worker's lease on the run. */
export async function ownRun(store: Store, name = "a"): Promise<Lease> {
  const runId = await createRun(store, name);
  await store.leases.enlist("w1");
  const lease = await store.leases.seize(runId, "w1");
  if (lease === undefined) throw new Error(`the new run ${runId} could not be seized`);
  return lease;
}

export async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const list: Item[] = [];
  for await (const item of items) list.push(item);
  return list;
}

/** The change that appends an entry to a session. Default: a visible entry of `sessionId`. */
export function appendEntry(
  entry: SessionEntry,
  visibility: EntryVisibility = "visible",
  session: SessionId = sessionId,
): SessionChange {
  return { type: "append", sessionId: session, agentId, entry, visibility };
}
