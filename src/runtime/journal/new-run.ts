import { assertMetadataSize } from "../process/size-limit.ts";
import { parseModelName } from "../process/session-model.ts";
import type { WorkerContext } from "../process/worker-context.ts";
import type { RunCaller } from "./run-calls.ts";
import { asksForTopUp } from "./task-record.ts";
import { callerWait } from "./wait-names.ts";
import {
  type AgentId,
  type ChatMessage,
  type HostedAgent,
  type Commit,
  type Event,
  type ExecutionBudget,
  Fault,
  flowFrom,
  HistoryRetention,
  isUnnamedSession,
  type JsonObject,
  type JsonValue,
  type LedgerCommand,
  type Message,
  type RequestOfRun,
  type RunKind,
  type RunChanges,
  type RunRecord,
  type SessionChange,
  type SpawnBudget,
  type StoredChanges,
  type SubmitOptions,
  Supervision,
  type TaskRecord,
  type UserEntryFields,
  type UserMessage,
  assertJson,
  copyJson,
  callSettings,
  describeValue,
  executionBudget,
  formatTaskId,
  nameProblem,
  runTitle,
  timeOfDate,
  type Clock,
  sessionWithin,
  tightenBudget,
  unlimitedBudget,
  userEntry,
} from "../../kernel/index.ts";

/** The options of a submission, with further options that only the runtime sets. */
export interface NewRunOptions extends SubmitOptions {
  /** The inbox messages that start the run. */
  readonly messages?: readonly Message[];
  /** Default: `"invocation"`. */
  readonly kind?: RunKind;
  /** Makes the run a child that shares the prompt of an ended run. */
  readonly child?: NewChild;
  /** The task that starts the run and receives its outcome. */
  readonly caller?: RunCaller;
  /**
   * L18: whether only the name of the workflow is known, so that a worker that hosts the workflow must check the
   * input. Default: `false`.
   */
  readonly isByName?: boolean;
  /**
   * Whether `budget` replaces the agent's own budget. If `false`, the lower limit of both applies. Default:
   * `false`.
   */
  readonly replacesBudget?: boolean;
}

/** A run that shares the prompt of an ended run. */
interface NewChild {
  readonly inherits: RequestOfRun;
  /** Names of the tools that the run may call. `null` means all. */
  readonly tools: readonly string[] | null;
  /**
   * Name of the place within the session in which the run works. It blocks neither the session nor runs at other
   * places.
   */
  readonly place: string;
}

/** Creates a run of `agent` and its first commit: `run_start`, the root task with its account, and the user's session entry (S2). */
export function newRun(
  worker: Pick<WorkerContext, "clock" | "ids" | "warnAt"> & Partial<Pick<WorkerContext, "sizes">>,
  agent: HostedAgent,
  input: JsonValue,
  options: NewRunOptions,
): NewRun {
  const { clock, ids } = worker;
  const { id: agentId } = agent;
  const { messages = noMessages, userId = null } = options;
  const metadata = ownMetadata(options.metadata, agentId);
  for (const name of ["userId", "tenantId", "channel"] as const) assertName(name, options[name]);
  assertJson(input, `the input of ${agentId}`);
  worker.sizes?.assertInput(input, `the input of ${agentId}`);
  worker.sizes?.assert(metadata, `the metadata of a run of ${agentId}`);
  if (options.addedInstructions !== undefined) assertAdded(options.addedInstructions, agentId, worker.sizes);
  const changes = options.changes && changesOf(options.changes, agentId, worker.sizes);
  const startAt = startTimeOf(options, agentId);
  const { kind = options.child === undefined ? (agent.runKind ?? "invocation") : "child" } = options;
  if (kind === "workflow") refuseSession(agentId, options);
  const root = Supervision.root(agentId, {
    ids,
    runId: options.runId,
    executionBudget: budgetOf(agent, options),
    sessionId: options.sessionId,
    spawnBudget: seatsOf(agent, options),
    priority: options.priority,
    retention: options.retention,
  });
  const { runId, sessionId, priority, executionBudget: budget } = root;
  if (options.timeoutWhileWaiting === true && budget.deadlineMs === null && options.isByName !== true)
    throw new Fault(
      "invalid_argument",
      `timeoutWhileWaiting of a run of ${agentId} has no effect without a deadline: set timeoutMs or budget.deadlineMs`,
    );
  const supervision = root.toJSON();
  const at = clock.now();
  const by = messages[0]?.from ?? userId;
  const task: TaskRecord = {
    taskId,
    agentId,
    parentId: null,
    supervision,
    budget,
    input,
    messages,
    userId,
    metadata,
    streaming: options.streaming ?? false,
    onParentEnd: "wait",
    onPause: "suspend",
    tools: null,
    ...(options.timeoutWhileWaiting === true && { timeoutWhileWaiting: true }),
    ...(startAt !== null && { startAt }),
    ...asksForTopUp(agent),
  };
  const { topUp } = agent;
  const started = {
    agentId,
    sessionId,
    input,
    supervision,
    metadata,
    ...(topUp !== undefined && { topUp }),
    ...(changes !== undefined && { changes }),
  };
  const data = by == null ? started : { ...started, by };
  const start: Event = { seq: 0, runId, taskId, agentId, parentId: null, type: "run_start", at, data };
  const first: Commit = {
    number: 0,
    at,
    events: [start],
    tasks: [{ type: "create", task: withOptions(task, options, changes) }],
    ledger: [openAccountCommand(worker, { taskId, parentId: null, budget, priority })],
    ...(options.caller !== undefined && {
      resolves: [{ taskId, wait: callerWait, value: options.caller as unknown as JsonValue }],
    }),
  };
  // A compaction adds no message of a user to its session.
  const content = kind === "invocation" ? agent.messageOf?.(input) : undefined;
  const message = root.retention === HistoryRetention.NONE ? undefined : content;
  const earlier = kind === "invocation" ? agent.historyOf?.(input) : undefined;
  // A session that is named after the run did not exist before it.
  if (earlier !== undefined && options.sessionId !== undefined && !isUnnamedSession(sessionId, runId))
    throw secondHistory(agentId, options.sessionId);
  const flow =
    kind === "invocation" || kind === "workflow"
      ? flowFrom(agent.flowOf?.({ input, tenantId: options.tenantId ?? null, userId }), at)
      : undefined;
  if (flow?.collect !== undefined && startAt !== null) throw startsAlone(agentId);
  const sessions = message && openingEntries({ sessionId, agentId, runId, at, message }, earlier);
  return {
    record: {
      runId,
      kind,
      agentId,
      sessionId: options.child === undefined ? sessionId : sessionWithin(sessionId, options.child.place),
      tenantId: options.tenantId ?? null,
      userId,
      priority,
      agentVersion: agent.version ?? null,
      title: root.retention === HistoryRetention.PERMANENT ? titleOf(input, content, messages) : null,
      metadata,
      createdAt: at,
      startAt,
      recoveries: 0,
      ...(flow !== undefined && { flow }),
    },
    first: sessions === undefined ? first : { ...first, sessions },
  };
}

/**
 * Returns the entries of a new run. The messages before the user's are visible, because nothing can change them any
 * more. The user's message is pending until the invocation has ended.
 */
function openingEntries(user: UserEntryFields, earlier: readonly ChatMessage[] = []): SessionChange[] {
  const opening = userEntry(user, "pending");
  if (earlier.length === 0) return [opening];
  const { sessionId, agentId, runId, at } = user;
  const batch = { runId, taskId, at, parentId: null, stem: `${runId}/history`, from: 0, messages: earlier };
  return [{ type: "say", sessionId, agentId, batch, visibility: "visible" }, opening];
}

function startsAlone(agentId: AgentId): Fault {
  return new Fault(
    "invalid_argument",
    `invalid startAt or delayMs of a run of ${agentId}: its debounce or batch decides when it starts; omit the option`,
  );
}

function secondHistory(agentId: AgentId, sessionId: string): Fault {
  return new Fault(
    "invalid_argument",
    `invalid messages of agent ${agentId}: messages start a new session, but sessionId is "${sessionId}"; omit sessionId, or pass only the new input to continue that session`,
  );
}

/** Adds to the record of a root task those options that most submissions do not set. */
function withOptions(
  task: TaskRecord,
  options: NewRunOptions,
  changes: StoredChanges | undefined,
): TaskRecord {
  const {
    channel,
    settings,
    addedInstructions,
    context,
    child,
    heartbeat = false,
    isByName = false,
  } = options;
  const isPlain =
    channel === undefined && settings === undefined && context === undefined && changes === undefined;
  if (isPlain && addedInstructions === undefined && child === undefined && !heartbeat && !isByName)
    return task;
  const { spawnBudget } = options;
  return {
    ...task,
    ...(isByName && { byName: spawnBudget === undefined ? {} : { spawnBudget } }),
    ...(child !== undefined && { inherits: child.inherits, tools: child.tools }),
    ...(channel !== undefined && { channel }),
    ...(settings !== undefined && { settings: callSettings(`a run of ${task.agentId}`, settings) }),
    ...(addedInstructions !== undefined && { addedInstructions }),
    ...(changes !== undefined && { changes }),
    ...(context !== undefined && { hasContext: true }),
    ...(heartbeat && { heartbeat }),
  };
}

/** Returns the title of a run: the text of the input, or of the inbox message that starts the run. */
function titleOf(
  input: JsonValue,
  content: UserMessage | undefined,
  [first]: readonly Message[],
): string | null {
  if (content !== undefined)
    return runTitle(content.content.map((part) => (part.type === "text" ? part.text : "")).join(" "));
  const text = input ?? first?.body;
  return typeof text === "string" ? runTitle(text) : null;
}

function refuseSession(agentId: AgentId, { sessionId }: SubmitOptions): void {
  if (sessionId === undefined) return;
  throw new Fault(
    "invalid_argument",
    `invalid sessionId ${describeValue(sessionId)} of a run of workflow ${agentId}: a workflow has no session; omit sessionId, and use metadata to find its runs`,
  );
}

function assertAdded(text: unknown, agentId: AgentId, sizes: WorkerContext["sizes"] | undefined): void {
  const owner = `addedInstructions of a run of ${agentId}`;
  if (typeof text !== "string" || text.trim() === "")
    throw new Fault(
      "invalid_argument",
      `invalid ${owner}: expected a text that is not empty, not ${describeValue(text)}; omit the option`,
    );
  assertJson(text, owner);
  sizes?.assert(text, owner);
}

/** Returns the changes of a submission as the root stores them. */
function changesOf(
  { model, ...changes }: RunChanges,
  agentId: AgentId,
  sizes: WorkerContext["sizes"] | undefined,
): StoredChanges {
  const owner = `the changes of a run of ${agentId}`;
  assertJson(changes, owner);
  sizes?.assert(changes, owner);
  return { ...copyJson(changes), ...(model !== undefined && { model: parseModelName(model) }) };
}

/** Returns a copy of the metadata. The facts of a run are frozen, and the original object belongs to the caller. */
function ownMetadata(metadata: JsonObject | undefined, agentId: AgentId): JsonObject {
  if (metadata === undefined) return noMetadata;
  if (typeof metadata !== "object" || metadata === null || Array.isArray(metadata))
    throw new Fault(
      "invalid_argument",
      `invalid metadata of a run of ${agentId}: expected an object, not ${describeValue(metadata)}`,
    );
  assertJson(metadata, `the metadata of a run of ${agentId}`);
  assertMetadataSize(metadata, `the metadata of a run of ${agentId}`);
  return copyJson(metadata);
}

/** L9: returns the start time of a submission. `null` if it has none. */
function startTimeOf({ startAt }: SubmitOptions, agentId: AgentId): number | null {
  if (startAt === undefined) return null;
  if (Number.isSafeInteger(startAt) && startAt >= 0) return startAt;
  throw new Fault(
    "invalid_argument",
    `invalid startAt ${describeValue(startAt)} of a run of ${agentId}: expected a time in whole epoch milliseconds; use Date.now() plus a delay, or Date.parse()`,
  );
}

/** L9: returns the time that `startAt` or `delayMs` gives. Throws if both are set. */
export function startTime(
  clock: Clock,
  startAt: number | Date | undefined,
  delayMs: number | undefined,
): number | undefined {
  if (delayMs === undefined) return timeOfDate(startAt) ?? (startAt as number | undefined);
  if (startAt === undefined) return clock.now() + Math.ceil(delayMs);
  throw new Fault(
    "invalid_argument",
    "invalid delayMs of start(): startAt is given as well; omit one of them",
  );
}

/** A run that is not stored yet. */
export interface NewRun {
  readonly record: RunRecord;
  /** Commit 0 of the run. */
  readonly first: Commit;
}

const taskId = formatTaskId(0);

const noMetadata: JsonObject = Object.freeze({});

const noMessages: readonly Message[] = Object.freeze([]);

/**
 * B6: returns the budget of a run: in each dimension, the lower limit of the agent and the submission.
 * `Supervision.root` validates an agent's budget (B2).
 */
export function budgetOf(
  { budget }: HostedAgent,
  { budget: submitted, replacesBudget = false }: NewRunOptions,
): Partial<ExecutionBudget> {
  const own = replacesBudget ? unlimitedBudget : (budget ?? unlimitedBudget);
  return submitted === undefined ? own : tightenBudget(executionBudget(own), submitted);
}

/** Returns the spawn budget of a run: that of the agent, with the values that the submission sets. */
export function seatsOf(
  { spawnBudget: own }: HostedAgent,
  { spawnBudget: submitted }: SubmitOptions,
): Partial<SpawnBudget> | undefined {
  return own === undefined || submitted === undefined ? (submitted ?? own) : { ...own, ...submitted };
}

/**
 * Creates the command that opens the account of a new task. `warnAt` is the share of a cap at which
 * `budget_warning` is emitted (B5).
 */
export function openAccountCommand(
  { warnAt }: { readonly warnAt?: number },
  account: Omit<Extract<LedgerCommand, { type: "open" }>, "type" | "warnAt">,
): LedgerCommand {
  return { type: "open", ...account, ...(warnAt === undefined ? {} : { warnAt }) };
}

/** Throws for a name that a store could not keep unchanged. Callers without types may pass `null` for no name. */
function assertName(option: string, name: string | null | undefined): void {
  if (name === undefined || name === null) return;
  const problem = nameProblem(name);
  if (problem !== undefined) throw new Fault("invalid_argument", `invalid ${option} of a run: ${problem}`);
}
