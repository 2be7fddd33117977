import {
  contextMessages,
  HistoryRetention,
  sealJson,
  sessionSettings,
  Transcript,
  type EmittableEvent,
  type EventDraft,
  type Hash,
  type InheritedRequest,
  type JsonValue,
  type RunContext,
  type SessionId,
  type SessionPath,
  type SessionSettings,
  type StepAddress,
  type Turn,
  type TurnOpening,
  type TurnPlan,
} from "../../kernel/index.ts";
import type { TurnRecord } from "../journal/shared-contents.ts";
import { takesInput } from "../journal/task-record.ts";
import { queueWait } from "../journal/wait-names.ts";
import type { ActiveStep } from "../task/active-step.ts";
import type { NestedContext } from "../task/nested-scope.ts";
import type { StepExecutor } from "../task/step-executor.ts";
import type { TaskRunner } from "../task/task-runner.ts";
import { requireFunction, requirePlan } from "./context-options.ts";
import { requestOfRun } from "./closed-request.ts";
import { requireModel, thawTurn } from "./taken-turn.ts";
import { historySession, readHistory, rebuildHistory, transcriptOf } from "./turn-history.ts";

/**
 * The digest of a turn. It is stored with the record and refers to no other object, because a memory store would
 * otherwise keep the whole task in memory.
 */
class SeenHistory {
  history = Transcript.empty;

  digest(hash: Hash): string {
    return this.history.digest(hash);
  }
}

/**
 * Runs `plan` once and records its result. J4: the record's digest covers the history, so that the replay notices
 * if the history can no longer be rebuilt from the session.
 */
export function takeTurn(
  steps: StepExecutor,
  plan: ScopedPlan,
  options: TurnOptions | undefined,
  inside: (address: StepAddress) => NestedContext,
): Promise<Turn> {
  requireFunction("ctx.turn()", "plan", plan, "ctx.turn(() => ({ input, instructions, tools }))");
  if (options?.withSteps === true) return takeTurnWithSteps(steps, plan, inside);
  return startTurn(steps, plan as Plan, undefined);
}

/** Starts a turn like `takeTurn`, with a plan that takes steps inside this step. `inside` creates their scope. */
function takeTurnWithSteps(
  steps: StepExecutor,
  plan: ScopedPlan,
  inside: (address: StepAddress) => NestedContext,
): Promise<Turn> {
  const planInside = async (opening: TurnOpening, { address }: ActiveStep): Promise<TurnPlan> => {
    const ctx = inside(address);
    const { events = none, ...planned } = { ...(await plan(opening, ctx)) };
    return { ...planned, events: [...(ctx.takeEvents() as readonly EmittableEvent[]), ...events] };
  };
  return startTurn(steps, planInside, inputEvent(steps.runner));
}

/** Starts the step of a turn. `start` is the event `input`, if it is written before `plan` is called. */
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
      (record) => thawTurn(runner, record, seen.history),
    );
  if (known?.kind !== "turn" || known.outcome.kind !== "ok") return take();
  return seeAgain(runner, known.outcome.value as unknown as TurnRecord, seen).then(take);
}

async function seeAgain(runner: TaskRunner, record: TurnRecord, seen: SeenHistory): Promise<void> {
  seen.history = await rebuildHistory(runner, record);
}

interface Planned {
  readonly plan: TurnPlan;
  readonly sessionId: SessionId | null;
  readonly leafId: string | null;
  readonly history: Transcript;
  readonly settings: SessionSettings;
  /** Whether the event `input` is already in the log. */
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

/** Creates the turn. */
async function makeTurn(
  open: ActiveStep,
  plan: StepPlan,
  seen: SeenHistory,
  isAnnounced: boolean,
): Promise<() => TurnRecord> {
  const { inherits } = open.runner.task.record;
  if (inherits !== undefined) return inheritTurn(open, inherits, seen);
  const sessionId = historySession(open.runner);
  return planTurn(open, plan, { seen, sessionId, isAnnounced }, await readHistory(open.runner, sessionId));
}

interface TurnPlace extends Pick<Planned, "sessionId" | "isAnnounced"> {
  readonly seen: SeenHistory;
}

/** Returns the turn of a task that shares the prompt of another task. Its plan is the request of that task. */
async function inheritTurn(
  open: ActiveStep,
  inherits: InheritedRequest,
  seen: SeenHistory,
): Promise<() => TurnRecord> {
  const { runner } = open;
  const shared =
    "runId" in inherits ? await runner.log.reading(requestOfRun(runner.worker, inherits)) : inherits;
  const { contents, ...request } = shared;
  const { instructions, leafId } = request;
  const isHeld = "contents" in inherits;
  const record: TurnRecord = Object.freeze({
    ...request,
    at: runner.worker.clock.now(),
    input: runner.task.input,
    ...(contents !== undefined && !isHeld && { contents: Object.freeze(contents) }),
  });
  seen.history = await rebuildHistory(runner, record, contents);
  return () => {
    emitOpening(open, { instructionsHash: instructions, fromCache: true, leafId, history: seen.history });
    return record;
  };
}

async function planTurn(
  open: ActiveStep,
  plan: StepPlan,
  { seen, sessionId, isAnnounced }: TurnPlace,
  { leafId, entries: path }: SessionPath,
): Promise<() => TurnRecord> {
  const { input, record } = open.runner.task;
  const chosen = record.changes?.model;
  const stored = sessionSettings(path);
  const settings = chosen === undefined ? stored : { ...stored, model: chosen };
  if (settings.model !== null) requireModel(open.runner, settings.model);
  const planned = await plan({ input, sessionId, path, channel: record.channel ?? null }, open);
  requirePlan(planned);
  const history = transcriptOf(planned.history ?? contextMessages(path));
  seen.history = history;
  return () => freeze(open, { plan: planned, sessionId, leafId, history, settings, isAnnounced });
}

const none: readonly never[] = [];

/**
 * Creates the record of the turn synchronously when it is written, so that it can refer to contents of earlier
 * records instead of storing them again. J1, J10: the record is checked and frozen.
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

function hasSteering({ task: { record }, taskId, state }: TaskRunner): boolean {
  return takesInput(record) && state.resolutions.first(taskId, queueWait("steer")) !== undefined;
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

function isErasedAtEnd({ task }: TaskRunner): boolean {
  return task.record.supervision.retention === HistoryRetention.NONE;
}
