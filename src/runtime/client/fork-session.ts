import {
  Fault,
  formatTaskId,
  sessionWithin,
  pathTo,
  rootLeafOf,
  batchEntries,
  type AgentId,
  type Commit,
  type JsonValue,
  type StoredEntry,
  type RunRecord,
  type SessionChange,
  type SessionEntry,
  type SessionId,
  type StepRecord,
  type Store,
} from "../../kernel/index.ts";
import type { TurnRecord } from "../journal/content-table.ts";

const root = formatTaskId(0);

type Named = Pick<RunRecord, "runId" | "sessionId">;

/** What the origin's is called in a fork: its run, its session and those of its children, and the entries it wrote. */
class ForkRenames {
  readonly #origin: Named;
  readonly #fork: Named;

  constructor(origin: Named, fork: Named) {
    this.#origin = origin;
    this.#fork = fork;
  }

  session(sessionId: SessionId): SessionId {
    const { sessionId: whole } = this.#origin;
    if (sessionId === whole) return this.#fork.sessionId;
    const within = sessionWithin(whole, "");
    if (!sessionId.startsWith(within)) return sessionId;
    return sessionWithin(this.#fork.sessionId, sessionId.slice(within.length));
  }

  id(entryId: string): string {
    const { runId } = this.#origin;
    const isOwn = entryId === runId || entryId.startsWith(`${runId}/`);
    return isOwn ? `${this.#fork.runId}${entryId.slice(runId.length)}` : entryId;
  }

  entry(entry: SessionEntry): SessionEntry {
    const isOwn = entry.runId === this.#origin.runId;
    const parentId = entry.parentId === null ? null : this.id(entry.parentId);
    const named = { ...entry, id: this.id(entry.id), parentId, ...(isOwn && { runId: this.#fork.runId }) };
    if (named.type === "compaction") return { ...named, firstKeptEntryId: this.id(named.firstKeptEntryId) };
    return named.type === "branch_summary" ? { ...named, fromId: this.id(named.fromId) } : named;
  }

  /** A turn names its history by session and leaf. */
  step(step: StepRecord): StepRecord {
    const turn = turnOf(step);
    if (turn === undefined || turn.sessionId === null) return step;
    const { sessionId, leafId } = turn;
    const named: TurnRecord = Object.freeze({
      ...turn,
      sessionId: this.session(sessionId),
      leafId: leafId === null ? null : this.id(leafId),
    });
    return { ...step, outcome: { kind: "ok", value: named as unknown as JsonValue } };
  }
}

export interface Cut {
  readonly store: Store;
  readonly origin: RunRecord;
  readonly fork: RunRecord;
  /** Up to the cut. */
  readonly commits: readonly Commit[];
  /** Those that stand at the cut. */
  readonly steps: readonly StepRecord[];
}

export interface ForkedSession {
  readonly sessions: readonly SessionChange[];
  readonly steps: readonly StepRecord[];
}

/**
 * A fork goes on in a session of its own: the origin's as it stood at the cut, copied. What was said since is not in it, and what the
 * fork says is not said in the origin's. The same for the sessions of children who keep theirs.
 */
export async function forkSession(cut: Cut): Promise<ForkedSession> {
  const { store, origin, fork, steps } = cut;
  const names = new ForkRenames(origin, fork);
  const placed = await store.sessions.read(origin.sessionId, { includeHidden: true });
  const visible = visibleOf(placed);
  const written = writtenIn(cut.commits);
  const turns = steps.flatMap((step) => turnOf(step) ?? []);
  const leafId = await leafAt(cut, placed, written);
  const path = entriesTo(visible, [leafId, ...leavesIn(turns, origin.sessionId)], origin.sessionId);
  const sessions = copies(path, names, { sessionId: fork.sessionId, agentId: fork.agentId });
  const opening = placed.find(({ entry }) => entry.id === origin.runId)?.entry;
  if (opening !== undefined && !path.includes(opening)) sessions.push(said(opening, fork));
  const runs = new Set(path.flatMap(({ runId }) => runId ?? []));
  const under = { under: origin.sessionId, limit: Number.MAX_SAFE_INTEGER };
  for (const { sessionId, agentId } of await store.sessions.list(under)) {
    const entries = visibleOf(await store.sessions.read(sessionId));
    const last = entries.findLast(
      ({ id, runId, taskId }) =>
        (taskId ?? root) !== root &&
        (runId === origin.runId ? written.has(id) : runId !== null && runs.has(runId)),
    );
    const kept = entriesTo(entries, [last?.id ?? null, ...leavesIn(turns, sessionId)], sessionId);
    sessions.push(...copies(kept, names, { sessionId: names.session(sessionId), agentId }));
  }
  return { sessions, steps: steps.map((step) => names.step(step)) };
}

/** The origin's leaf at the cut: after what it said itself, or what it found, or was to find. */
async function leafAt(
  cut: Cut,
  placed: readonly StoredEntry[],
  written: ReadonlySet<string>,
): Promise<string | null> {
  const { origin } = cut;
  const entries = visibleOf(placed);
  const own = entries.findLast(({ id, taskId }) => taskId === root && written.has(id));
  if (own !== undefined) return own.id;
  const turn = await turnNearest(cut);
  if (turn?.sessionId === origin.sessionId) return turn.leafId;
  const opening = placed.find(({ entry }) => entry.id === origin.runId)?.entry;
  return opening === undefined ? rootLeafOf(entries) : opening.parentId;
}

/** The root's turn that stands at the cut; else the next one after it, else the last that was left (J8). */
async function turnNearest({ store, origin, commits, steps }: Cut): Promise<TurnRecord | undefined> {
  const standing = rootTurns(steps).at(-1);
  if (standing !== undefined) return standing;
  const next = (commits.at(-1)?.number ?? -1) + 1;
  for await (const { steps: later = [] } of store.journal.read(origin.runId, next)) {
    const [first] = rootTurns(later);
    if (first !== undefined) return first;
  }
  return rootTurns(commits.flatMap((commit) => commit.steps ?? [])).at(-1);
}

function rootTurns(steps: readonly StepRecord[]): readonly TurnRecord[] {
  return steps.filter(({ taskId }) => taskId === root).flatMap((step) => turnOf(step) ?? []);
}

/** The ids of the entries that the commits made visible. */
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

/** `undefined`: it is none, or its words were erased. */
function turnOf({ kind, outcome }: StepRecord): TurnRecord | undefined {
  if (kind !== "turn" || outcome.kind !== "ok" || outcome.value === null) return undefined;
  return outcome.value as unknown as TurnRecord;
}

/** What turns in this session have to find again. */
function leavesIn(turns: readonly TurnRecord[], sessionId: SessionId): readonly (string | null)[] {
  return turns
    .filter((turn) => turn.sessionId === sessionId && turn.history === undefined)
    .map(({ leafId }) => leafId);
}

/** Those on the paths to these, in the order in which they were said. */
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
        `session ${sessionId} has no entry ${leafId} any more, after which the fork would go on`,
      );
    }
    for (const entry of path) kept.add(entry);
  }
  return entries.filter((entry) => kept.has(entry));
}

function copies(
  entries: readonly SessionEntry[],
  names: ForkRenames,
  where: { readonly sessionId: SessionId; readonly agentId: AgentId },
): SessionChange[] {
  const ids = new Set(entries.map(({ id }) => id));
  return entries.map((entry) => {
    // What was before it may be gone: its history was not to be kept.
    const isRooted = entry.parentId === null || ids.has(entry.parentId);
    const copy = names.entry(isRooted ? entry : { ...entry, parentId: null });
    return { type: "append", ...where, entry: copy, visibility: "visible" };
  });
}

/** S2: the fork's user said what the origin's did, and it is as pending. */
function said(opening: SessionEntry, { runId, sessionId, agentId }: RunRecord): SessionChange {
  const entry = { ...opening, id: runId, runId, parentId: null };
  return { type: "append", sessionId, agentId, entry, visibility: "pending", atLeaf: true };
}

function visibleOf(placed: readonly StoredEntry[]): readonly SessionEntry[] {
  return placed.filter(({ visibility }) => visibility === "visible").map(({ entry }) => entry);
}
