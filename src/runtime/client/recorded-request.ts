import {
  contextMessages,
  digestOf,
  Fault,
  HistoryRetention,
  stepAt,
  toolCallsOf,
  toolMessage,
  toolResultPart,
  Transcript,
  userMessage,
  type ChatMessage,
  type Commit,
  type Event,
  type Hash,
  type JsonValue,
  type LlmReply,
  type Recorded,
  type RecordedRequest,
  type RunId,
  type SentFrame,
  type SentRequest,
  type StepAddress,
  type StepRecord,
  type TaskChange,
  type TaskId,
  type ToolResult,
  type ToolSpec,
  type TranscriptPiece,
} from "../../kernel/index.ts";
import { SharedContents, type TurnRecord } from "../journal/shared-contents.ts";
import type { RunStore } from "./run-store.ts";

/**
 * Maximum number of earlier calls that are tried as the base of a call whose record names none. There may be
 * several, because branches make calls concurrently.
 */
const mostBases = 16;

/** J11: reads the request of the model call that starts with the event `seq`. */
export async function readRequest(
  store: RunStore,
  hash: Hash,
  { runId, seq }: { readonly runId: RunId; readonly seq: number },
): Promise<RecordedRequest> {
  const start = await startOf(store, runId, seq);
  const fold = new CallFold(start);
  for await (const commit of store.journal.read(runId)) fold.add(commit);
  const { target } = fold;
  if (target === undefined)
    throw new Fault(
      "not_found",
      `the journal of run ${runId} has no model call that starts with event ${seq}`,
    );
  return new RequestBuilder(fold, store, hash).build(start, target);
}

/**
 * J11: reads the requests of several model calls of a run, by the sequence numbers of their start events. It reads
 * the journal once per task: O(commits of the run).
 */
export async function readRequests(
  store: RunStore,
  hash: Hash,
  { runId, seqs }: { readonly runId: RunId; readonly seqs: readonly number[] },
): Promise<ReadonlyMap<number, RecordedRequest>> {
  const starts = await Promise.all(seqs.map((seq) => startOf(store, runId, seq)));
  const byTask = Map.groupBy(starts, ({ taskId }) => taskId);
  const folds = new Map([...byTask.keys()].map((taskId) => [taskId, new CallFold({ seq: null, taskId })]));
  for await (const commit of store.journal.read(runId)) for (const fold of folds.values()) fold.add(commit);
  const found = new Map<number, RecordedRequest>();
  for (const [taskId, calls] of byTask) {
    const fold = folds.get(taskId) as CallFold;
    const builder = new RequestBuilder(fold, store, hash);
    for (const each of await builder.all(calls)) found.set(each.seq, each);
  }
  // J8: a task that has continued has an empty journal. The calls before are read one by one.
  for (const seq of seqs) if (!found.has(seq)) found.set(seq, await readRequest(store, hash, { runId, seq }));
  return found;
}

async function startOf({ events }: RunStore, runId: RunId, seq: number): Promise<Event<"message_start">> {
  const expected = "expected the seq of a message_start event; run.events() and reeve logs --json list them";
  if (!Number.isSafeInteger(seq) || seq < 0)
    throw new Fault("invalid_argument", `invalid seq ${seq} of a model call: ${expected}`);
  for await (const event of events.read(runId, seq)) {
    if (event.type === "message_start" && event.seq === seq) return event;
    throw new Fault(
      "invalid_argument",
      `invalid seq ${seq} of a model call: event ${event.seq} of run ${runId} is ${event.type}; ${expected}`,
    );
  }
  throw new Fault("invalid_argument", `invalid seq ${seq}: run ${runId} has no such event; ${expected}`);
}

/** A turn of the task, or a model call. */
type Item =
  | { readonly kind: "turn"; readonly record: TurnRecord | null }
  | { readonly kind: "call"; readonly address: StepAddress };

/** Collects the turns and the calls of one task, up to the answer of one call or to the end of the journal. */
class CallFold {
  readonly contents = new SharedContents();
  /**
   * Turns and started steps in the order in which they started. Steps of other kinds are included until they are
   * recorded.
   */
  items: Item[] = [];
  readonly requests = new Map<StepAddress, SentRequest>();
  readonly steps = new Map<StepAddress, StepRecord>();
  /** The recorded frames of calls, in order. A frame contains the instructions, tools and settings of a call. */
  readonly frames: { readonly role: string; readonly address: StepAddress; readonly frame: SentFrame }[] = [];
  /** Input of the current journal of the task. */
  input: JsonValue = null;
  isErased = false;
  /** Address of the call. */
  target: StepAddress | undefined;
  /** The addresses of the steps that have started, by the sequence number of their start event. */
  readonly started = new Map<number, StepAddress>();
  readonly #placed = new Set<StepAddress>();
  /** Whether the call has its answer, or was interrupted. */
  #isComplete = false;
  readonly #seq: number | null;
  readonly #taskId: TaskId;

  /** If `seq` of a call is given, commits after the answer of that call are ignored, except for erasures. */
  constructor({ seq, taskId }: { readonly seq: number | null; readonly taskId: TaskId }) {
    this.#seq = seq;
    this.#taskId = taskId;
  }

  /** Adds a commit. After the answer of the call, only erasures are read. */
  add({ tasks = [], voids = [], steps = [], opens = [], requests = [], erases = [] }: Commit): void {
    if (erases.some(({ taskId }) => taskId === this.#taskId)) this.isErased = true;
    if (this.#isComplete) return;
    for (const change of tasks) this.#change(change);
    for (const { taskId, address } of voids) if (taskId === this.#taskId) this.steps.delete(address);
    for (const step of steps) this.#record(step);
    for (const { taskId, address, seq } of opens) {
      if (taskId !== this.#taskId) continue;
      if (seq === this.#seq) this.target = address;
      this.started.set(seq, address);
      this.#place(address);
    }
    for (const request of requests) this.#request(request);
    this.#isComplete ||= this.target !== undefined && this.steps.has(this.target);
  }

  /** J8: applies a task change. A task that continues as new has an empty journal. */
  #change(change: TaskChange): void {
    if (change.type === "create") {
      const { inherits, taskId, supervision, input } = change.task;
      const lasts = supervision.retention !== HistoryRetention.NONE;
      if (inherits !== undefined && "contents" in inherits) this.#hold(inherits.contents, lasts);
      if (taskId === this.#taskId) this.input = input;
      return;
    }
    if (change.type !== "continue" || change.taskId !== this.#taskId) return;
    // The call was cut off, and belongs to the journal before.
    this.#isComplete = this.target !== undefined;
    if (this.#isComplete) return;
    this.items = [];
    this.started.clear();
    this.#placed.clear();
    this.steps.clear();
    this.requests.clear();
    this.input = change.input;
  }

  #record(step: StepRecord): void {
    const { kind, taskId, address, outcome } = step;
    const turn = kind === "turn" && outcome.kind === "ok" ? turnOf(outcome.value) : undefined;
    if (turn !== undefined && turn !== null) this.#hold(turn.contents, true);
    if (taskId !== this.#taskId) return;
    this.steps.set(address, step);
    if (turn !== undefined) {
      if (turn === null) this.isErased = true;
      this.items.push({ kind: "turn", record: turn });
    }
    if (kind === "llm") this.#place(address);
  }

  #place(address: StepAddress): void {
    if (this.#placed.has(address)) return;
    this.#placed.add(address);
    this.items.push({ kind: "call", address });
  }

  #request(request: SentRequest): void {
    this.#hold(request.contents, true);
    if (request.taskId !== this.#taskId) return;
    const { address, frame, role = "main" } = request;
    this.requests.set(address, { ...this.requests.get(address), ...request });
    if (frame !== undefined) this.frames.push({ role, address, frame });
  }

  #hold(contents: TurnRecord["contents"], lasts: boolean): void {
    for (const hash in contents) this.contents.hold(hash, contents[hash] as JsonValue, lasts);
  }
}

/** Returns the turn that a step recorded. `null` for a turn whose texts were erased. */
function turnOf(value: JsonValue): TurnRecord | null {
  return value as unknown as TurnRecord | null;
}

/** A call with the messages of its request. */
interface BuiltCall {
  readonly address: StepAddress;
  readonly transcript: Transcript;
  readonly isProven: boolean;
}

type SentMessages = Pick<RecordedRequest, "messages" | "isProven">;

class RequestBuilder {
  readonly #fold: CallFold;
  readonly #store: RunStore;
  readonly #hash: Hash;
  /** Places of the calls among the items. */
  #order: ReadonlyMap<string, number> | undefined;

  constructor(fold: CallFold, store: RunStore, hash: Hash) {
    this.#fold = fold;
    this.#store = store;
    this.#hash = hash;
  }

  async build(start: Event<"message_start">, target: StepAddress): Promise<RecordedRequest> {
    return this.#request(start, target, await this.#messages(new Set([target])));
  }

  /** Returns the requests of the calls in the current journal of the task. */
  async all(starts: readonly Event<"message_start">[]): Promise<readonly RecordedRequest[]> {
    const calls = starts.flatMap((start) => {
      const target = this.#fold.started.get(start.seq);
      return target === undefined ? [] : [{ start, target }];
    });
    const messages = await this.#messages(new Set(calls.map(({ target }) => target)));
    return calls.map(({ start, target }) => this.#request(start, target, messages));
  }

  #request(
    start: Event<"message_start">,
    target: StepAddress,
    sent: ReadonlyMap<StepAddress, SentMessages>,
  ): RecordedRequest {
    const { seq, taskId, agentId, at, data } = start;
    const { modelRole: role = "main", model: asked = null } = data;
    const turn = this.#turnBefore(target);
    const frame = this.#frameOf(role, target);
    const reply = replyOf(this.#fold.steps.get(target));
    const instructionsHash = frame?.instructions ?? turn?.instructions ?? null;
    const toolsHash = frame?.tools ?? turn?.tools ?? null;
    // A call in another role than the turn's was sent a frame of its own, which earlier versions did not record.
    const isKnown = frame !== undefined || role === (turn?.role ?? "main");
    const none = { messages: this.#fold.isErased ? erased : unrecorded, isProven: false };
    const { messages, isProven } = sent.get(target) ?? none;
    return {
      seq,
      taskId,
      agentId,
      address: target,
      role,
      model: nameOf(reply?.model ?? asked),
      at,
      instructions: isKnown ? this.#content<string>(instructionsHash, "") : unrecorded,
      instructionsHash: isKnown ? instructionsHash : null,
      tools: isKnown ? this.#content<readonly ToolSpec[]>(toolsHash, []) : unrecorded,
      toolsHash: isKnown ? toolsHash : null,
      messages,
      isProven,
      ephemeralMessages: frame === undefined && !isKnown ? null : (frame?.ephemeral ?? 0),
      changedByMiddleware: frame === undefined && !isKnown ? null : (frame?.middleware ?? []),
      settings: frame?.settings ?? {},
      contextWindow: frame?.contextWindow ?? null,
      reply,
    };
  }

  /** The turn in which a call was made. */
  #turnBefore(target: StepAddress): TurnRecord | null | undefined {
    const { items } = this.#fold;
    const at = items.findIndex((item) => item.kind === "call" && item.address === target);
    const item = items.slice(0, at).findLast(({ kind }) => kind === "turn");
    return item?.kind === "turn" ? item.record : undefined;
  }

  /** Returns the last frame of the role up to the call. */
  #frameOf(role: string, target: StepAddress): SentFrame | undefined {
    const { frames, items } = this.#fold;
    const order = (this.#order ??= new Map(
      items.map((item, index) => [item.kind === "call" ? item.address : "", index]),
    ));
    const end = order.get(target) ?? items.length;
    return frames.findLast((each) => each.role === role && (order.get(each.address) ?? 0) <= end)?.frame;
  }

  #content<Value>(hash: string | null, none: Value): Recorded<Value> {
    if (this.#fold.isErased) return erased;
    if (hash === null) return { state: "recorded", value: none };
    const content = this.#fold.contents.find(hash);
    return content === undefined ? erased : { state: "recorded", value: content as unknown as Value };
  }

  /** Returns the messages of some calls, as far as they are known. */
  async #messages(targets: ReadonlySet<StepAddress>): Promise<ReadonlyMap<StepAddress, SentMessages>> {
    const found = new Map<StepAddress, SentMessages>();
    if (this.#fold.isErased) return found;
    const calls: BuiltCall[] = [];
    let history: Transcript | null = Transcript.empty;
    let openings: readonly Transcript[] = this.#openings(Transcript.empty, this.#fold.input);
    for (const item of this.#fold.items) {
      if (item.kind === "turn") {
        calls.length = 0;
        history = item.record === null ? null : await this.#history(item.record);
        openings = history === null ? [] : this.#openings(history, item.record?.input ?? null);
        continue;
      }
      const built = this.#build(item.address, calls, history, openings);
      if (built !== undefined) calls.push(built);
      if (!targets.has(item.address)) continue;
      found.set(
        item.address,
        built === undefined
          ? { messages: history === null ? gone : unrecorded, isProven: false }
          : { messages: { state: "recorded", value: built.transcript.slice() }, isProven: built.isProven },
      );
      if (found.size === targets.size) break;
    }
    return found;
  }

  /** Returns the transcripts with which an invocation may begin: the history with the input, and without it. */
  #openings(history: Transcript, input: JsonValue): readonly Transcript[] {
    return typeof input === "string" ? [history.append(userMessage(input)), history] : [history];
  }

  /**
   * Returns the messages of a call. If a digest is recorded, the messages must match it; otherwise they follow from
   * the records.
   */
  #build(
    address: StepAddress,
    calls: readonly BuiltCall[],
    history: Transcript | null,
    openings: readonly Transcript[],
  ): BuiltCall | undefined {
    const record = this.#fold.steps.get(address);
    // A step of another kind.
    if (record !== undefined && record.kind !== "llm") return undefined;
    const digest = record && digestOf(record, this.#hash);
    for (const transcript of this.#candidates(address, calls, history, openings)) {
      if (digest === undefined) return { address, transcript, isProven: false };
      if (transcript.digest(this.#hash) === digest) return { address, transcript, isProven: true };
    }
    return undefined;
  }

  *#candidates(
    address: StepAddress,
    calls: readonly BuiltCall[],
    history: Transcript | null,
    openings: readonly Transcript[],
  ): Iterable<Transcript> {
    const given = this.#fold.requests.get(address)?.messages;
    if (given !== undefined) {
      const last = calls.find((call) => call.address === given.base);
      const base = given.base === null ? history : last && this.#continued(last);
      if (base !== null && base !== undefined) yield Transcript.of(joined(base, given.pieces));
      return;
    }
    for (const call of calls.slice(-mostBases).toReversed()) yield this.#continued(call);
    yield* openings;
  }

  /** Returns the messages after a call: those of its request, the answer, and the results of the answer's calls. */
  #continued({ address, transcript }: BuiltCall): Transcript {
    const { steps } = this.#fold;
    const reply = replyOf(steps.get(address));
    if (reply === null) return transcript;
    const answered = transcript.append(reply.message);
    const parts = toolCallsOf(reply.message).map((call, index) => {
      const record = steps.get(stepAt(address, index));
      if (record?.kind !== "tool" || record.outcome.kind !== "ok") return undefined;
      return toolResultPart(call, record.outcome.value as unknown as ToolResult);
    });
    const results = parts.filter((part) => part !== undefined);
    return results.length === 0 || results.length < parts.length
      ? answered
      : answered.append(toolMessage(results));
  }

  /** Returns the history with which a turn started. `null` if it no longer exists. */
  async #history(turn: TurnRecord): Promise<Transcript | null> {
    const { history, said = [], sessionId, leafId } = turn;
    const lists: (readonly ChatMessage[] | undefined)[] = [];
    if (history !== undefined) lists.push(this.#list(history));
    else if (sessionId !== null && leafId !== null) {
      const path = await this.#store.sessions.readPath(sessionId, { leafId, from: "compaction" });
      lists.push(path && contextMessages(path.entries));
    }
    for (const each of said) lists.push(this.#list(each));
    return lists.includes(undefined) ? null : Transcript.of(lists.flatMap((list) => list ?? []));
  }

  #list(hash: string): readonly ChatMessage[] | undefined {
    return this.#fold.contents.find(hash) as readonly ChatMessage[] | undefined;
  }
}

const erased = { state: "erased", reason: "retention" } as const;
const gone = { state: "erased", reason: "session" } as const;
const unrecorded = { state: "unrecorded" } as const;

function joined(base: Transcript, pieces: readonly TranscriptPiece[]): readonly ChatMessage[] {
  const messages = base.slice();
  return pieces.flatMap((piece) => (isRange(piece) ? messages.slice(piece[0], piece[1]) : [piece]));
}

/** The name of a model as `provider/id`. */
function nameOf(model: LlmReply["model"] | null): string | null {
  return model === null ? null : `${model.provider}/${model.modelId}`;
}

function isRange(piece: TranscriptPiece): piece is readonly [number, number] {
  return Array.isArray(piece);
}

function replyOf(step: StepRecord | undefined): LlmReply | null {
  if (step?.kind !== "llm" || step.outcome.kind !== "ok") return null;
  return step.outcome.value as unknown as LlmReply;
}
