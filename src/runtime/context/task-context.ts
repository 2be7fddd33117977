import {
  assertMadeJson,
  type AgentId,
  type ApprovalDecision,
  type AskOutcome,
  type AttemptContext,
  type AttemptOptions,
  type Branch,
  type BranchResults,
  type CompensationContext,
  type CompensationOptions,
  type ChildRequest,
  type CompactedTranscript,
  type CompactionStep,
  type Duration,
  type Event,
  type EventDraft,
  type ExtensionPort,
  Fault,
  type JsonValue,
  type LlmReply,
  type LlmRequest,
  type MapOptions,
  type Message,
  type MeteredCall,
  type MeteredRequest,
  type MeteredResult,
  type ParallelOptions,
  type PersonQuestion,
  type PromiseOutcome,
  type ReceivedUpdate,
  type RunContext,
  type SessionCompactionOutcome,
  type SessionCompactionStep,
  type SignalOptions,
  type SettledItem,
  type SpawnOptions,
  type SpawnOutcome,
  type StartedRun,
  type StartRunOptions,
  type StepAddress,
  type StepContext,
  type StepOptions,
  type StepScope,
  type TaskHandle,
  type TaskOutcome,
  type TaskReport,
  type ToolCall,
  type ToolResult,
  type ToolsOptions,
  type TopicId,
  type Turn,
  type UpdateReply,
  type WaitForPromiseOptions,
  type WaitForSignalOptions,
  type WaitForUpdateOptions,
  type UncancellableOptions,
  assertEmittable,
  branchScope,
  messageNameKind,
  isStartedRun,
  readWait,
  sealMadeJson,
  signalTable,
} from "../../kernel/index.ts";
import {
  type DrainOptions,
  type WaitOptions,
  checkInstructions,
  checkParallel,
  checkResource,
  checkAcceptingWait,
  checkPatchName,
  checkTools,
  checkUncancellable,
  checkWaitOptions,
  readMap,
  requireBranches,
  requireFunction,
  requireHandle,
  requireHandles,
} from "./context-options.ts";
import { raceBranches, runBranches, runMap, type RaceResult } from "./branches.ts";
import { CallHistory } from "../tool/call-history.ts";
import { continueAsNew } from "./continue-as-new.ts";
import { compactTranscript } from "./compaction-step.ts";
import type { CallingScope } from "../tool/gate-context.ts";
import { ChildSteps } from "./child-steps.ts";
import { callModel, MessageStarts, ModelCall, requestProblem } from "../model/model-call.ts";
import { runMetered } from "../model/metered-call.ts";
import { runLiveAttempt } from "./live-attempt.ts";
import type { SentPrefix } from "../model/token-bound.ts";
import { drainInput, MessageSteps } from "./messages.ts";
import { registerUndo, runBranchStep, runShielded } from "./compensation.ts";
import { readObjectState, setObjectState } from "./object-steps.ts";
import { RunSteps } from "./run-steps.ts";
import { runStep } from "./step-context.ts";
import { StepExecutor } from "../task/step-executor.ts";
import type { Body } from "../task/step-body.ts";
import type { CancellationScope } from "../task/cancellation-scope.ts";
import type { TaskRunner } from "../task/task-runner.ts";
import { askPerson } from "../tool/approval.ts";
import { callTools, noteResults } from "../tool/tool-batch.ts";
import { callTool, ToolStep } from "../tool/tool-call.ts";
import { hasOtherRuns } from "./other-runs.ts";
import { noteReport } from "./task-report.ts";
import { compactSession } from "./session-compaction-step.ts";
import { isTurnOf } from "./taken-turn.ts";
import { TaskFacts, taskPort } from "./task-facts.ts";
import { takeTurn, type ScopedPlan, type TurnOptions } from "./turn-step.ts";
import { inboxDrain, itemBranch, journalScope, limitBranch, uncancellableIn } from "../journal/wait-names.ts";

function describeLimit(limit: Duration): string {
  return typeof limit === "number" ? `${limit} ms` : limit;
}

/** The `RunContext` of one scope: the task itself, a branch, or a tool's body. */
export class TaskContext extends TaskFacts implements RunContext {
  readonly #runner: TaskRunner;
  readonly #steps: StepExecutor;
  #outgoing: MessageSteps | undefined;
  #spawned: ChildSteps | undefined;
  #started: RunSteps | undefined;
  /** Address of the last model call, under which its tool calls have their addresses. */
  #lastLlm: StepAddress | undefined;
  #toolsCalled = 0;
  readonly #sent = new Map<string, SentPrefix>();
  readonly #starts: MessageStarts;
  /** The settled calls for the checks before a call. Empty if the agent has no checks (F1). */
  readonly #history: CallHistory;
  #calling: CallingScope | undefined;
  /**
   * Whether this scope is the body of a tool or a step, or belongs to a check. Calls in such a scope are not part of the
   * task's loop.
   */
  readonly #isBody: boolean;

  constructor(
    runner: TaskRunner,
    scope: StepScope | number,
    cancelScope: CancellationScope = runner.cancelScope,
    around?: CallHistory,
    isBody = false,
  ) {
    super(runner);
    this.#isBody = isBody;
    this.#history = new CallHistory(around);
    this.#runner = runner;
    this.#starts = new MessageStarts(runner);
    this.#steps = new StepExecutor(
      runner,
      typeof scope === "number" ? journalScope(scope) : scope,
      cancelScope,
    );
  }

  get #messages(): MessageSteps {
    return (this.#outgoing ??= new MessageSteps(this.#steps));
  }

  get #runs(): RunSteps {
    return (this.#started ??= new RunSteps(this.#steps));
  }

  get #children(): ChildSteps {
    return (this.#spawned ??= new ChildSteps(this.#steps));
  }

  get extensionPort(): ExtensionPort {
    return taskPort(this.#runner, this.signal);
  }

  get signal(): AbortSignal {
    return this.#steps.cancelScope.signal;
  }

  /** J10: stores a report, and throws at once if it is not JSON: at its end, the task could not receive the error. */
  report(report: TaskReport): void {
    noteReport(this.#runner, report);
  }

  /**
   * E4: emits the event with the next step of this scope. If that step is already recorded, the event is dropped, because an
   * earlier execution has emitted it.
   */
  emitEvent(draft: EventDraft, turn?: Turn): void {
    assertEmittable(draft, isTurnOf(this.#runner, turn));
    const where = `the data of event ${draft.type}`;
    sealMadeJson(draft.data, where);
    // The events of a turn contain the results of its calls, whose sizes were checked one by one.
    if (turn === undefined) this.#runner.worker.sizes.assert(draft.data, where);
    this.#steps.emit(draft);
  }

  takeEvents(): readonly EventDraft[] {
    return this.#steps.takeEvents();
  }

  check(): void {
    this.#steps.check();
  }

  turn(plan: ScopedPlan, options?: TurnOptions): Promise<Turn> {
    return takeTurn(this.#steps, plan, options, (address) => this.#inside(address, this.#steps.cancelScope));
  }

  llm(request: LlmRequest): Promise<LlmReply> {
    const problem = requestProblem(request);
    if (problem !== undefined) return Promise.reject(problem);
    const { role = "main" } = request;
    // For a recorded reply it is unknown how middleware changed its request.
    const { agent, thinkingLevel } = this.#runner;
    const model = this.#runner.modelFor(role);
    const isSet =
      thinkingLevel === undefined || request.thinkingLevel !== undefined || !this.#runner.isMain(role);
    const sent = isSet ? request : { ...request, thinkingLevel };
    const countedBy =
      agent.callPath?.model?.around === undefined && model?.choice === undefined ? model : undefined;
    const call = new ModelCall(this.#steps.next(), sent, role, model, this.#sent.get(role), countedBy);
    return this.#steps.run(call, callModel, this.#starts.get(role, model), this.#noteReply);
  }

  readonly #noteReply = (reply: LlmReply, { address, role, request, countedBy }: ModelCall): LlmReply => {
    this.#lastLlm = address;
    this.#toolsCalled = 0;
    this.#runner.stopReason = reply.stopReason;
    if (!this.#isBody)
      this.#runner.lastRequest = {
        request,
        role,
        answer: reply.message,
        address,
        turn: this.#runner.turn,
      };
    this.#runner.replies.set(reply.message, reply);
    // The reasoning is sent again with the next request, so it counts as input.
    const tokens = reply.usage.inputTokens + reply.usage.reasoningTokens;
    if (countedBy !== undefined) this.#sent.set(role, { request, tokens, by: countedBy });
    else this.#sent.delete(role);
    return reply;
  };

  metered<Value extends JsonValue>(
    request: MeteredRequest,
    body: (call: MeteredCall) => Promise<MeteredResult<Value>>,
  ): Promise<Value> {
    return runMetered(this.#steps, request, body);
  }

  async tool(call: ToolCall): Promise<ToolResult> {
    const [result] = await this.tools([call]);
    if (result === undefined) throw new Fault("internal", `tool ${call.toolName} returned no result`);
    return result;
  }

  tools(calls: readonly ToolCall[], options: ToolsOptions = {}): Promise<readonly ToolResult[]> {
    try {
      checkTools(calls, options);
      for (const { toolName, input } of calls) {
        assertMadeJson(input, `the arguments of tool ${toolName}`);
        this.#runner.worker.sizes.assert(input, `the arguments of tool ${toolName}`);
      }
    } catch (error) {
      return Promise.reject(Fault.from(error));
    }
    const scope = this.#lastLlm ?? this.#steps.next();
    const first = this.#lastLlm === undefined ? 0 : this.#toolsCalled;
    this.#toolsCalled = first + calls.length;
    // Calls that follow no model call are made by code, which has no turn.
    const limit = this.#lastLlm === undefined ? Infinity : this.#runner.maxToolCallsPerTurn;
    const [only] = calls;
    if (only === undefined || calls.length > 1)
      return this.#steps.exclusive("tools", () =>
        callTools(this.#from, { scope, first, limit, calls, options }),
      );
    const step = new ToolStep({ scope, position: first, limit }, only, this.#from, options);
    return this.#steps.run(step, callTool, step.start, this.#noteResult);
  }

  readonly #noteResult = (result: ToolResult, { call, options }: ToolStep): readonly ToolResult[] => {
    options.onResult?.(result, 0);
    return noteResults(this.#from, [call], [result]);
  };

  steering(options?: DrainOptions): Promise<readonly JsonValue[]> {
    return drainInput(this.#steps, "steer", options);
  }

  followUps(options?: DrainOptions): Promise<readonly JsonValue[]> {
    return drainInput(this.#steps, "follow_up", options);
  }

  requestCompaction(instructions?: string): void {
    if (instructions !== undefined) checkInstructions(instructions);
    const { sessionId } = this.#runner.facts;
    const request = instructions === undefined ? {} : { instructions };
    this.#runner.compactionRequest = request;
    this.#steps.emit({ type: "compaction_requested", data: { sessionId, ...request } });
  }

  hasOtherRuns(): Promise<boolean> {
    return hasOtherRuns(this.#runner);
  }

  compactSession(step: SessionCompactionStep): Promise<SessionCompactionOutcome> {
    return compactSession(this.#steps, step, ({ address }) => this.#inside(address, this.#steps.cancelScope));
  }

  compact(step: CompactionStep): Promise<CompactedTranscript> {
    return compactTranscript(this.#steps, step, ({ address }) =>
      this.#inside(address, this.#steps.cancelScope),
    );
  }

  child(request: ChildRequest): Promise<SpawnOutcome> {
    return this.#children.share(request);
  }

  spawn(agentId: AgentId, input: JsonValue, options: SpawnOptions = {}): Promise<SpawnOutcome> {
    return this.#children.spawn(agentId, input, options);
  }

  async start(agentId: AgentId, input: JsonValue, options: StartRunOptions = {}): Promise<StartedRun> {
    return this.#runs.start(agentId, input, options);
  }

  async join(handle: TaskHandle | StartedRun): Promise<TaskOutcome> {
    if (isStartedRun(handle)) return this.#runs.join(handle);
    requireHandle("ctx.join()", handle);
    return this.#children.join(handle);
  }

  async joinAll(handles: readonly TaskHandle[]): Promise<readonly TaskOutcome[]> {
    requireHandles("ctx.joinAll()", handles);
    return this.#children.joinAll(handles);
  }

  childEvents(child: TaskHandle): AsyncIterable<Event> {
    return this.#children.events(child);
  }

  async cancel(handle: TaskHandle | StartedRun, reason: string): Promise<void> {
    if (isStartedRun(handle)) return this.#runs.cancel(handle, reason);
    requireHandle("ctx.cancel()", handle);
    const { taskId } = handle;
    return this.#messages.send("cancel", taskId, { reason }, async () => () => {
      this.#runner.host.cancel(taskId, reason);
    });
  }

  async parallel<Branches extends Readonly<Record<string, Branch<unknown>>>>(
    branches: Branches,
    options: ParallelOptions = {},
  ): Promise<BranchResults<Branches>> {
    checkParallel(branches, options);
    const { stopOnFault = false } = options;
    const address = this.#steps.next();
    return this.#steps.exclusive("parallel", async () => {
      const contexts: TaskContext[] = [];
      const contextOf = (name: string, cancelScope: CancellationScope): TaskContext => {
        const ctx = this.#inside(branchScope(address, name), cancelScope, this.#isBody);
        contexts.push(ctx);
        return ctx;
      };
      const settled = await runBranches(this.#steps, address, { branches, contextOf, stopOnFault });
      for (const ctx of contexts) this.#history.join(ctx.#history);
      const values = this.#runner.journal.valuesOf(settled);
      const named = Object.keys(branches).map((name, index) => [name, values[index]]);
      return Object.fromEntries(named) as BranchResults<Branches>;
    });
  }

  async race<Value>(branches: Readonly<Record<string, Branch<Value>>>): Promise<RaceResult<Value>> {
    return this.#race("race", branches);
  }

  compensate(
    name: string,
    undo: (step: CompensationContext) => Promise<unknown>,
    options?: CompensationOptions,
  ): Promise<void> {
    return registerUndo(this.#steps, this.#isBody, name, undo, options);
  }

  async uncancellable<Value extends JsonValue>(
    branch: Branch<Value>,
    options: UncancellableOptions = {},
  ): Promise<Value> {
    checkUncancellable(branch, options);
    const scope = uncancellableIn(this.#steps.next());
    return this.#steps.exclusive("uncancellable", () =>
      runShielded(this.#steps, branch, options.timeoutMs, (cancelScope) =>
        this.#inside(scope, cancelScope, this.#isBody),
      ),
    );
  }

  async any<Value>(branches: Readonly<Record<string, Branch<Value>>>): Promise<RaceResult<Value>> {
    return this.#race("any", branches);
  }

  #race<Value>(
    method: "race" | "any",
    branches: Readonly<Record<string, Branch<Value>>>,
  ): Promise<RaceResult<Value>> {
    requireBranches(`ctx.${method}()`, branches);
    const isAny = method === "any";
    const names = Object.keys(branches).join(" ");
    const step = this.#steps.identifyBranches("race", isAny ? `any ${names}` : names, null);
    const contextOf = (branch: string, cancelScope: CancellationScope): TaskContext =>
      this.#inside(branchScope(step.address, branch), cancelScope, this.#isBody);
    return runBranchStep<RaceResult<Value>>(
      this.#steps,
      step,
      () => ({ branches, contextOf }),
      (open) => raceBranches(open, branches, contextOf, isAny),
    );
  }

  async map<Item, Value extends JsonValue>(
    items: readonly Item[],
    perform: (item: Item, ctx: RunContext, index: number) => Promise<Value>,
    options?: MapOptions,
  ): Promise<readonly SettledItem<Value>[]> {
    const { concurrency } = readMap(items, perform, options);
    const contextOf = (address: StepAddress, index: number, cancelScope: CancellationScope): TaskContext =>
      this.#inside(branchScope(address, itemBranch(index)), cancelScope, this.#isBody);
    return runMap<Value>(this.#steps, items.length, concurrency, contextOf, (ctx, index) =>
      perform(items[index] as Item, ctx, index),
    );
  }

  async timeout<Value extends JsonValue>(limit: Duration, branch: Branch<Value>): Promise<Value> {
    const ms = readWait(limit, "ctx.timeout()");
    requireFunction("ctx.timeout()", "branch", branch, "ctx.timeout(limit, async (branch) => value)");
    const timer = async (own: RunContext): Promise<never> => {
      await own.sleep(ms);
      throw new Fault("timeout", `the work inside ctx.timeout() took longer than ${describeLimit(limit)}`);
    };
    // The timer never wins with a value: its fault is that of the race, and is recorded with it (J5).
    const { value } = await this.race<Value>({ work: branch, [limitBranch]: timer });
    return value;
  }

  async ask(target: AgentId | TaskHandle, body: JsonValue, options: WaitOptions = {}): Promise<AskOutcome> {
    checkWaitOptions("ctx.ask()", options);
    if (typeof target !== "string" || target.trim() === "")
      requireHandle("ctx.ask()", target, "the id of an agent, or the handle of a child");
    return this.#messages.ask(target, body, options);
  }

  reply(message: Message, body: JsonValue): Promise<void> {
    return this.#messages.reply(message, body);
  }

  send(target: AgentId, body: JsonValue): Promise<void> {
    return this.#messages.sendTo(target, body);
  }

  emit(topic: TopicId, body: JsonValue): Promise<void> {
    return this.#messages.emit(topic, body);
  }

  follow(topicId: TopicId): Promise<void> {
    return this.#messages.follow("follow", topicId);
  }

  unfollow(topicId: TopicId): Promise<void> {
    return this.#messages.follow("unfollow", topicId);
  }

  async sleep(time: Duration | Date): Promise<void> {
    await this.#messages.sleep(time);
  }

  async sleepUntil(atMs: number): Promise<void> {
    await this.#messages.sleepUntil(atMs);
  }

  async waitForSignal(name: string, options: WaitForSignalOptions = {}): Promise<JsonValue | undefined> {
    messageNameKind.check?.(name, "name", "ctx.waitForSignal()");
    checkAcceptingWait("ctx.waitForSignal()", options);
    return this.#messages.waitForSignal(name, options);
  }

  async waitForUpdate(name: string, options: WaitForUpdateOptions = {}): Promise<ReceivedUpdate | undefined> {
    messageNameKind.check?.(name, "name", "ctx.waitForUpdate()");
    checkAcceptingWait("ctx.waitForUpdate()", options);
    return this.#messages.waitForUpdate(name, options);
  }

  answerUpdate(name: string, update: ReceivedUpdate, reply: UpdateReply): Promise<void> {
    return this.#messages.answerUpdate(name, update, reply);
  }

  async sendSignal(
    runId: string,
    name: string,
    value: JsonValue,
    options: SignalOptions = {},
  ): Promise<void> {
    messageNameKind.check?.(name, "name of the signal", "ctx.sendSignal()");
    signalTable.read("ctx.sendSignal()", options);
    return this.#messages.sendSignal(runId, name, value, options);
  }

  newPromise(): string {
    return this.#messages.newPromise();
  }

  waitForPromise(id: string, options: WaitForPromiseOptions = {}): Promise<JsonValue> {
    return this.#messages.waitForPromise(id, options);
  }

  settlePromise(id: string, outcome: PromiseOutcome): Promise<void> {
    return this.#messages.settlePromise(id, outcome);
  }

  publish(name: string, value: JsonValue): void {
    messageNameKind.check?.(name, "name", "ctx.publish()");
    this.#messages.publish(name, value);
  }

  objectState(): Promise<JsonValue | undefined> {
    return readObjectState(this.#steps);
  }

  setObjectState(state: JsonValue | undefined): void {
    setObjectState(this.#steps, state);
  }

  approval(question: PersonQuestion): Promise<ApprovalDecision> {
    return askPerson(this.#steps, question);
  }

  /** Opens a resource. The call is not journaled, so that a replay opens the resource again. */
  async resource<Value>(open: () => Promise<Value>, close: (value: Value) => Promise<void>): Promise<Value> {
    checkResource(open, close);
    return this.#runner.openResource(open, close, this.#steps.cancelScope);
  }

  step<Value extends JsonValue>(
    name: string,
    body: (step: StepContext) => Promise<Value>,
    options?: StepOptions,
  ): Promise<Value> {
    return runStep(this.#from, name, body, options);
  }

  attempt<Value extends JsonValue>(
    name: string,
    body: (attempt: AttemptContext) => Promise<Value>,
    options?: AttemptOptions,
  ): Promise<Value> {
    return runLiveAttempt(this.#from, name, body, options);
  }

  patched(name: string): boolean {
    checkPatchName(name);
    return this.#steps.patched(name);
  }

  now(): Promise<number> {
    return this.#value("now", () => this.#runner.worker.clock.now());
  }

  random(): Promise<number> {
    return this.#value("random", () => this.#runner.worker.random.next());
  }

  uuid(): Promise<string> {
    return this.#value("uuid", () => this.#runner.worker.ids.next());
  }

  /** Reads the messages of the inbox. They are journaled, so that a replay reads the same messages. */
  drain(peek: Body<readonly Message[]>): Promise<readonly Message[]> {
    return this.#steps.run<readonly Message[]>(this.#steps.identify("drain", inboxDrain, null), peek);
  }

  continueAsNew(state: JsonValue): Promise<never> {
    return this.#steps.exclusive("continueAsNew", () => continueAsNew(this.#runner, this.#steps, state));
  }

  get #from(): CallingScope {
    return (this.#calling ??= {
      steps: this.#steps,
      history: this.#history,
      inside: (scope, cancelScope) => this.#inside(scope, cancelScope),
    });
  }

  /** Creates the context of a scope in the body of a step, or in a branch. */
  #inside(scope: StepScope, cancelScope: CancellationScope, isBody = true): TaskContext {
    return new TaskContext(this.#runner, scope, cancelScope, this.#history, isBody);
  }

  #value<Value extends JsonValue>(name: string, read: () => Value): Promise<Value> {
    return this.#steps.runSync<Value>(this.#steps.identify("value", name, null), read);
  }
}
