import {
  batchEntries,
  contextMessages,
  digestOf,
  Fault,
  rootTaskId as root,
  Transcript,
  type ChatMessage,
  type Commit,
  type Hash,
  type JsonValue,
  type RequestOfRun,
  type RequestOfTask,
  type StepRecord,
} from "../../kernel/index.ts";
import { RunState } from "../journal/run-state.ts";
import type { TurnRecord } from "../journal/shared-contents.ts";
import type { WorkerContext } from "../process/worker-context.ts";
import { compactedMessages } from "./compaction-step.ts";

/** A message of an invocation, with the id of its session entry. */
interface OwnEntry {
  readonly id: string;
  readonly message: ChatMessage;
}

/** An ended run as its journal holds it. */
interface ClosedRun {
  readonly state: RunState;
  readonly turn: TurnRecord;
  /** The steps of the root. */
  readonly steps: readonly StepRecord[];
  /** The session entries with which the invocation was closed. */
  readonly entries: readonly OwnEntry[];
}

/**
 * Returns the last request of an ended run, with the answer to it. The messages are those of the session up to an
 * entry, so that they need not be copied. They differ from the session only if the transcript of the invocation was
 * compacted. S1: the entries of an invocation that was stopped contain a result for each call.
 */
export async function requestOfRun(worker: WorkerContext, { runId }: RequestOfRun): Promise<RequestOfTask> {
  const run = await readClosedRun(worker, runId);
  const { state, turn, entries } = run;
  const { sessionId, leafId, history, model, thinkingLevel, maxToolCallsPerTurn } = turn;
  const contents: Record<string, JsonValue> = {};
  const share = (hash: string): string => {
    contents[hash] = heldContent(state, hash);
    return hash;
  };
  const store = (messages: readonly ChatMessage[]): string => {
    const hash = worker.contentHashes.ofJson(messages, "the messages of a child");
    contents[hash] = messages as unknown as JsonValue;
    return hash;
  };
  const sent = findSent(run, await readHistory(worker, run), worker.hash);
  const shared = {
    instructions: share(turn.instructions),
    tools: share(turn.tools),
    role: sent.role,
    ...(model !== undefined && { model }),
    ...(thinkingLevel !== undefined && { thinkingLevel }),
    ...(maxToolCallsPerTurn !== undefined && { maxToolCallsPerTurn }),
    contents,
  };
  if (sent.window !== undefined)
    return { ...shared, sessionId: null, leafId: null, history: store(sent.window), said: [] };
  if (history === undefined) return { ...shared, sessionId, leafId: entries.at(-1)?.id ?? leafId, said: [] };
  const said = entries.map(({ message }) => message);
  return { ...shared, sessionId, leafId, history: share(history), said: [store(said)] };
}

async function readClosedRun(
  { store, unknownPrice }: WorkerContext,
  runId: RequestOfRun["runId"],
): Promise<ClosedRun> {
  const state = new RunState(unknownPrice);
  let entries: readonly OwnEntry[] = [];
  await store.journal.replay(runId, (commit) => {
    state.fold(commit);
    const closing = closingEntries(commit);
    if (closing.length > 0) entries = closing;
  });
  const steps = [...state.task(root).steps.values()];
  const turn = steps.flatMap((step) => turnOf(step) ?? []).at(-1);
  if (turn !== undefined) return { state, turn, steps, entries };
  throw new Fault(
    "not_found",
    `run ${runId} has no recorded prompt that a child could share; invoke the agent in the session again`,
  );
}

function turnOf({ kind, outcome }: StepRecord): TurnRecord | undefined {
  if (kind !== "turn" || outcome.kind !== "ok" || outcome.value === null) return undefined;
  return outcome.value as unknown as TurnRecord;
}

/** Returns the entries of the root that a commit makes visible. */
function closingEntries({ sessions = [] }: Commit): readonly OwnEntry[] {
  return sessions.flatMap((change) => {
    if (change.type !== "append" && change.type !== "say") return [];
    if (change.visibility !== "visible") return [];
    const written = change.type === "say" ? batchEntries(change.batch) : [change.entry];
    return written.flatMap((entry) =>
      entry.type === "message" && entry.taskId === root ? [{ id: entry.id, message: entry.message }] : [],
    );
  });
}

/** Returns the history with which the turn of the run started. */
async function readHistory(
  { store }: WorkerContext,
  { state, turn: { history, sessionId, leafId } }: ClosedRun,
): Promise<readonly ChatMessage[]> {
  if (history !== undefined) return heldContent(state, history) as unknown as readonly ChatMessage[];
  if (sessionId === null || leafId === null) return [];
  const path = await store.sessions.readPath(sessionId, { leafId, from: "compaction" });
  if (path !== undefined) return contextMessages(path.entries);
  throw new Fault("not_found", `entry ${leafId} of session ${sessionId} no longer exists`);
}

function heldContent({ contents }: RunState, hash: string): JsonValue {
  const content = contents.find(hash);
  if (content !== undefined) return content;
  throw new Fault("not_found", `the content ${hash} of an ended run was erased, so a child cannot share it`);
}

/** The request of the last model call of an invocation, and the messages that followed it. */
interface SentRequest {
  readonly role: string;
  /**
   * The messages of the request and those after it. Absent if they are the history followed by entries of the
   * invocation.
   */
  readonly window?: readonly ChatMessage[];
}

/**
 * A conversation that begins at its start or after a compaction: a list of messages, and the entries from `from`
 * on.
 */
class Conversation {
  readonly from: number;
  readonly isCompacted: boolean;
  /** The transcripts of the first messages with 0, 1, 2 ... following entries. */
  readonly #transcripts: Transcript[];
  /** Position in `#transcripts`, by digest. */
  readonly #byDigest: ReadonlyMap<string, number>;

  constructor(
    window: readonly ChatMessage[],
    following: readonly OwnEntry[],
    {
      from,
      hash,
      isCompacted,
    }: { readonly from: number; readonly hash: Hash; readonly isCompacted: boolean },
  ) {
    this.from = from;
    this.isCompacted = isCompacted;
    this.#transcripts = [Transcript.of(window)];
    for (const { message } of following)
      this.#transcripts.push((this.#transcripts.at(-1) ?? Transcript.empty).append(message));
    this.#byDigest = new Map(this.#transcripts.map((transcript, count) => [transcript.digest(hash), count]));
  }

  /** The first messages with all entries that follow them. */
  get messages(): readonly ChatMessage[] {
    return this.#transcripts.at(-1)?.slice() ?? [];
  }

  /** Returns the transcript with this digest, and the number of entries that it contains. */
  find(digest: string): { readonly count: number; readonly transcript: Transcript } | undefined {
    const count = this.#byDigest.get(digest);
    const transcript = count === undefined ? undefined : this.#transcripts[count];
    return count === undefined || transcript === undefined ? undefined : { count, transcript };
  }
}

/**
 * Finds the last request by the digests of the recorded steps (J4). A request that does not consist of the history
 * and the entries is not found, such as a request of an architecture with its own messages. The messages of the
 * session are used instead.
 */
function findSent({ steps, entries }: ClosedRun, history: readonly ChatMessage[], hash: Hash): SentRequest {
  let current = new Conversation(history, entries, { from: 0, hash, isCompacted: false });
  let found: SentRequest | undefined;
  for (const step of steps) {
    if (step.outcome.kind !== "ok" || (step.kind !== "llm" && step.kind !== "compaction")) continue;
    const match = current.find(digestOf(step, hash));
    if (match === undefined) continue;
    if (step.kind === "llm") {
      found = { role: step.name, ...(current.isCompacted && { window: current.messages }) };
      continue;
    }
    const count = current.from + match.count;
    const window = compactedMessages(match.transcript, step.outcome.value);
    if (window !== undefined)
      current = new Conversation(window, entries.slice(count), { from: count, hash, isCompacted: true });
  }
  return found ?? { role: "main" };
}
