import {
  Fault,
  formatTaskId,
  sessionWithin,
  pathTo,
  rootLeafOf,
  batchEntries,
  userEntry,
  type AgentId,
  type Commit,
  type JsonValue,
  type ModelReference,
  type StoredEntry,
  type RunRecord,
  type SessionChange,
  type SessionEntry,
  type SessionId,
  type SessionPage,
  type SessionSummary,
  type StepRecord,
  type TaskId,
  type UserMessage,
} from "../../kernel/index.ts";
import { turnOf } from "./fork-changes.ts";
import type { AddedInput } from "./fork-input.ts";
import type { RunStore } from "./run-store.ts";
import type { TurnRecord } from "../journal/shared-contents.ts";

const root = formatTaskId(0);

type RunIds = Pick<RunRecord, "runId" | "sessionId">;

/**
 * Maps ids of the original run to ids of the fork: the run, its session and the sessions of its children, and the
 * entries that the run wrote.
 */
class ForkRenames {
  readonly #origin: RunIds;
  readonly #fork: RunIds;
  readonly #keepsEntries: boolean;

  /**
   * With `keepsEntries`, the entries of the original run keep their ids, and the fork writes its own entries with
   * ids that follow from its run id.
   */
  constructor(origin: RunIds, fork: RunIds, keepsEntries: boolean) {
    this.#origin = origin;
    this.#fork = fork;
    this.#keepsEntries = keepsEntries;
  }

  session(sessionId: SessionId): SessionId {
    const { sessionId: rootSession } = this.#origin;
    if (sessionId === rootSession) return this.#fork.sessionId;
    const prefix = sessionWithin(rootSession, "");
    if (!sessionId.startsWith(prefix)) return sessionId;
    return sessionWithin(this.#fork.sessionId, sessionId.slice(prefix.length));
  }

  id(entryId: string): string {
    const { runId } = this.#origin;
    const isOwn = entryId === runId || entryId.startsWith(`${runId}/`);
    return isOwn && !this.#keepsEntries ? `${this.#fork.runId}${entryId.slice(runId.length)}` : entryId;
  }

  entry(entry: SessionEntry): SessionEntry {
    const isOwn = entry.runId === this.#origin.runId && !this.#keepsEntries;
    const parentId = entry.parentId === null ? null : this.id(entry.parentId);
    const renamed = { ...entry, id: this.id(entry.id), parentId, ...(isOwn && { runId: this.#fork.runId }) };
    if (renamed.type === "label") return { ...renamed, targetId: this.id(renamed.targetId) };
    if (renamed.type === "compaction")
      return { ...renamed, firstKeptEntryId: this.id(renamed.firstKeptEntryId) };
    return renamed.type === "branch_summary" ? { ...renamed, fromId: this.id(renamed.fromId) } : renamed;
  }

  /**
   * Returns a step with the ids of the fork. Only turns contain such ids: a turn refers to its history by session
   * and current entry.
   */
  step(step: StepRecord): StepRecord {
    const turn = turnOf(step);
    if (turn === undefined || turn.sessionId === null) return step;
    const { sessionId, leafId } = turn;
    const renamed: TurnRecord = Object.freeze({
      ...turn,
      sessionId: this.session(sessionId),
      leafId: leafId === null ? null : this.id(leafId),
    });
    return { ...step, outcome: { kind: "ok", value: renamed as unknown as JsonValue } };
  }
}

/** The first part of the original run's journal, which the fork shares. */
export interface Cut {
  readonly store: RunStore;
  readonly origin: RunRecord;
  readonly fork: RunRecord;
  /** The commits of the origin up to the cut. */
  readonly commits: readonly Commit[];
  /**
   * The steps in those commits that are valid at the cut: not voided, and part of the current journal of their
   * task.
   */
  readonly steps: readonly StepRecord[];
  /** Time of the fork. Epoch milliseconds. */
  readonly at: number;
  /** The task whose calls the fork changes. */
  readonly changedTask: TaskId;
  /**
   * The model that the fork sets, and the id of the entry that sets it in the session of a root. If absent, the
   * fork sets no model.
   */
  readonly model?: ModelReference & { readonly entryId: string };
  /** The user message that the fork adds. If absent, the fork adds no message. */
  readonly addition?: AddedInput;
  /** The message that replaces the one with which the run began. If absent, the message does not change. */
  readonly replacement?: UserMessage;
}

/** The session changes and steps that the first commit of the fork contains. */
export interface ForkedSession {
  readonly sessions: readonly SessionChange[];
  readonly steps: readonly StepRecord[];
}

/**
 * Copies the original run's session, as it was at the cut, to a new session for the fork. The copy does not contain
 * later messages of the original run, and the original session does not contain messages of the fork. Sessions of
 * children that retain their history are copied likewise.
 */
export async function forkSession(cut: Cut): Promise<ForkedSession> {
  const { store, origin, fork, steps, addition } = cut;
  const restarts = addition?.way === "restart";
  const renames = new ForkRenames(origin, fork, restarts);
  const stored = await store.sessions.read(origin.sessionId, { includeHidden: true });
  const visible = visibleOf(stored);
  const written = writtenIn(cut.commits);
  const turns = steps.flatMap((step) => turnOf(step) ?? []);
  const leafId = await leafAt(cut, stored, written);
  const path = entriesTo(visible, [leafId, ...leavesIn(turns, origin.sessionId)], origin.sessionId);
  const sessions = copyEntries(path, renames, { sessionId: fork.sessionId, agentId: fork.agentId });
  if (cut.model !== undefined && cut.changedTask === root)
    sessions.push(modelChange(cut, cut.model, leafId && renames.id(leafId)));
  const opening = stored.find(({ entry }) => entry.id === origin.runId)?.entry;
  if (!restarts && opening !== undefined && !path.includes(opening))
    sessions.push(
      cut.replacement === undefined
        ? pendingOpening(opening, fork)
        : userEntry({ ...fork, at: cut.at, message: cut.replacement }, "pending"),
    );
  if (restarts && addition.isStored)
    sessions.push(userEntry({ ...fork, at: cut.at, message: addition.message }, "pending"));
  const runs = new Set(path.flatMap(({ runId }) => runId ?? []));
  for (const { sessionId, agentId } of await workerSessions(store, origin.sessionId)) {
    const entries = visibleOf(await store.sessions.read(sessionId));
    const last = entries.findLast(
      ({ id, runId, taskId }) =>
        (taskId ?? root) !== root &&
        (runId === origin.runId ? written.has(id) : runId !== null && runs.has(runId)),
    );
    const kept = entriesTo(entries, [last?.id ?? null, ...leavesIn(turns, sessionId)], sessionId);
    sessions.push(...copyEntries(kept, renames, { sessionId: renames.session(sessionId), agentId }));
  }
  return { sessions, steps: steps.map((step) => renames.step(changeTurn(cut, step, leafId))) };
}

/** Returns the entry that sets the model in the fork's session, after the current entry of the cut. */
function modelChange(
  { fork: { sessionId, agentId }, at }: Cut,
  { provider, modelId, entryId: id }: ModelReference & { readonly entryId: string },
  parentId: string | null,
): SessionChange {
  const entry = {
    type: "model_change",
    id,
    parentId,
    at,
    runId: null,
    taskId: null,
    provider,
    modelId,
  } as const;
  return { type: "append", sessionId, agentId, entry, visibility: "visible" };
}

/**
 * Returns the current turn of the changed task with the fork's changes for the later calls: the model, and whether
 * input waits. J4: the digest of a turn covers only its history, which does not change.
 */
function changeTurn(cut: Cut, step: StepRecord, leafAtCut: string | null): StepRecord {
  const { model, addition, steps, origin, changedTask } = cut;
  const turn = step.taskId === changedTask ? turnOf(step) : undefined;
  if (turn === undefined || step !== turnSteps(steps, changedTask).at(-1)) return step;
  const { sessionId, leafId } = turn;
  const isAtLeaf = changedTask === root && sessionId === origin.sessionId && leafId === leafAtCut;
  const changed: TurnRecord = Object.freeze({
    ...turn,
    ...(model !== undefined && { model: { provider: model.provider, modelId: model.modelId } }),
    ...(model !== undefined && isAtLeaf && { leafId: model.entryId }),
    ...(addition?.isAtTurn(step, steps) === true && { isSteered: true as const }),
  });
  return { ...step, outcome: { kind: "ok", value: changed as unknown as JsonValue } };
}

/** Returns the sessions of workers within a session. */
async function workerSessions(store: RunStore, under: SessionId): Promise<readonly SessionSummary[]> {
  const found: SessionSummary[] = [];
  let after: string | null = null;
  do {
    const page: SessionPage = await store.sessions.list({ under, ...(after !== null && { after }) });
    found.push(...page.sessions);
    after = page.next;
  } while (after !== null);
  return found;
}

/**
 * Returns the entry of the original session after which the fork continues. It is the last entry that the original
 * run's root task had written at the cut. If there is none, it is the current entry that the root's turn read, or
 * the parent of the original run's first message.
 */
async function leafAt(
  cut: Cut,
  stored: readonly StoredEntry[],
  written: ReadonlySet<string>,
): Promise<string | null> {
  const { origin } = cut;
  const entries = visibleOf(stored);
  const own = entries.findLast(({ id, taskId }) => taskId === root && written.has(id));
  if (own !== undefined) return own.id;
  const turn = await findRootTurn(cut);
  if (turn?.sessionId === origin.sessionId) return turn.leafId;
  const opening = stored.find(({ entry }) => entry.id === origin.runId)?.entry;
  return opening === undefined ? rootLeafOf(entries) : opening.parentId;
}

/**
 * Returns the root task's turn at the cut. If there is none, returns its next turn after the cut, or else its last
 * turn before `continueAsNew` (J8).
 */
async function findRootTurn({ store, origin, commits, steps }: Cut): Promise<TurnRecord | undefined> {
  const current = rootTurns(steps).at(-1);
  if (current !== undefined) return current;
  const next = (commits.at(-1)?.number ?? -1) + 1;
  for await (const { steps: later = [] } of store.journal.read(origin.runId, next)) {
    const [first] = rootTurns(later);
    if (first !== undefined) return first;
  }
  return rootTurns(commits.flatMap((commit) => commit.steps ?? [])).at(-1);
}

function rootTurns(steps: readonly StepRecord[]): readonly TurnRecord[] {
  return turnSteps(steps, root).flatMap((step) => turnOf(step) ?? []);
}

function turnSteps(steps: readonly StepRecord[], taskId: TaskId): readonly StepRecord[] {
  return steps.filter((step) => step.taskId === taskId && turnOf(step) !== undefined);
}

/** Returns the ids of the entries that the commits made visible. */
function writtenIn(commits: readonly Commit[]): ReadonlySet<string> {
  const visible = new Set<string>();
  const hidden = new Set<SessionEntry>();
  for (const { sessions = [] } of commits) {
    for (const change of sessions) {
      if (change.type === "say" || change.type === "append") {
        for (const entry of change.type === "say" ? batchEntries(change.batch) : [change.entry])
          if (change.visibility === "visible") visible.add(entry.id);
          else hidden.add(entry);
      } else if (change.type === "reveal") {
        for (const entry of hidden)
          if (entry.taskId === (change.taskId ?? entry.taskId)) visible.add(entry.id);
      }
    }
  }
  return visible;
}

/** Returns the entries of the session up to which the turns read their history on a replay. */
function leavesIn(turns: readonly TurnRecord[], sessionId: SessionId): readonly (string | null)[] {
  return turns
    .filter((turn) => turn.sessionId === sessionId && turn.history === undefined)
    .map(({ leafId }) => leafId);
}

/**
 * Returns the entries on the paths from the root to the given entries, and their labels, in the order in which they
 * were written.
 */
function entriesTo(
  entries: readonly SessionEntry[],
  leaves: readonly (string | null)[],
  sessionId: SessionId,
): readonly SessionEntry[] {
  const kept = new Set<SessionEntry>();
  for (const leafId of new Set(leaves)) {
    const path = pathTo(entries, leafId);
    if (path === undefined) {
      throw new Fault(
        "not_found",
        `the run cannot be forked: session ${sessionId} no longer has entry ${leafId}, after which the fork would continue`,
      );
    }
    for (const entry of path) kept.add(entry);
  }
  const ids = new Set([...kept].map(({ id }) => id));
  return entries.filter((entry) => kept.has(entry) || (entry.type === "label" && ids.has(entry.targetId)));
}

function copyEntries(
  entries: readonly SessionEntry[],
  renames: ForkRenames,
  where: { readonly sessionId: SessionId; readonly agentId: AgentId },
): SessionChange[] {
  const ids = new Set(entries.map(({ id }) => id));
  return entries.map((entry) => {
    // Retention may have erased the parent. Then the copy becomes a root.
    const isRooted = entry.parentId === null || ids.has(entry.parentId);
    const copy = renames.entry(isRooted ? entry : { ...entry, parentId: null });
    return { type: "append", ...where, entry: copy, visibility: "visible" };
  });
}

/** S2: returns the original run's first message as a pending entry of the fork. */
function pendingOpening(opening: SessionEntry, { runId, sessionId, agentId }: RunRecord): SessionChange {
  const entry = { ...opening, id: runId, runId, parentId: null };
  return { type: "append", sessionId, agentId, entry, visibility: "pending", atLeaf: true };
}

function visibleOf(stored: readonly StoredEntry[]): readonly SessionEntry[] {
  return stored.filter(({ visibility }) => visibility === "visible").map(({ entry }) => entry);
}
