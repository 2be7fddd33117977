import {
  contextMessages,
  Fault,
  missingRun,
  rootTaskId,
  runStatuses,
  type ChatMessage,
  type Commit,
  type Event,
  type JsonObject,
  type JsonValue,
  type LlmReply,
  type Recorded,
  type RecordedRequest,
  type RunId,
  type RepairedCall,
  type StepRecord,
  type Store,
  type ToolResult,
  type ToolSpec,
  type UserPart,
} from "../../kernel/index.ts";
import { readRequests, repairAddress, sha256 } from "../../runtime/index.ts";
import { Redaction, secretFields, secretValues, type RedactionCounts } from "./redaction.ts";
import type { RecordedCall, RecordedModelCall, RecordedToolCall, RunRecording } from "./run-recording.ts";

/** A recorded run without secrets, and how many were removed. */
export interface RecordedRun {
  readonly recording: RunRecording;
  readonly redactions: RedactionCounts;
}

/**
 * Reads an ended run from a store as a case for replays. Throws `invalid_argument`, with the id of the run, for a
 * run that cannot be repeated: one that has not ended, whose contents were erased, that is not a run of an agent,
 * or that received input while it was executed. Takes O(commits of the run) for each of its tasks.
 */
export async function recordRun(store: Store, runId: RunId): Promise<RecordedRun> {
  const record = await store.journal.find(runId);
  const summary = await store.journal.summary(runId);
  if (record === undefined || summary === undefined) throw missingRun(runId);
  if (record.kind !== "invocation") throw refused(runId, `it is a ${record.kind}`, "use a run of an agent");
  const status = runStatuses.find((each) => each === summary.status);
  if (status === undefined)
    throw refused(runId, `it has not ended (${summary.status})`, "add it when it has ended");
  const fold = new RunFold(runId);
  for await (const commit of store.journal.read(runId)) fold.add(commit);
  const modelCalls: RecordedModelCall[] = [];
  const offered = new Map<string, ToolSpec>();
  const started = fold.modelSteps;
  const requests = await readRequests(store, sha256, { runId, seqs: started.map(({ seq }) => seq) });
  for (const { step, seq } of started) {
    const call = modelCall(runId, step, requests.get(seq) as RecordedRequest);
    for (const spec of call.request.tools ?? []) offered.set(spec.name, spec);
    modelCalls.push(call);
  }
  const toolCalls = fold.toolCalls;
  const session = await sessionBefore(store, runId, fold);
  const fields = secretFields(toolCalls, [...offered.values()]);
  const redaction = new Redaction(fields, secretValues(toolCalls, fields));
  const calls = [...modelCalls, ...toolCalls].toSorted((one, other) => one.seq - other.seq);
  const recording: RunRecording = {
    runId,
    agentId: record.agentId,
    status,
    createdAt: record.createdAt,
    input: redaction.in(fold.input, "the input"),
    schema: fold.schema,
    session: redaction.in(session, "the session"),
    output: redaction.in(fold.output, "the output"),
    secrets: fields,
    calls: new CallRedaction(redaction).all(calls),
  };
  return { recording, redactions: redaction.counts };
}

/** Removes secrets from calls. If later requests repeat a message, its secrets are counted only once. */
class CallRedaction {
  readonly #redaction: Redaction;
  readonly #known = new Map<string, unknown>();
  /** Requests share their messages, so that most are found without their text. */
  readonly #seen = new Map<unknown, unknown>();

  constructor(redaction: Redaction) {
    this.#redaction = redaction;
  }

  all(calls: readonly RecordedCall[]): readonly RecordedCall[] {
    return calls.map((call): RecordedCall => {
      if (call.kind === "tool") return this.#redaction.in(call, `calls of ${call.toolName}`);
      const { request, reply, failure, ...place } = call;
      const { messages, tools, ...settings } = request;
      return {
        ...place,
        request: {
          messages: messages.map((message) => this.#once(message, placeOf(message))),
          ...(tools !== undefined && { tools: this.#once(tools, "tool descriptions") }),
          ...this.#redaction.in(settings, "settings of model calls"),
        },
        reply: reply === null ? null : { ...reply, message: this.#once(reply.message, "replies of models") },
        failure: this.#redaction.in(failure, "errors of models"),
      };
    });
  }

  #once<Content>(content: Content, place: string): Content {
    const seen = this.#seen.get(content) ?? this.#byText(content, place);
    this.#seen.set(content, seen);
    return seen as Content;
  }

  #byText<Content>(content: Content, place: string): Content {
    const key = JSON.stringify(content);
    const known = this.#known.get(key);
    if (known !== undefined) return known as Content;
    const cleaned = this.#redaction.in(content, place);
    this.#known.set(key, cleaned);
    return cleaned;
  }
}

function placeOf({ role }: ChatMessage): string {
  if (role === "system") return "instructions";
  return role === "assistant" ? "replies of models" : `${role} messages`;
}

interface StartedStep {
  readonly step: StepRecord;
  /** Seq of the step's start event. */
  readonly seq: number;
}

interface TurnValue {
  readonly sessionId?: string | null;
  readonly leafId?: string | null;
  readonly history?: string;
  readonly contents?: Readonly<Record<string, JsonValue>>;
}

/** Collects what a recording needs from the commits of a run. */
class RunFold {
  output: JsonValue = null;
  schema: JsonObject | null = null;
  /** The first turn of the root. `undefined` if it has none. */
  turn: TurnValue | undefined;
  readonly #runId: RunId;
  readonly #agents = new Map<string, RecordedCall["agentId"]>();
  readonly #inputs = new Map<number, JsonValue>();
  readonly #starts = new Map<string, number>();
  readonly #steps = new Map<string, StepRecord>();
  #input: string | readonly UserPart[] | undefined;

  constructor(runId: RunId) {
    this.#runId = runId;
  }

  add({
    events = [],
    opens = [],
    steps = [],
    voids = [],
    tasks = [],
    sessions = [],
    erases = [],
  }: Commit): void {
    if (erases.length > 0) throw erased(this.#runId);
    for (const event of events) this.#event(event);
    for (const { taskId, address, seq } of opens) this.#starts.set(`${taskId} ${address}`, seq);
    for (const { taskId, address } of voids) this.#steps.delete(`${taskId} ${address}`);
    for (const change of tasks) {
      if (change.type === "create") this.#agents.set(change.task.taskId, change.task.agentId);
      if (change.type === "end" && change.taskId === rootTaskId) this.output = change.outcome.output;
    }
    for (const change of sessions)
      if (change.type === "append" && change.entry.type === "message" && change.entry.id === this.#runId)
        this.#input ??= messageInput(change.entry.message);
    for (const step of steps) this.#step(step);
  }

  get input(): string | readonly UserPart[] {
    if (this.#input !== undefined) return this.#input;
    throw refused(this.#runId, "its input is no message", "use a run that began with a message");
  }

  /** The model calls that were recorded, in the order of their starts. */
  get modelSteps(): readonly StartedStep[] {
    return this.#started("llm");
  }

  get toolCalls(): readonly RecordedToolCall[] {
    const nesting = this.#nesting();
    return this.#started("tool").flatMap(({ step, seq }) => {
      const { taskId, address, name, outcome } = step;
      const sent = this.#inputs.get(seq);
      if (outcome.kind !== "ok" || sent === undefined) return [];
      // A replay receives the call as `repairToolCall` has corrected it.
      const repair = this.#steps.get(`${taskId} ${repairAddress(address)}`)?.outcome;
      const { toolName = name, input = sent } = (
        repair?.kind === "ok" ? (repair.value ?? {}) : {}
      ) as RepairedCall;
      return {
        kind: "tool",
        seq,
        agentId: this.agentOf(taskId),
        toolName,
        input,
        result: outcome.value as unknown as ToolResult,
        isNested: nesting.has(`${taskId} ${address}`),
      };
    });
  }

  agentOf(taskId: string): RecordedCall["agentId"] {
    return this.#agents.get(taskId) as RecordedCall["agentId"];
  }

  #event(event: Event): void {
    if (event.erased === true) throw erased(this.#runId);
    if (event.type === "tool_execution_start") this.#inputs.set(event.seq, event.data.input);
    if (event.type === "run_steer")
      throw refused(
        this.#runId,
        `it received input while it worked (event ${event.seq})`,
        "use a run that received none",
      );
    if (event.type !== "run_start") return;
    const { input } = event.data;
    if (typeof input === "string") this.#input = input;
    if (typeof input !== "object" || input === null || Array.isArray(input)) return;
    const { output } = input as JsonObject;
    if (typeof output === "object" && output !== null) this.schema = output as JsonObject;
  }

  #step(step: StepRecord): void {
    const { taskId, address, kind, outcome } = step;
    this.#steps.set(`${taskId} ${address}`, step);
    if (kind !== "turn" || outcome.kind !== "ok") return;
    if (outcome.value === null) throw erased(this.#runId);
    if (taskId === rootTaskId) this.turn ??= outcome.value as unknown as TurnValue;
  }

  #started(kind: StepRecord["kind"]): readonly StartedStep[] {
    const found = [...this.#steps].flatMap(([key, step]) => {
      const seq = this.#starts.get(key);
      return step.kind === kind && seq !== undefined ? [{ step, seq }] : [];
    });
    return found.toSorted((one, other) => one.seq - other.seq);
  }

  /** The steps in whose scope the run has called models, tools or agents. */
  #nesting(): ReadonlySet<string> {
    const found = new Set<string>();
    for (const [key, { kind }] of this.#steps) {
      if (kind !== "llm" && kind !== "tool" && kind !== "spawn") continue;
      for (let end = key.lastIndexOf("/"); end > 0; end = key.lastIndexOf("/", end - 1))
        found.add(key.slice(0, end));
    }
    return found;
  }
}

/** Returns the content of the user's message. If it is one plain text, returns this text. */
function messageInput(message: ChatMessage): string | readonly UserPart[] | undefined {
  if (message.role !== "user") return undefined;
  const [only, ...others] = message.content;
  return others.length === 0 && only?.type === "text" && only.providerMetadata === undefined
    ? only.text
    : message.content;
}

/** The messages that the first turn of the run continued. */
async function sessionBefore(store: Store, runId: RunId, { turn }: RunFold): Promise<readonly ChatMessage[]> {
  if (turn === undefined) return [];
  const { sessionId = null, leafId = null, history, contents = {} } = turn;
  if (history !== undefined) return (contents[history] ?? []) as unknown as readonly ChatMessage[];
  if (sessionId === null || leafId === null) return [];
  const path = await store.sessions.readPath(sessionId as never, { leafId, from: "compaction" });
  if (path !== undefined) return contextMessages(path.entries);
  throw refused(runId, "the session that it continued was deleted", "use a run whose session exists");
}

/** Returns the request and the answer of one model call. */
function modelCall(runId: RunId, step: StepRecord, sent: RecordedRequest): RecordedModelCall {
  const { seq, agentId, role, instructions, tools, messages, ephemeralMessages, settings } = sent;
  const system = present(runId, seq, instructions);
  const specs = present(runId, seq, tools);
  const { outcome } = step;
  const answer = outcome.kind === "ok" ? (outcome.value as unknown as LlmReply) : null;
  return {
    kind: "model",
    seq,
    agentId,
    role,
    request: {
      messages: [
        ...(system === "" ? [] : [{ role: "system", content: system } as const]),
        ...present(runId, seq, messages),
      ],
      ...(specs.length > 0 && { tools: specs }),
      ...settings,
    },
    ephemeral: ephemeralMessages ?? 0,
    reply:
      answer === null
        ? null
        : { message: answer.message, stopReason: answer.stopReason, model: answer.model },
    failure: outcome.kind === "failed" ? outcome.failure : null,
  };
}

function present<Value>(runId: RunId, seq: number, part: Recorded<Value>): Value {
  if (part.state === "recorded") return part.value;
  if (part.state === "erased") throw erased(runId);
  throw refused(
    runId,
    `an earlier version made its model call ${seq} and did not record the request`,
    "use a newer run",
  );
}

function erased(runId: RunId): Fault {
  return refused(runId, "its contents were erased", "use a run whose history was kept");
}

function refused(runId: RunId, why: string, fix: string): Fault {
  return new Fault("invalid_argument", `run ${runId} cannot become a case: ${why}; ${fix}`);
}
