import {
  contextMessages,
  Fault,
  HistoryRetention,
  sessionWithin,
  Transcript,
  type ChatMessage,
  type JsonValue,
  type SessionId,
  type SessionPath,
} from "../../kernel/index.ts";
import type { TurnRecord } from "../journal/shared-contents.ts";
import type { TaskRunner } from "../task/task-runner.ts";

const none: readonly never[] = [];

/**
 * Rebuilds the history with which the turn started. This is possible because entries never change, and later ones
 * come after the turn's current entry. `contents` are contents that no record of the run contains yet.
 */
export async function rebuildHistory(
  runner: TaskRunner,
  record: TurnRecord,
  contents: TurnRecord["contents"] = {},
): Promise<Transcript> {
  const messages = (hash: string): readonly ChatMessage[] =>
    (contents[hash] ?? contentOf(runner, hash)) as unknown as readonly ChatMessage[];
  const { history, said = none } = record;
  const before = history === undefined ? await readPath(runner, record) : messages(history);
  return transcriptOf(said.length === 0 ? before : [...before, ...said.flatMap(messages)]);
}

/** Returns the messages of the session path up to the current entry of a turn. */
async function readPath(
  runner: TaskRunner,
  { sessionId, leafId }: TurnRecord,
): Promise<readonly ChatMessage[]> {
  if (leafId === null || sessionId === null) return none;
  const path = await runner.log.reading(
    runner.worker.store.sessions.readPath(sessionId, { leafId, from: "compaction" }),
  );
  if (path !== undefined) return contextMessages(path.entries);
  throw new Fault(
    "not_found",
    `the history of run ${runner.facts.runId} cannot be rebuilt: entry ${leafId} of session ${sessionId} no longer exists`,
  );
}

/**
 * Reads the part of the session path that the model sees. It includes entries of other tasks of this run that may
 * not be stored yet.
 */
export async function readHistory(runner: TaskRunner, sessionId: SessionId | null): Promise<SessionPath> {
  if (sessionId === null) return emptyPath;
  // N2: in the run's session only roots continue from the current entry; a child's own session contains only children.
  const ofChild = runner.task.record.parentId !== null;
  if (ofChild) await runner.log.flush();
  const { sessions } = runner.worker.store;
  return (
    (await runner.log.reading(sessions.readPath(sessionId, { ofChild, from: "compaction" }))) ?? emptyPath
  );
}

const emptyPath: SessionPath = { leafId: null, entries: none };

/**
 * Returns the session of a task's history. A root uses the run's session. A child has a history only if the history
 * is kept; it then has its own session per parent, role, user and tenant.
 */
export function historySession({ task, host, facts, agentId, worker }: TaskRunner): SessionId | null {
  const { parentId, supervision, role, userId } = task.record;
  if (parentId === null) return facts.sessionId;
  if (supervision.retention !== HistoryRetention.PERMANENT) return null;
  const place = role === undefined ? [agentId] : [supervision.parentId, role];
  const whose = worker.hash(JSON.stringify([place, host.tenantId, userId]));
  return sessionWithin(facts.sessionId, whose.slice(0, digitsOfWorker));
}

/**
 * Number of digits of a hash in a worker's session id. It is large enough to make equal ids practically impossible.
 */
const digitsOfWorker = 22;

export function transcriptOf(messages: readonly ChatMessage[]): Transcript {
  return messages.length === 0 ? Transcript.empty : Transcript.of(messages);
}

/** Returns a content that a record of the run names by its hash. */
export function contentOf({ state, facts }: TaskRunner, name: string): JsonValue {
  const content = state.contents.find(name);
  if (content === undefined)
    throw new Fault("store_corrupt", `the content ${name} of ${facts.runId} is missing from its records`);
  return content;
}
