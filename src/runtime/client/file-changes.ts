import {
  fileChangeStep,
  readFileChange,
  toolCallsOf,
  type Commit,
  type RecordedFileChange,
  type RunId,
  type SessionEntry,
  type SessionFileChanges,
  type SessionId,
  type StoredEntry,
  type TenantScope,
} from "../../kernel/index.ts";
import type { RunStore } from "./run-store.ts";

interface ReadableStore {
  readonly sessions: RunStore["sessions"];
  readonly journal: Pick<RunStore["journal"], "find" | "read">;
}

interface Place {
  readonly entryId: string;
  readonly scope?: TenantScope;
}

/** Number of session entries that are read at a time. */
const pageSize = 1_000;

/**
 * Returns the file changes and other calls of the runs of a session after an entry. `undefined` if the session has
 * no such entry. The cost grows with the entries of the session and the journals of the runs that have later
 * entries.
 */
export async function fileChangesAfter(
  store: ReadableStore,
  sessionId: SessionId,
  place: Place,
): Promise<SessionFileChanges | undefined> {
  const { journal } = store;
  const runs = await runsFrom(store, sessionId, place);
  if (runs === undefined) return undefined;
  const fold = new FileChangeFold();
  for (const [runId, earlier] of runs) {
    // The journal of an old run may be deleted while its entries stay.
    if ((await journal.find(runId, place.scope)) === undefined) continue;
    for await (const commit of journal.read(runId))
      if (earlier.length === 0) fold.add(runId, commit);
      else dropEnded(earlier, commit);
  }
  return fold.result();
}

/**
 * Returns the runs that wrote the entry and the entries after it, each with the calls that it had made before the
 * entry, as often as it made them.
 */
async function runsFrom(
  { sessions }: ReadableStore,
  sessionId: SessionId,
  { entryId, scope }: Place,
): Promise<ReadonlyMap<RunId, string[]> | undefined> {
  const runs = new Map<RunId, string[]>();
  let isFound = false;
  const callsBefore = new Map<RunId, string[]>();
  let after: string | undefined;
  for (;;) {
    const page: readonly StoredEntry[] = await sessions.read(sessionId, {
      limit: pageSize,
      includeHidden: true,
      ...(after !== undefined && { after }),
      ...(scope !== undefined && { scope }),
    });
    for (const { entry } of page) {
      const { id, runId } = entry;
      isFound ||= id === entryId;
      if (runId === null) continue;
      if (!isFound) {
        const calls = callsBefore.get(runId) ?? [];
        callsBefore.set(runId, calls);
        calls.push(...callIdsOf(entry));
      } else if (!runs.has(runId)) runs.set(runId, id === entryId ? (callsBefore.get(runId) ?? []) : []);
    }
    after = page.at(-1)?.entry.id;
    if (page.length < pageSize) return isFound ? runs : undefined;
  }
}

function callIdsOf(entry: SessionEntry): readonly string[] {
  if (entry.type !== "message" || entry.message.role !== "assistant") return [];
  return toolCallsOf(entry.message).map(({ callId }) => callId);
}

/** Removes the calls that the commit ends. */
function dropEnded(calls: string[], { events = [] }: Commit): void {
  for (const { type, data } of events) {
    const at = type === "tool_execution_end" ? calls.indexOf(data.callId) : -1;
    if (at !== -1) calls.splice(at, 1);
  }
}

class FileChangeFold {
  readonly #changes: RecordedFileChange[] = [];
  #erased = 0;
  readonly #recorded = new Set<string>();
  /** Names of the tools of the calls that started, by run and call. */
  readonly #calls = new Map<string, string>();

  add(runId: RunId, { at, steps = [], events = [] }: Commit): void {
    for (const { name, kind, taskId, outcome } of steps) {
      if (name !== fileChangeStep || kind !== "step" || outcome.kind !== "ok") continue;
      if (outcome.value === null) this.#erased++;
      const change = readFileChange(outcome.value);
      if (change === undefined) continue;
      this.#changes.push({ ...change, runId, taskId, at });
      this.#recorded.add(`${runId} ${change.callId}`);
    }
    for (const { type, data } of events)
      if (type === "tool_execution_start") this.#calls.set(`${runId} ${data.callId}`, data.toolName);
  }

  result(): SessionFileChanges {
    const counts = new Map<string, number>();
    for (const [call, toolName] of this.#calls)
      if (!this.#recorded.has(call)) counts.set(toolName, (counts.get(toolName) ?? 0) + 1);
    const otherCalls = [...counts].map(([toolName, count]) => ({ toolName, count }));
    return { changes: this.#changes, erased: this.#erased, otherCalls };
  }
}
