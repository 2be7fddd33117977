import type { TurnRecord } from "../journal/shared-contents.ts";
import {
  andThen,
  Fault,
  HistoryRetention,
  sessionWithin,
  contextMessages,
  sealJson,
  sessionSettings,
  Transcript,
  type ChatMessage,
  type EmittableEvent,
  type EventDraft,
  type HandledInput,
  type Hash,
  type InheritedRequest,
  type JsonValue,
  type MaybePromise,
  type Model,
  type ModelReference,
  type RunContext,
  type SessionId,
  type SessionPath,
  type SessionSettings,
  type StepAddress,
  type ThinkingLevel,
  type ToolSpec,
  type Turn,
  type TurnOpening,
  type TurnPlan,
} from "../../kernel/index.ts";
import { requestOfRun } from "./closed-request.ts";
import { queueWait } from "../journal/wait-names.ts";
import { resolveModel } from "../process/session-model.ts";
import type { ActiveStep } from "../task/active-step.ts";
import type { NestedContext } from "../task/nested-scope.ts";
import type { StepExecutor } from "../task/step-executor.ts";
import type { TaskRunner } from "../task/task-runner.ts";

/**
 * The digest of a turn. It is stored with the record and refers to nothing else, because a memory store would otherwise
 * keep the whole task alive.
 */
class SeenHistory {
  history = Transcript.empty;

  digest(hash: Hash): string {
    return this.history.digest(hash);
  }
}

/**
 * Runs `plan` once and freezes its result. J4: the record's digest covers the history, so a history that can no longer
 * be rebuilt from the session is detected here.
 */
export function takeTurn(
  steps: StepExecutor,
  plan: ScopedPlan,
  options: TurnOptions | undefined,
  inside: (address: StepAddress) => NestedContext,
): Promise<Turn> {
  if (options?.withSteps === true) return takeTurnWithSteps(steps, plan, inside);
  return startTurn(steps, plan as Plan, undefined);
}

/** Like `takeTurn`, for a plan that takes steps inside the step. `inside` creates their scope. */
function takeTurnWithSteps(
  steps: StepExecutor,
  plan: ScopedPlan,
  inside: (address: StepAddress) => NestedContext,
): Promise<Turn> {
  const planInside = async (opening: TurnOpening, { address }: ActiveStep): Promise<TurnPlan> => {
    const ctx = inside(address);
    const { events = none, ...planned } = await plan(opening, ctx);
    return { ...planned, events: [...(ctx.takeEvents() as readonly EmittableEvent[]), ...events] };
  };
  return startTurn(steps, planInside, inputEvent(steps.runner));
}

/** `start` is the event `input`, if it is written before `plan` is called. */
function startTurn(
  steps: StepExecutor,
  plan: StepPlan,
  start: EventDraft<"input"> | undefined,
): Promise<Turn> {
  const { runner } = steps;
  const seen = new SeenHistory();
  const step = { address: steps.next(), kind: "turn", name: "turn", digest: seen } as const;
  const known = runner.task.steps.get(step.address);
  const isAnnounced = start !== undefined;
  const take = (): Promise<Turn> =>
    steps.run<TurnRecord, Turn>(
      step,
      (open) => makeTurn(open, plan, seen, isAnnounced),
      start,
      (record) => thaw(runner, record, seen.history),
    );
  if (known?.kind !== "turn" || known.outcome.kind !== "ok") return take();
  return seeAgain(runner, known.outcome.value as unknown as TurnRecord, seen).then(take);
}

async function seeAgain(runner: TaskRunner, record: TurnRecord, seen: SeenHistory): Promise<void> {
  seen.history = await rebuild(runner, record);
}

interface Planned {
  readonly plan: TurnPlan;
  readonly sessionId: SessionId | null;
  readonly leafId: string | null;
  readonly history: Transcript;
  readonly settings: SessionSettings;
  /** Whether the event `input` is in the log already. */
  readonly isAnnounced: boolean;
}

/** Options of `ctx.turn`. */
export interface TurnOptions {
  readonly withSteps: boolean;
}

type Plan = (opening: TurnOpening) => TurnPlan | Promise<TurnPlan>;
/** A plan that takes steps inside the step of the turn. */
export type ScopedPlan = (opening: TurnOpening, ctx: RunContext) => TurnPlan | Promise<TurnPlan>;
type StepPlan = (opening: TurnOpening, open: ActiveStep) => TurnPlan | Promise<TurnPlan>;

/** Creates the turn; synchronous if nothing has to be loaded. */
function makeTurn(
  open: ActiveStep,
  plan: StepPlan,
  seen: SeenHistory,
  isAnnounced: boolean,
): (() => TurnRecord) | Promise<() => TurnRecord> {
  const { inherits } = open.runner.task.record;
  if (inherits !== undefined) return inheritTurn(open, inherits, seen);
  const sessionId = historySession(open.runner);
  const reading = readHistory(open.runner, sessionId);
  return reading instanceof Promise
    ? reading.then((path) => planTurn(open, plan, { seen, sessionId, isAnnounced }, path))
    : planTurn(open, plan, { seen, sessionId, isAnnounced }, reading);
}

interface TurnPlace extends Pick<Planned, "sessionId" | "isAnnounced"> {
  readonly seen: SeenHistory;
}

/** The turn of a task that shares the prompt of another one. Its plan is that task's request. */
async function inheritTurn(
  open: ActiveStep,
  inherits: InheritedRequest,
  seen: SeenHistory,
): Promise<() => TurnRecord> {
  const { runner } = open;
  const shared = "runId" in inherits ? await requestOfRun(runner.worker, inherits) : inherits;
  const { contents, ...request } = shared;
  const { instructions, leafId } = request;
  const isHeld = "contents" in inherits;
  const record: TurnRecord = Object.freeze({
    ...request,
    at: runner.worker.clock.now(),
    input: runner.task.input,
    ...(contents !== undefined && !isHeld && { contents: Object.freeze(contents) }),
  });
  seen.history = await rebuild(runner, record, contents);
  return () => {
    emitOpening(open, { instructionsHash: instructions, fromCache: true, leafId, history: seen.history });
    return record;
  };
}

function planTurn(
  open: ActiveStep,
  plan: StepPlan,
  { seen, sessionId, isAnnounced }: TurnPlace,
  { leafId, entries: path }: SessionPath,
): (() => TurnRecord) | Promise<() => TurnRecord> {
  const { input, record } = open.runner.task;
  const settings = sessionSettings(path);
  if (settings.model !== null) requireModel(open.runner, settings.model);
  const see = (planned: TurnPlan): (() => TurnRecord) => {
    seen.history = historyOf(planned.history ?? contextMessages(path));
    const { history } = seen;
    return () => freeze(open, { plan: planned, sessionId, leafId, history, settings, isAnnounced });
  };
  const planning = plan({ input, sessionId, path, channel: record.channel ?? null }, open);
  return planning instanceof Promise ? planning.then(see) : see(planning);
}

const none: readonly never[] = [];

function historyOf(messages: readonly ChatMessage[]): Transcript {
  return messages.length === 0 ? Transcript.empty : Transcript.of(messages);
}

/**
 * Creates the record synchronously when it is written, so that contents of earlier records are referenced, not stored
 * again. J1, J10: sealed.
 */
function freeze(open: ActiveStep, planned: Planned): TurnRecord {
  const { plan, sessionId, leafId, history, settings } = planned;
  const { runner } = open;
  const { contentHashes, clock } = runner.worker;
  // A task whose content is kept must not refer to content of a task that is erased.
  const lasting = !isErasedAtEnd(runner);
  let contents: Record<string, JsonValue> | undefined;
  const hold = (name: string, content: unknown): string => {
    if (!runner.state.contents.has(name, { lasting })) (contents ??= {})[name] = content as JsonValue;
    return name;
  };
  const { input, instructions, tools, fromCache = false } = plan;
  sealJson(input, "the input of a turn");
  const instructionsHash = hold(contentHashes.ofText(instructions), instructions);
  const toolsHash = hold(contentHashes.ofJson(tools, "the tools of a turn"), tools);
  const historyHash =
    plan.history && hold(contentHashes.ofJson(plan.history, "the history of a turn"), plan.history);
  const earlierHash =
    plan.earlier && hold(contentHashes.ofJson(plan.earlier, "the earlier messages of a turn"), plan.earlier);
  const { events, handled } = plan;
  const { isAnnounced } = planned;
  emitOpening(open, {
    instructionsHash,
    fromCache,
    sessionId,
    leafId,
    history,
    events,
    handled,
    isAnnounced,
  });
  const at = clock.now();
  const record: { -readonly [Key in keyof TurnRecord]: TurnRecord[Key] } = {
    at,
    input,
    instructions: instructionsHash,
    tools: toolsHash,
    sessionId,
    leafId,
  };
  if (historyHash !== undefined) record.history = historyHash;
  if (earlierHash !== undefined) record.earlier = earlierHash;
  if (plan.carried !== undefined) {
    sealJson(plan.carried, "the carried data of a turn");
    record.carried = plan.carried;
  }
  if (plan.maxToolCallsPerTurn !== undefined) record.maxToolCallsPerTurn = plan.maxToolCallsPerTurn;
  if (plan.isTransformed === true) record.isTransformed = true;
  if (hasSteering(runner)) record.isSteered = true;
  if (plan.handled !== undefined) record.handled = plan.handled;
  if (settings.model !== null) record.model = settings.model;
  if (settings.thinkingLevel !== null) record.thinkingLevel = settings.thinkingLevel;
  if (contents !== undefined) record.contents = Object.freeze(contents);
  return Object.freeze(record);
}

/** Whether steering waits for the task. Only the root has such input. */
function hasSteering({ task: { record }, taskId, state }: TaskRunner): boolean {
  return record.parentId === null && state.resolutions.first(taskId, queueWait("steer")) !== undefined;
}

function inputEvent({ task: { input, record } }: TaskRunner): EventDraft<"input"> {
  const { channel } = record;
  return { type: "input", data: { input, ...(channel !== undefined && { channel }) } };
}

interface Opening extends Partial<Pick<Planned, "isAnnounced">> {
  readonly instructionsHash: string;
  readonly fromCache: boolean;
  readonly sessionId?: SessionId | null;
  readonly leafId: string | null;
  readonly history: Transcript;
  readonly events?: TurnPlan["events"];
  readonly handled?: TurnPlan["handled"];
}

/** Emits the events of the start of an invocation. An input that an extension has handled starts no agent. */
function emitOpening(open: ActiveStep, opening: Opening): void {
  const { instructionsHash, fromCache, leafId, history, isAnnounced = false } = opening;
  if (!isAnnounced) open.emit(inputEvent(open.runner));
  for (const draft of opening.events ?? none) open.emitFromCode(draft);
  if (opening.handled !== undefined) return;
  open.emit({ type: "before_agent_start", data: { instructionsHash, fromCache } });
  const sessionId = opening.sessionId ?? open.runner.facts.sessionId;
  open.emit({ type: "context", data: { sessionId, leafId, messages: history.length } });
}

function thaw(runner: TaskRunner, record: TurnRecord, history: Transcript): Turn {
  const { maxToolCallsPerTurn = Infinity, model, thinkingLevel } = record;
  runner.maxToolCallsPerTurn = maxToolCallsPerTurn;
  runner.sessionModel = model && requireModel(runner, model);
  runner.thinkingLevel = thinkingLevel;
  runner.turn = { record, history };
  return new TakenTurn(runner, record, history);
}

/** Returns the model that the session sets. Throws before anything is paid if no provider is known for it. */
function requireModel({ worker, agent, agentId, facts }: TaskRunner, reference: ModelReference): Model {
  const model = resolveModel(worker, agent, reference);
  if (model !== undefined) return model;
  const name = `${reference.provider}/${reference.modelId}`;
  throw new Fault(
    "model_not_found",
    `session ${facts.sessionId} of ${agentId} names the model ${name}, which this runtime does not know: set another one with sessions.setModel(), or pass resolveModel to openRuntime()`,
    { details: { model: name, sessionId: facts.sessionId } },
  );
}

/** Whether the turn belongs to this task; its holder started an invocation there. */
export function isTurnOf(runner: TaskRunner, turn: unknown): boolean {
  return TakenTurn.isOf(runner, turn);
}

class TakenTurn implements Turn {
  readonly at: number;
  readonly input: JsonValue;
  readonly sessionId: SessionId | null;
  readonly leafId: string | null;
  readonly history: Transcript;
  readonly instructions: string;
  readonly instructionsHash: string;
  readonly tools: readonly ToolSpec[];
  readonly earlier: readonly ChatMessage[];
  readonly carried: JsonValue;
  readonly resumeCount: number;
  readonly isTransformed: boolean;
  readonly isSteered: boolean;
  readonly handled: HandledInput | null;
  readonly role: string;
  readonly model: ModelReference | null;
  readonly thinkingLevel: ThinkingLevel | null;
  readonly contextWindow: number | null;
  readonly #runner: TaskRunner;

  constructor(runner: TaskRunner, record: TurnRecord, history: Transcript) {
    this.at = record.at;
    this.input = record.input;
    // A task that shares the prompt of another one reads that task's session and writes to none.
    this.sessionId = record.role === undefined ? record.sessionId : null;
    this.leafId = record.role === undefined ? record.leafId : null;
    this.role = record.role ?? "main";
    this.history = history;
    this.instructions = contentOf(runner, record.instructions) as string;
    this.instructionsHash = record.instructions;
    this.tools = contentOf(runner, record.tools) as unknown as readonly ToolSpec[];
    this.earlier =
      record.earlier === undefined
        ? none
        : (contentOf(runner, record.earlier) as unknown as readonly ChatMessage[]);
    this.carried = record.carried ?? null;
    this.resumeCount = runner.task.resumed;
    this.isTransformed = record.isTransformed === true;
    this.isSteered = record.isSteered === true;
    this.handled = record.handled ?? null;
    this.model = record.model ?? null;
    this.thinkingLevel = record.thinkingLevel ?? null;
    this.contextWindow = runner.modelFor("main")?.contextWindow ?? null;
    this.#runner = runner;
  }

  static isOf(runner: TaskRunner, turn: unknown): boolean {
    return typeof turn === "object" && turn !== null && #runner in turn && turn.#runner === runner;
  }
}

/**
 * Rebuilds the history that the turn saw. Entries never change, and later ones come after its leaf. `contents` holds
 * what no record of the run holds yet.
 */
async function rebuild(
  runner: TaskRunner,
  record: TurnRecord,
  contents: TurnRecord["contents"] = {},
): Promise<Transcript> {
  const messages = (hash: string): readonly ChatMessage[] =>
    (contents[hash] ?? contentOf(runner, hash)) as unknown as readonly ChatMessage[];
  const { history, said = none } = record;
  const before = history === undefined ? await readPath(runner, record) : messages(history);
  return historyOf(said.length === 0 ? before : [...before, ...said.flatMap(messages)]);
}

/** The messages of the session path to the leaf of a turn. */
async function readPath(
  runner: TaskRunner,
  { sessionId, leafId }: TurnRecord,
): Promise<readonly ChatMessage[]> {
  if (leafId === null || sessionId === null) return none;
  const path = await runner.worker.store.sessions.readPath(sessionId, { leafId, from: "compaction" });
  if (path !== undefined) return contextMessages(path.entries);
  throw new Fault(
    "not_found",
    `the history of run ${runner.facts.runId} cannot be rebuilt: entry ${leafId} of session ${sessionId} no longer exists`,
  );
}

/**
 * Reads the part of the session path that the model sees, including entries of other tasks of this run that may not be
 * stored yet.
 */
function readHistory(runner: TaskRunner, sessionId: SessionId | null): MaybePromise<SessionPath> {
  if (sessionId === null) return emptyPath;
  // N2: in the run's session only roots continue from the leaf; a child's own session contains only children.
  const ofChild = runner.task.record.parentId !== null;
  const read = (): MaybePromise<SessionPath> =>
    andThen(
      runner.worker.store.sessions.readPath(sessionId, { ofChild, from: "compaction" }),
      (path) => path ?? emptyPath,
    );
  const flushing = ofChild ? runner.log.flush() : undefined;
  return flushing === undefined ? read() : flushing.then(read);
}

const emptyPath: SessionPath = { leafId: null, entries: none };

/**
 * The session of a task's history. A root uses the run's session. A child has a history only if it is kept, in its own
 * session per parent, role, user and tenant.
 */
function historySession({ task, host, facts, agentId, worker }: TaskRunner): SessionId | null {
  const { parentId, supervision, role, userId } = task.record;
  if (parentId === null) return facts.sessionId;
  if (supervision.retention !== HistoryRetention.PERMANENT) return null;
  const place = role === undefined ? [agentId] : [supervision.parentId, role];
  const whose = worker.hash(JSON.stringify([place, host.tenantId, userId]));
  return sessionWithin(facts.sessionId, whose.slice(0, digitsOfWorker));
}

/** Number of digits of a hash in a worker's session id, enough to make collisions practically impossible. */
const digitsOfWorker = 22;

function isErasedAtEnd({ task }: TaskRunner): boolean {
  return task.record.supervision.retention === HistoryRetention.NONE;
}

function contentOf({ state, facts }: TaskRunner, name: string): JsonValue {
  const content = state.contents.find(name);
  if (content === undefined)
    throw new Fault("store_corrupt", `the content ${name} of ${facts.runId} is missing from its records`);
  return content;
}
