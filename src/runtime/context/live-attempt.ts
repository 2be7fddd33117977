import {
  attemptTable,
  assertEmittable,
  BudgetExhaustedError,
  assertJson,
  branchScope,
  canonicalJson,
  describeValue,
  Fault,
  JsonDigest,
  sealedOutcome,
  sealMadeJson,
  stepAt,
  type ApprovalDecision,
  type AttemptContext,
  type AttemptOptions,
  permitTable,
  programTable,
  type CancellationToken,
  type CancelSignal,
  type EarlierAttempts,
  type EmittableEvent,
  type ForeignCall,
  type ForeignReport,
  type ForeignVerdict,
  type JsonValue,
  type LlmReply,
  type LlmRequest,
  type MeteredCall,
  type MeteredRequest,
  type MeteredResult,
  type PermitOptions,
  type PersonQuestion,
  type ProgramOptions,
  type StepAddress,
  type StepContext,
  type StepOptions,
  type ToolCall,
  type TaskId,
  type ToolResult,
} from "../../kernel/index.ts";
import { liveAddress, queueWait } from "../journal/wait-names.ts";
import type { StepIdentity } from "../journal/step-identity.ts";
import { BodyContext, insideTask } from "../process/async-context.ts";
import type { ActiveStep } from "../task/active-step.ts";
import { mayAsk } from "../task/budget-stop.ts";
import { CancellationScope } from "../task/cancellation-scope.ts";
import type { InFlightCall } from "../task/in-flight-calls.ts";
import { AbandonableCall, type NestedContext } from "../task/nested-scope.ts";
import { bindToHost, refuseSlices } from "../task/host-binding.ts";
import { seatWithin } from "../task/seat-wait.ts";
import { StepExecutor } from "../task/step-executor.ts";
import type { TaskRunner } from "../task/task-runner.ts";
import { approvalIdOf } from "../tool/approval.ts";
import { judgeForeignCall } from "../tool/foreign-call.ts";
import type { CallingScope, ForeignQuestion } from "../tool/gate-context.ts";
import {
  KeptQuestions,
  openQuestions,
  parkedAttempt,
  recordParked,
  recordQuestion,
  untilOneAnswered,
  withdrawQuestions,
  type OpenQuestion,
} from "./live-questions.ts";
import { ProgramLog } from "./program-log.ts";

/** What one attempt of a step starts with. */
interface AttemptStart {
  readonly open: ActiveStep;
  /** The call of the attempt. It is in flight until the attempt ends. */
  readonly call: InFlightCall;
  readonly scope: StepAddress;
  readonly number: number;
  readonly program: ReadProgram | undefined;
  /** The questions of earlier attempts that no person has answered, or whose answer no attempt has read. */
  readonly kept: readonly OpenQuestion[];
}

type ReadProgram = Required<ProgramOptions>;

/**
 * Runs `ctx.attempt`. The start of each attempt is recorded before its body is called, so that the next owner knows
 * how many attempts there were. Records of earlier attempts are skipped and not used.
 */
export function runLiveAttempt<Value extends JsonValue>(
  from: CallingScope,
  name: string,
  body: (attempt: AttemptContext) => Promise<Value>,
  options: AttemptOptions = {},
): Promise<Value> {
  const problem = attemptProblem(name, body);
  if (problem !== undefined) return Promise.reject(problem);
  const { steps } = from;
  const input = options.input ?? null;
  const step = steps.identify("step", name, input);
  return steps.run<Value>(step, async (open) => {
    const program = readAttempt(name, options).program;
    assertJson(input, `the input of attempt ${name}`);
    const { runner, address } = open;
    if (program !== undefined) refuseSlices(runner, `program ${program.name}`);
    let number = passEarlierAttempts(runner, address);
    let kept = program === undefined ? none : await keptFromEarlier(open, number);
    withdrawAllBut(runner, address, kept);
    for (;;) {
      number++;
      const scope = liveAddress(address, number);
      if (program?.staysOnHost === true) bindToHost(runner, `program ${program.name}`, program.name);
      runner.journal.record(markOf(scope), sealedOutcome(null), [
        { type: "attempt_start", data: { name, number } },
      ]);
      const call = await open.begin();
      const live = new LiveAttempt(from, { open, call, scope, number, program, kept });
      call.body = live;
      if (program !== undefined) call.yields = true;
      if (program !== undefined) runner.activity.settleIfPausing();
      try {
        const running = runLive(open, name, live, body);
        return await (options.holdsSlot === false ? open.runner.activity.restWhile(call, running) : running);
      } catch (error) {
        const isForMoney = endedForMoney(open, error);
        if (!isForMoney && (program === undefined || !endedForSeat(open, error))) throw error;
        for (const draft of open.takeEvents(0)) runner.journal.emit(draft);
        await (isForMoney ? untilAnswered(open, error) : untilRecalled(open));
        kept = openQuestions(runner, address);
      }
    }
  });
}

const none: readonly OpenQuestion[] = [];

function readAttempt(name: string, options: AttemptOptions): { readonly program: ReadProgram | undefined } {
  const { program } = attemptTable.read("ctx.attempt()", options);
  const owner = `the program of attempt ${name}`;
  return { program: program === undefined ? undefined : programTable.read(owner, program) };
}

/**
 * B5: whether the attempt ended because a call did not fit into the budget and a person was asked for a top-up.
 * Another attempt follows the top-up, also if the top-up arrived before the attempt ended.
 */
function endedForMoney({ runner, cancelScope }: ActiveStep, error: unknown): error is BudgetExhaustedError {
  if (!(error instanceof BudgetExhaustedError) || runner.isDropped || cancelScope.isAbandoned) return false;
  const { cap, details } = error;
  return mayAsk(runner, { taskId: details?.["taskId"] as TaskId, ...(cap && { cap }) });
}

/** H2: whether the attempt ended because its program could not wait for the seat of the task. */
function endedForSeat({ runner, cancelScope }: ActiveStep, error: unknown): boolean {
  return Fault.is(error) && error.code === "seat_lost" && !runner.isDropped && !cancelScope.isAbandoned;
}

/**
 * H1: gives up the seat of the task until a person has answered. Throws the error of the attempt if the person
 * refuses.
 */
async function untilAnswered(open: ActiveStep, error: unknown): Promise<void> {
  const { runner } = open;
  await untilRecalled(open);
  if (runner.task.isDeclined) throw error;
}

/** H2: resolves when the task has a seat again. The call of the attempt has ended before. */
async function untilRecalled(open: ActiveStep): Promise<void> {
  const { runner, cancelScope } = open;
  open.end();
  await runner.activity.whenRecalled(cancelScope);
}

function attemptProblem(name: unknown, body: unknown): Fault | undefined {
  const use = "use ctx.attempt(name, async (attempt) => value)";
  if (typeof name !== "string" || name === "")
    return new Fault(
      "invalid_argument",
      `invalid name ${describeValue(name)} of ctx.attempt(): expected a text that is not empty; ${use}`,
    );
  if (typeof body === "function") return undefined;
  return new Fault(
    "invalid_argument",
    `invalid body of ctx.attempt(${JSON.stringify(name)}): expected a function, not ${describeValue(body)}; ${use}`,
  );
}

function markOf(address: StepAddress): StepIdentity {
  return { address, kind: "value", name: "live", digest: JsonDigest.ofNull };
}

/** Skips the records of the attempts of earlier owners. Returns how many there were. */
function passEarlierAttempts(runner: TaskRunner, step: StepAddress): number {
  let count = 0;
  while (runner.task.steps.has(liveAddress(step, count + 1)))
    runner.journal.find(markOf(liveAddress(step, ++count)));
  return count;
}

/**
 * Returns the questions that the last attempt of an earlier owner left open on purpose. If its program only waited
 * for them, it is started again when one of them is answered.
 */
async function keptFromEarlier(
  { runner, address, cancelScope }: ActiveStep,
  attempts: number,
): Promise<readonly OpenQuestion[]> {
  const parked = attempts === 0 ? undefined : parkedAttempt(runner, liveAddress(address, attempts));
  if (parked === undefined) return none;
  const isKept = ({ approvalId }: OpenQuestion): boolean => parked.questions.includes(approvalId);
  const kept = openQuestions(runner, address).filter(isKept);
  if (parked.isIdle) await untilOneAnswered(runner, cancelScope, kept);
  return kept;
}

function withdrawAllBut(runner: TaskRunner, step: StepAddress, kept: readonly OpenQuestion[]): void {
  const ids = new Set(kept.map(({ approvalId }) => approvalId));
  const others = openQuestions(runner, step).filter(({ approvalId }) => !ids.has(approvalId));
  withdrawQuestions(runner, others, attemptOver);
}

const attemptOver = "the attempt that asked has ended";

/** Runs the body of an attempt. When it ends, the commit of its record also ends its questions. */
async function runLive<Value>(
  open: ActiveStep,
  name: string,
  live: LiveAttempt,
  body: (attempt: AttemptContext) => Promise<Value>,
): Promise<() => Value> {
  const { runner } = open;
  const from = runner.worker.clock.now();
  const inside = new BodyContext(runner.inside, live, () => open.submissionsOf(live.idempotencyKey));
  const removeProgram = live.addProgram();
  const end = (status?: "error", error?: unknown): void => {
    removeProgram();
    live.end();
    for (const draft of live.takeEvents()) open.emit(draft);
    // The program asks again after the recall.
    if (!live.isForProgram || !endedForSeat(open, error))
      withdrawQuestions(runner, openQuestions(runner, open.address), attemptOver);
    const durationMs = open.durationSince(from);
    open.emit({ type: "step_end", data: { name, durationMs, ...(status && { status }) } });
  };
  try {
    const work = insideTask(inside, () => body(live));
    const value = await live.unlessAbandoned(Promise.resolve(work), inside);
    return () => {
      end();
      return value;
    };
  } catch (error) {
    if (!runner.isDropped && !open.cancelScope.isAbandoned) end("error", error);
    throw error;
  }
}

/**
 * The context that the body of `ctx.attempt` receives. Each of its calls has its own scope, so that calls may run
 * at the same time.
 */
class LiveAttempt extends AbandonableCall implements AttemptContext {
  readonly number: number;
  readonly scope: StepAddress;
  readonly idempotencyKey: string;
  readonly cancelScope: CancellationScope;
  readonly earlier: EarlierAttempts;
  readonly #from: CallingScope;
  readonly #runner: TaskRunner;
  readonly #step: StepAddress;
  readonly #call: InFlightCall;
  readonly #program: ReadProgram | undefined;
  readonly #kept: KeptQuestions;
  /** Takes the events that belong to no call. */
  readonly #events: StepExecutor;
  #log: ProgramLog | undefined;
  #calls = 0;
  #isOver = false;

  constructor(from: CallingScope, { open, call, scope, number, program, kept }: AttemptStart) {
    super();
    const { runner, address, cancelScope } = open;
    this.#from = from;
    this.#runner = runner;
    this.#step = address;
    this.#call = call;
    this.#program = program;
    this.#kept = new KeptQuestions(kept);
    this.scope = scope;
    this.number = number;
    this.idempotencyKey = from.steps.idempotencyKey(address);
    this.earlier = earlierOf(runner, address);
    this.cancelScope = CancellationScope.live(cancelScope, program === undefined ? undefined : call);
    this.#events = new StepExecutor(runner, scope, this.cancelScope);
  }

  get signal(): CancelSignal {
    return this.cancelScope.signal;
  }

  /** Token that cancels the body alone. */
  get token(): CancellationToken {
    return this.cancelScope.token;
  }

  get isForProgram(): boolean {
    return this.#program !== undefined;
  }

  /** Records that the program of the attempt lives until the returned function is called. */
  addProgram(): () => void {
    const program = this.#program;
    if (program === undefined) return () => undefined;
    const runner = this.#runner;
    const { name, idleMs } = program;
    const park = (): void => {
      this.#log?.endMessage();
      const mine = openQuestions(runner, this.#step);
      recordParked(runner, this.scope, mine, this.#call.blocked > 0);
    };
    return runner.activity.addProgram({ name, idleMs, park });
  }

  /** Ends the attempt. The runtime ignores what its body still does afterwards. */
  end(): void {
    this.#isOver = true;
    this.#log?.endMessage();
    this.cancelScope.abandon(attemptOver);
  }

  llm(request: LlmRequest): Promise<LlmReply> {
    return this.#inCall((ctx) => ctx.llm(request));
  }

  metered<Value extends JsonValue>(
    request: MeteredRequest,
    body: (call: MeteredCall) => Promise<MeteredResult<Value>>,
  ): Promise<Value> {
    return this.#inCall(async (ctx) => {
      const { seatWaitMs } = request;
      // Before the step, which would wait until the recall.
      const waiter = { runner: this.#runner, cancelScope: this.cancelScope };
      if (typeof seatWaitMs === "number") await seatWithin(waiter, seatWaitMs);
      return ctx.metered(request, body);
    });
  }

  tool(call: ToolCall): Promise<ToolResult> {
    return this.#inCall((ctx) => ctx.tool(call));
  }

  step<Value extends JsonValue>(
    name: string,
    body: (step: StepContext) => Promise<Value>,
    options?: StepOptions,
  ): Promise<Value> {
    return this.#inCall((ctx) => ctx.step(name, body, options));
  }

  /** Asks a person a question. The question is recorded with its request, so that the next owner can withdraw it. */
  approval(question: PersonQuestion): Promise<ApprovalDecision> {
    return this.#inCall((ctx, call) => {
      const { taskId, worker } = this.#runner;
      const { input } = question;
      assertJson(input, `the question of ${question.toolName}`);
      const approvalId = approvalIdOf(taskId, stepAt(call, 0), worker.hash(canonicalJson(input)));
      recordQuestion(this.#runner, call, { approvalId, input });
      return ctx.approval(question);
    });
  }

  async keep(value: JsonValue): Promise<void> {
    const { journal, worker, log } = this.#runner;
    assertJson(value, "the value of attempt.keep()");
    worker.sizes.assert(value, "the value of attempt.keep()");
    const step = {
      address: this.#nextCall(),
      kind: "value",
      name: keepName,
      digest: JsonDigest.ofNull,
    } as const;
    journal.record(step, sealedOutcome(structuredClone(value)), []);
    await this.#runner.activity.whileAlive(Promise.resolve(log.flush()), this.cancelScope);
  }

  async whenSteered(): Promise<void> {
    const { taskId, host, activity } = this.#runner;
    const wait = host.waits.wait(taskId, queueWait("steer"));
    this.cancelScope.token.onCancel(() => wait.leave());
    await activity.whileAlive(wait.came, this.cancelScope);
    wait.leave();
  }

  steering(): Promise<readonly JsonValue[]> {
    return this.#inCall((ctx) => ctx.steering({ mode: "all" }));
  }

  followUps(): Promise<readonly JsonValue[]> {
    return this.#inCall((ctx) => ctx.followUps({ mode: "all" }));
  }

  async permit(call: ForeignCall, options: PermitOptions = {}): Promise<ForeignVerdict> {
    const { name: program } = this.#requireProgram("permit()");
    const { seatWaitMs } = permitTable.read("attempt.permit()", options);
    const lost = Promise.withResolvers<never>();
    const seat = seatWaitMs === undefined ? undefined : { waitMs: seatWaitMs, onLost: lost.reject };
    const judged = this.#inCall(async (_ctx, scope) => {
      // Before the step, which would wait until the recall.
      if (seat !== undefined)
        await seatWithin({ runner: this.#runner, cancelScope: this.cancelScope }, seat.waitMs);
      const steps = new StepExecutor(this.#runner, scope, this.cancelScope);
      const from: CallingScope = { steps, history: this.#from.history, inside: this.#from.inside };
      const onAsk: ForeignQuestion["onAsk"] = ({ round, request, isAskedBefore }) => {
        this.#log?.endMessage();
        const { approvalId, input } = request;
        const again = isAskedBefore ? { isAskedBefore } : {};
        recordQuestion(this.#runner, round, { approvalId, input, round, ...again });
      };
      const takeKept = (subject: string): string | undefined => this.#kept.take(subject);
      return judgeForeignCall(from, call, { program, takeKept, onAsk, ...(seat && { seat }) });
    });
    return Promise.race([judged, lost.promise]);
  }

  tell(report: ForeignReport): void {
    const { source } = this.#requireProgram("tell()");
    if (this.#isOver || this.#runner.isDropped || this.cancelScope.isAbandoned) return;
    for (const draft of this.#events.takeEvents()) this.#runner.journal.emit(draft);
    (this.#log ??= new ProgramLog(this.#runner, source)).tell(report);
  }

  emitEvent(event: EmittableEvent): void {
    assertEmittable(event);
    const where = `the data of event ${event.type}`;
    sealMadeJson(event.data, where);
    this.#runner.worker.sizes.assert(event.data, where);
    this.#events.emit(event);
  }

  override takeEvents(): ReturnType<AbandonableCall["takeEvents"]> {
    return this.#events.takeEvents();
  }

  protected override createContext(): NestedContext {
    return this.#from.inside(this.scope, this.cancelScope);
  }

  #requireProgram(call: string): ReadProgram {
    if (this.#program !== undefined) return this.#program;
    throw new Fault(
      "invalid_argument",
      `attempt.${call} needs a program: use ctx.attempt(name, body, { program: { name, source: "acp" } })`,
    );
  }

  #nextCall(): StepAddress {
    return branchScope(this.scope, `call.${this.#calls++}`) as StepAddress;
  }

  async #inCall<Value>(perform: (ctx: NestedContext, call: StepAddress) => Promise<Value>): Promise<Value> {
    const call = this.#nextCall();
    const ctx = this.#from.inside(call, this.cancelScope);
    try {
      return await perform(ctx, call);
    } finally {
      for (const draft of ctx.takeEvents()) this.#events.emit(draft);
    }
  }
}

const keepName = "keep";

/** Returns what the attempts of the step have left behind so far. */
function earlierOf({ task }: TaskRunner, step: StepAddress): EarlierAttempts {
  const kept: JsonValue[] = [];
  const steering: JsonValue[] = [];
  const followUps: JsonValue[] = [];
  const prefix = liveAddress(step, 0).slice(0, -1);
  for (const { address, kind, name, outcome } of task.steps.values()) {
    if (outcome.kind !== "ok" || !address.startsWith(prefix)) continue;
    if (kind === "value" && name === keepName) kept.push(outcome.value);
    if (kind !== "drain") continue;
    const drained = name === queueWait("steer") ? steering : followUps;
    drained.push(...(outcome.value as readonly JsonValue[]));
  }
  return { kept, steering, followUps };
}
