import {
  type AgentId,
  type ApprovalDecision,
  type Clock,
  type Delta,
  type Event,
  type EditedResult,
  type EventOptions,
  Fault,
  type ForkOptions,
  type Lifetime,
  type Hash,
  type IdSource,
  type InputOptions,
  type InputQueue,
  type JsonValue,
  type MailBody,
  type PendingApproval,
  type Priority,
  type QueuedInput,
  type ReceivedInput,
  type Query,
  type RecordedRequest,
  type RunHandle,
  type RunId,
  type RunRecord,
  type RunResult,
  type RunSnapshot,
  type Signal,
  type SignalOptions,
  type RunScore,
  type RunSummary,
  type ScoreOptions,
  type StoredScore,
  type TailOptions,
  type TenantScope,
  type ToolResultOptions,
  type TopUp,
  type TopUpOptions,
  type UnknownPrice,
  type Update,
  type UpdateOptions,
  type WithdrawOptions,
  assertJson,
  changedTextKind,
  describeValue,
  inputTable,
  jsonText,
  nameListKind,
  parseTaskId,
  rootTaskId as root,
  readTopUp,
  requireMessage,
  signalTable,
  withdrawTable,
  is,
  optionTable,
  type OptionKinds,
  type SchemaCheck,
} from "../../kernel/index.ts";
import { topUpLeft, topUpAnswer, countTopUp } from "./limited-top-ups.ts";
import type { RunStore } from "./run-store.ts";
import { findClientCall } from "./client-call.ts";
import { answerId, checkDecision, commandNames, valueIn } from "./run-command.ts";
import { isReceived, readInput, readQueue, withdrawInput } from "./received-input.ts";
import { readRequest } from "./recorded-request.ts";
import { checkForkInput, forkBudget, replacedInput, type ForkInput } from "./fork-input.ts";
import type { WantedFork } from "./fork-changes.ts";
import { forkRun } from "./fork-run.ts";
import { isRunResumed, isStoppedWork, refuseForkOfCall, refuseIfFinal } from "./resume-check.ts";
import { readPendingApprovals, untilPersonIsNeeded } from "./person-wait.ts";
import { endedResult, type EndEvents } from "./ended-result.ts";
import { storedEvents, watchedLife, yieldingSlot, type EventStream } from "./event-readers.ts";
import { StoredRun } from "./stored-run.ts";
import { readPublished, sendUpdate } from "./run-messages.ts";
import { putScore } from "./run-scores.ts";
import { refuseIfResent } from "./unsent-input.ts";
import { currentTask } from "../process/async-context.ts";
import { knownModel } from "../process/session-model.ts";
import { sha256 } from "../process/sha256.ts";
import { SizeLimit } from "../process/size-limit.ts";
import { anonymousUser, type WorkerContext } from "../process/worker-context.ts";
import type { RuntimeLifetime } from "../process/runtime-lifetime.ts";
import type { AwaitedRuns } from "../process/awaited-runs.ts";
import { mailOfInput, mailOfSignal, signalWait } from "../journal/wait-names.ts";

export interface HandleOptions {
  readonly store: RunStore;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly record: RunRecord;
  /**
   * Resolves when the observers of a run in this process have processed its events. `undefined` if the run has no observers.
   */
  readonly observed?: (runId: RunId) => Promise<void> | undefined;
  /** Protects a run from collection while its result is awaited. */
  readonly awaited?: AwaitedRuns;
  /** B5: records that a person reads the run and can answer its questions. */
  readonly attendance?: WorkerContext["attendance"];
  /** Warns while a caller waits for a run that no worker can execute. */
  readonly unhosted?: UnhostedWatch;
  /**
   * Hash function of the runtime. It is needed to find the run that sent the input of this run again. If absent, no such run
   * is searched for.
   */
  readonly hash?: Hash;
  /** Lifetime of the runtime that made the handle. If absent, the handle has no end. */
  readonly life?: RuntimeLifetime;
  /** B4: setting of the runtime with which the snapshot is computed. Default: `refuse`. */
  readonly unknownPrice?: UnknownPrice;
  /** Size limit of the values in commands. Default: 16 MiB. */
  readonly sizes?: SizeLimit;
  /** Checks the arguments that a person edits. If absent, only the tool itself checks them. */
  readonly checkSchema?: SchemaCheck;
  /** User in whose name commands are sent, for the audit log. Default: `user`. */
  readonly by?: string | undefined;
  /** S6: the scope of the view that made the handle. */
  readonly scope?: TenantScope;
  /** The agents and the models of the runtime, with which the model of a fork is found. If absent, no model is known. */
  readonly models?: Pick<WorkerContext, "agents" | "resolveModel">;
  /** Converts the result of the run. If absent, `result` returns it unchanged. */
  readonly convert?: Convert<unknown>;
}

type Convert<Converted> = (result: RunResult<JsonValue>) => Converted | Promise<Converted>;

/** Watches runs for which callers in this process wait and that this process cannot execute. */
interface UnhostedWatch {
  /** Watches the run until the returned function is called. Returns `undefined` if this process can execute the run. */
  watch(run: RunRecord): (() => void) | undefined;
  /** L18: ends the run if it was cancelled before a worker has adopted it. */
  cancelled(run: RunRecord): Promise<void>;
}

const eventOptionTable = optionTable({
  fromSeq: is.integer({ from: 0, default: 0, hint: "it is the seq of the first event to read" }),
  types: is.list(),
  signal: is.any,
  life: is.any,
  follow: is.boolean({ default: true }),
} satisfies OptionKinds<EventOptions>);
const topUpTable = optionTable({ limited: is.boolean() } satisfies OptionKinds<TopUpOptions>);
const forkOptionTable = optionTable({
  at: is.number({}),
  keepsCommit: is.boolean(),
  input: is.any,
  replacesInput: is.boolean(),
  model: is.text(),
  instructions: changedTextKind,
  tools: nameListKind,
  toolResults: is.list({
    of: is.options(
      optionTable({
        callId: is.text({ required: true, empty: false }),
        output: is.any,
        isError: is.boolean(),
      } satisfies OptionKinds<EditedResult>),
    ),
  }),
  budget: is.checkedBy(forkBudget),
  taskId: is.text(),
  runId: is.text(),
} satisfies OptionKinds<ForkOptions>);
const toolResultTable = optionTable({ isError: is.boolean() } satisfies OptionKinds<ToolResultOptions>);
const defaultSizes = new SizeLimit();
const nothingSaid = (): readonly Event[] => [];
const endTypes = ["task_end", "run_end", "usage_corrected"] as const;
/**
 * Number of events at the end of an ended run that are read first. They nearly always include the `task_end` of the root
 * task.
 */
const trailingEvents = 16;

/**
 * A handle that reads and controls a run through the store. It works in every process that opens the store, not only in the
 * owner's.
 */
export class StoredRunHandle<Result = RunResult<JsonValue>> implements RunHandle<Result> {
  readonly runId: RunId;
  readonly sessionId: RunHandle<Result>["sessionId"];
  readonly agentId: AgentId;
  readonly #options: HandleOptions;

  constructor(options: HandleOptions) {
    this.#options = options;
    this.runId = options.record.runId;
    // The type of the result says whether the run is a workflow.
    const session = options.record.kind === "workflow" ? undefined : options.record.sessionId;
    this.sessionId = session as RunHandle<Result>["sessionId"];
    this.agentId = options.record.agentId;
  }

  get #stored(): StoredRun {
    const { store, unknownPrice } = this.#options;
    return new StoredRun(this.runId, store, unknownPrice);
  }

  /** Returns the stored run, for a command. Throws `closed` if the runtime was closed. */
  #live(): StoredRun {
    this.#options.life?.check();
    return this.#stored;
  }

  as(by: string): RunHandle<Result> {
    if (by === "")
      throw new Fault(
        "invalid_argument",
        "the name passed to as() is empty: pass the name of the user who sends the commands",
      );
    const { userId = by } = this.#options.scope ?? {};
    if (userId !== by)
      throw new Fault(
        "invalid_argument",
        `invalid name ${describeValue(by)} of as(): this handle comes from the view of user ${describeValue(userId)} and sends commands only as that user; use a handle of the runtime for another name`,
      );
    return new StoredRunHandle({ ...this.#options, by });
  }

  events(options: EventOptions = {}): AsyncIterable<Event | Delta> {
    const { life, store } = this.#options;
    life?.check();
    const { fromSeq, follow } = eventOptionTable.read("events()", options);
    if (!follow) return storedEvents(store.events.read(this.runId, fromSeq), options);
    return yieldingSlot(this.#tail(options, this.#watchedLife()));
  }

  result(): Promise<Result> {
    return this.#awaited(() => this.#result());
  }

  withResult<Converted>(convert: (result: Result) => Converted | Promise<Converted>): RunHandle<Converted> {
    const before = this.#options.convert as Convert<Result> | undefined;
    const chained: Convert<Converted> =
      before === undefined
        ? (convert as unknown as Convert<Converted>)
        : async (result) => convert(await before(result));
    return new StoredRunHandle<Converted>({ ...this.#options, convert: chained });
  }

  async pendingApprovals(): Promise<readonly PendingApproval[]> {
    const { life, store } = this.#options;
    life?.check();
    return readPendingApprovals({ runId: this.runId, store });
  }

  untilPersonIsNeeded(): Promise<readonly PendingApproval[]> {
    return this.#awaited(async () => {
      this.#options.life?.check();
      const leave = this.#options.attendance?.read(this.runId);
      return untilPersonIsNeeded({
        runId: this.runId,
        store: this.#options.store,
        tail: (options) => this.#tail(options),
        isResumed: (next) => this.#isResumed(next),
      }).finally(leave);
    });
  }

  /**
   * Waits on behalf of a caller. During the wait, retention does not delete the run, and a waiting task of this process gives
   * back its slot.
   */
  #awaited<Value>(wait: () => Promise<Value>): Promise<Value> {
    const { awaited, unhosted, record } = this.#options;
    const unwatch = unhosted?.watch(record);
    const own = unwatch === undefined ? wait() : wait().finally(unwatch);
    const result = awaited === undefined ? own : awaited.during(this.runId, own);
    return currentTask()?.yieldSlotUnlessCancelled(result) ?? result;
  }

  /**
   * Returns the lifetime of a reader. While a caller reads the events, a person counts as reachable, and the run is watched
   * if this process cannot execute it.
   */
  #watchedLife(): Lifetime {
    const { life, unhosted, attendance, record } = this.#options;
    return watchedLife(life, () => {
      const unwatch = unhosted?.watch(record);
      const leave = attendance?.read(this.runId);
      return () => {
        unwatch?.();
        leave?.();
      };
    });
  }

  #tail(options: TailOptions, life: Lifetime | undefined = this.#options.life): EventStream {
    return this.#options.store.events.tail(this.runId, life === undefined ? options : { ...options, life });
  }

  /** Follows the run until it has ended and no command is left that may resume it. */
  async #result(): Promise<Result> {
    this.#options.life?.check();
    const found: EndEvents = {};
    const last = await this.#options.store.events.lastSeq(this.runId);
    let from = Math.max(0, last - trailingEvents);
    let next = from;
    for (;;) {
      for await (const event of this.#tail({ fromSeq: next, types: endTypes })) {
        if ("seq" in event) next = event.seq + 1;
        if (event.type === "run_end") found.runEnd = event;
        if (event.type === "usage_corrected") found.corrected = event;
        if (event.type === "task_end" && event.taskId === root) found.rootEnd = event;
      }
      // A completed run cannot be resumed.
      if (found.runEnd?.data.status !== "completed" && (await this.#isResumed(next))) continue;
      if (found.rootEnd !== undefined || from === 0) break;
      // The root task ended before the trailing events. Read the log from its start.
      from = next = 0;
    }
    const observed = this.#options.observed?.(this.runId);
    if (observed !== undefined) await observed;
    const { record, store } = this.#options;
    // A workflow has no conversation, however long its log is.
    const kept = record.kind === "workflow" ? nothingSaid : await store.events.keep(this.runId);
    const result = endedResult(record, found, kept);
    const { convert } = this.#options;
    return (convert === undefined ? result : await convert(result)) as Result;
  }

  async summary(): Promise<RunSummary> {
    this.#options.life?.check();
    return this.#stored.summary();
  }

  async snapshot(): Promise<RunSnapshot & Pick<RunSummary, "status" | "waitsFor">> {
    this.#options.life?.check();
    const { headcount, ledger } = await this.#stored.readState();
    const { status, waitsFor } = await this.#stored.summary();
    return { status, waitsFor, headcount, ledger };
  }

  async modelRequest(seq: number): Promise<RecordedRequest> {
    const { life, store, hash = sha256 } = this.#options;
    life?.check();
    return readRequest(store, hash, { runId: this.runId, seq });
  }

  async cancel(reason = "cancelled", taskId: string = root): Promise<void> {
    const target = parseTaskId(taskId);
    if (target !== root && (await this.#live().hasEnded(target))) return;
    if (!(await this.#live().isOver())) {
      await this.#send({ type: "cancel", taskId: target, reason });
      if (target === root) await this.#options.unhosted?.cancelled(this.#options.record);
    } else if (target === root && (await isStoppedWork(this.#options.record, this.#stored)))
      await this.#send({ type: "cancel", taskId: target, reason, reopens: true });
  }

  async pause(): Promise<void> {
    if (!(await this.#live().isOver())) await this.#send({ type: "pause" });
  }

  async resume(): Promise<void> {
    await this.#refuseIfResent();
    await refuseIfFinal(this.#options.record, this.#live());
    await this.#send({ type: "resume" });
  }

  async topUp(add: Partial<TopUp>, taskId: string = root, options: TopUpOptions = {}): Promise<void> {
    // Checked here, because the owner that reads the mailbox could not report an error to the caller.
    if (Object.values(readTopUp(add)).every((amount) => amount === 0))
      throw new Fault(
        "invalid_argument",
        "invalid topUp(): expected an amount above 0 for maxTokens, maxCostUsd, maxTurns or deadlineMs; use run.resume() to continue without a higher budget",
      );
    const { limited = false } = topUpTable.read("topUp()", options);
    await this.#refuseIfResent();
    await refuseIfFinal(this.#options.record, this.#live());
    // If the process dies after this, the amount counts as used although the budget was not raised.
    if (limited) await countTopUp(this.#options.store, this.#options.record, add);
    await this.#send({ type: "top_up", taskId: parseTaskId(taskId), add });
  }

  async topUpLeft(): Promise<TopUp> {
    this.#options.life?.check();
    return topUpLeft(this.#options.store, this.#options.record);
  }

  async #refuseIfResent(): Promise<void> {
    this.#options.life?.check();
    const { store, hash } = this.#options;
    if (hash !== undefined) await refuseIfResent(store, this.runId, hash);
  }

  async reprioritize(taskId: string, priority: Priority): Promise<void> {
    await this.#send({ type: "reprioritize", taskId: parseTaskId(taskId), priority });
  }

  steer(input: JsonValue, target: string | InputOptions = {}): Promise<string> {
    return this.#sendInput("steer", input, target);
  }

  followUp(input: JsonValue, target: string | InputOptions = {}): Promise<string> {
    return this.#sendInput("follow_up", input, target);
  }

  async #sendInput(type: InputQueue, input: JsonValue, target: string | InputOptions): Promise<string> {
    const call = type === "steer" ? "steer()" : "followUp()";
    const named = typeof target === "string" ? { taskId: target } : inputTable.read(call, target);
    const { taskId = root, id } = named;
    const task = parseTaskId(taskId);
    const { store, ids } = this.#options;
    const inputId = id === undefined ? ids.next() : mailOfInput(id);
    const given = { kind: type, input, taskId: task };
    if (task === root) this.#refuseWorkflow(call);
    // A child that has received the input may have ended since.
    else if (id === undefined || !(await isReceived(store, this.runId, inputId, given)))
      await this.#live().refuseUnlessTakesInput(task);
    const body = { type, input, ...(task !== root && { taskId: task }) };
    if (!(await this.#send(body, { id: inputId }))) await isReceived(store, this.runId, inputId, given);
    return inputId;
  }

  withdrawInput(inputId: string, options: WithdrawOptions = {}): Promise<boolean> {
    const { signal } = withdrawTable.read("withdrawInput()", options);
    const { store } = this.#options;
    const send = async (body: MailBody): Promise<string> => {
      const id = this.#options.ids.next();
      await this.#send(body, { id });
      return id;
    };
    return this.#awaited(() =>
      withdrawInput({ runId: this.runId, store, life: this.#options.life, send }, inputId, signal),
    );
  }

  queuedInput(): Promise<readonly QueuedInput[]> {
    this.#options.life?.check();
    return readQueue(this.#options.store, this.runId);
  }

  /**
   * Throws for input that is sent to a workflow, which has no conversation. Input that no code reads would start another run
   * when the workflow ends (S5).
   */
  #refuseWorkflow(call: string): void {
    const { kind, agentId } = this.#options.record;
    if (kind !== "workflow") return;
    throw new Fault(
      "invalid_argument",
      `invalid call of ${call} of ${this.runId}: it is a run of workflow ${agentId}, which takes no input while it runs; use signal()`,
    );
  }

  receivedInput(): Promise<readonly ReceivedInput[]> {
    return readInput(this.#options.store, this.runId);
  }

  async signal(
    signal: string | Signal<never, unknown>,
    given: unknown = null,
    options: string | SignalOptions = {},
  ): Promise<void> {
    const { taskId = root, id } = typeof options === "string" ? { taskId: options } : options;
    signalTable.read("signal()", typeof options === "string" ? {} : options);
    requireMessage("signal", "signal()", signal);
    const value = given as JsonValue;
    const name = typeof signal === "string" ? signal : signal.name;
    // The value is stored as it was sent: the wait applies the schema, also to a value that was sent by name.
    if (typeof signal !== "string") await signal.read(value);
    const target = parseTaskId(taskId);
    await this.#live().refuseIfOver(`signal ${JSON.stringify(name)}`);
    // The root lives as long as its run, so that the usual signal does not read the journal.
    if (target !== root) await this.#stored.liveTask(target);
    const body = { type: "resolve", taskId: target, wait: signalWait(name), value } as const;
    await this.#send(body, id === undefined ? undefined : { id: mailOfSignal(this.runId, target, name, id) });
  }

  update(
    update: string | Update<never, unknown, never, unknown>,
    given: unknown = null,
    options: UpdateOptions = {},
  ): Promise<never> {
    const { store, ids } = this.#options;
    const target = { runId: this.runId, store, live: () => this.#live(), newId: () => ids.next() };
    return this.#awaited(() =>
      sendUpdate(
        {
          ...target,
          put: (body, id) => this.#send(body, { id }),
          tail: (from) => this.#tail(from),
          isResumed: (next) => this.#isResumed(next),
        },
        update,
        given as JsonValue,
        options,
      ),
    ) as Promise<never>;
  }

  async read(query: string | Query<never, unknown>): Promise<never> {
    this.#options.life?.check();
    return (await readPublished(this.#options.store, this.runId, query)) as never;
  }

  async approve(approvalId: string, given: ApprovalDecision, options: TopUpOptions = {}): Promise<void> {
    checkDecision(approvalId, given);
    const { limited = true } = topUpTable.read("approve()", options);
    await this.#live().refuseIfOver(`approval ${approvalId}`);
    const { seq, data } = await this.#stored.openQuestion(approvalId, given, this.#options.checkSchema);
    const { store, record } = this.#options;
    const decision = data.kind === "top_up" ? await topUpAnswer(store, record, data, given, limited) : given;
    const id = answerId(approvalId, seq);
    if (await this.#send({ type: "approval", approvalId, decision }, { id, by: decision.by })) return;
    throw await this.#stored.answeredBefore(approvalId, id);
  }

  async toolResult(callId: string, value: JsonValue, options: ToolResultOptions = {}): Promise<void> {
    toolResultTable.read("toolResult()", options);
    assertJson(value, `the result of call ${callId}`);
    await this.#live().refuseIfOver(`result of call ${callId}`);
    const { store, sizes = defaultSizes } = this.#options;
    sizes.assert(value, `the result of call ${callId}`);
    const { approvalId, seq } = await findClientCall(store, this.runId, callId);
    const decision: ApprovalDecision =
      options.isError === true
        ? { decision: "denied", reason: jsonText(value) }
        : { decision: "approved", input: value };
    await this.#send({ type: "approval", approvalId, decision }, { id: answerId(approvalId, seq) });
  }

  async fork(options: ForkOptions): Promise<RunHandle<Result>> {
    const {
      at,
      runId,
      keepsCommit,
      input,
      replacesInput = false,
      ...changes
    } = forkOptionTable.read("fork()", options);
    const { store, clock, ids, record, by = anonymousUser, life, hash = sha256 } = this.#options;
    const { sizes = defaultSizes, models } = this.#options;
    life?.check();
    refuseForkOfCall(record);
    const agent = models?.agents.get(this.agentId);
    const message = replacesInput
      ? await replacedInput(agent, input)
      : input === undefined
        ? undefined
        : checkForkInput(input);
    if (message !== undefined) {
      assertJson(message, `the input of a fork of ${this.runId}`);
      sizes.assertInput(message, `the input of a fork of ${this.runId}`);
    }
    const { taskId, model, ...others } = changes;
    assertJson(others, `the changes of a fork of ${this.runId}`);
    sizes.assert(others, `the changes of a fork of ${this.runId}`);
    const fork = await forkRun({
      store,
      clock,
      ids,
      hash,
      origin: record,
      at,
      by,
      wanted: {
        ...(others as Omit<WantedFork, "taskId" | "model">),
        taskId: taskId === undefined ? root : parseTaskId(taskId),
        ...(model !== undefined && { model: knownModel(models, agent, model, "fork()") }),
      },
      ...(keepsCommit !== undefined && { keepsCommit }),
      ...(runId !== undefined && { runId }),
      ...(message !== undefined &&
        (replacesInput ? { replacement: message } : { input: message as ForkInput })),
    });
    return new StoredRunHandle({ ...this.#options, record: fork });
  }

  async score(options: ScoreOptions): Promise<RunScore> {
    const { store, clock, life, scope, by = anonymousUser } = this.#options;
    life?.check();
    return putScore({ scores: store.scores, runId: this.runId, by, scope, at: clock.now() }, options);
  }

  async scores(): Promise<readonly StoredScore[]> {
    this.#options.life?.check();
    return this.#options.store.scores.list(this.runId);
  }

  #isResumed(next: number): boolean | Promise<boolean> {
    const { store, life } = this.#options;
    return isRunResumed({ runId: this.runId, store, life }, next);
  }

  /** Sends a command. Returns `false` if a command with this id was sent before. Default: a new id. */
  async #send(body: MailBody, { id, by }: { readonly id?: string; readonly by?: string | undefined } = {}) {
    const { store, clock, ids, life, sizes = defaultSizes } = this.#options;
    life?.check();
    // The name of the handle takes precedence over a name in the command.
    const from = this.#options.by ?? by ?? anonymousUser;
    const content: unknown = body;
    const where = `the ${commandNames[body.type]} for ${this.runId}`;
    assertJson(content, where);
    sizes.assertInput(valueIn(body), where);
    if (body.type === "resolve") sizes.assert(body.wait, `the name of ${where}`);
    return store.mailbox.put({ id: id ?? ids.next(), runId: this.runId, from, at: clock.now(), body });
  }
}
