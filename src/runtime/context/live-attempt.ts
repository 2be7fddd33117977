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
  type CancellationToken,
  type CancelSignal,
  type EmittableEvent,
  type JsonValue,
  type LlmReply,
  type LlmRequest,
  type MeteredCall,
  type MeteredRequest,
  type MeteredResult,
  type PersonQuestion,
  type StepAddress,
  type StepContext,
  type StepOptions,
  type ToolCall,
  type TaskId,
  type ToolResult,
} from "../../kernel/index.ts";
import { approvalAddress, liveAddress, questionAddress, withdrawn } from "../journal/wait-names.ts";
import type { StepIdentity } from "../journal/step-identity.ts";
import { BodyContext, insideTask } from "../process/async-context.ts";
import type { ActiveStep } from "../task/active-step.ts";
import { mayAsk } from "../task/budget-stop.ts";
import { CancellationScope } from "../task/cancellation-scope.ts";
import { AbandonableCall, type NestedContext } from "../task/nested-scope.ts";
import { StepExecutor } from "../task/step-executor.ts";
import type { TaskRunner } from "../task/task-runner.ts";
import { approvalIdOf, approvalStep } from "../tool/approval.ts";
import type { CallingScope } from "../tool/gate-context.ts";

/** The record of a question that an attempt has asked. */
interface AskedQuestion {
  readonly approvalId: string;
  readonly input: JsonValue;
}

/**
 * Runs `ctx.attempt`. The start of each attempt is recorded before its body is called, so that the next owner knows how many
 * there were. It passes the records of earlier attempts and uses none of them.
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
    attemptTable.read("ctx.attempt()", options);
    assertJson(input, `the input of attempt ${name}`);
    let number = endEarlierAttempts(open.runner, step.address);
    for (;;) {
      number++;
      const scope = liveAddress(step.address, number);
      open.runner.journal.record(markOf(scope), sealedOutcome(null), [
        { type: "attempt_start", data: { name, number } },
      ]);
      const call = await open.begin();
      const live = new LiveAttempt(from, open, scope, number);
      call.body = live;
      try {
        const running = runLive(open, name, live, body);
        return await (options.holdsSlot === false ? open.runner.activity.restWhile(call, running) : running);
      } catch (error) {
        if (!endedForMoney(open, error)) throw error;
        await untilAnswered(open, error);
      }
    }
  });
}

/**
 * B5: whether the attempt ended because of money for which a person was asked. Another attempt follows the top-up, also if the
 * top-up came before the attempt has ended.
 */
function endedForMoney({ runner, cancelScope }: ActiveStep, error: unknown): boolean {
  if (!(error instanceof BudgetExhaustedError) || runner.isDropped || cancelScope.isAbandoned) return false;
  const { cap, details } = error;
  return mayAsk(runner, { taskId: details?.["taskId"] as TaskId, ...(cap && { cap }) });
}

/** H1: the task gives its seat up until the person answers. Throws the error of the attempt if the person refuses. */
async function untilAnswered(open: ActiveStep, error: unknown): Promise<void> {
  const { runner, cancelScope } = open;
  open.end();
  await runner.activity.whenRecalled(cancelScope);
  if (runner.task.isDeclined) throw error;
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

/** Passes the records of the attempts of earlier owners and withdraws their open questions. Returns how many there were. */
function endEarlierAttempts(runner: TaskRunner, step: StepAddress): number {
  let count = 0;
  while (runner.task.steps.has(liveAddress(step, count + 1))) {
    const scope = liveAddress(step, ++count);
    withdrawQuestions(runner, scope, "the attempt that asked has ended");
    runner.journal.find(markOf(scope));
  }
  return count;
}

/** Withdraws the questions of an attempt that no one has answered. The log shows a denial, so that no surface asks any more. */
function withdrawQuestions(runner: TaskRunner, attempt: StepAddress, reason: string): void {
  const { task, journal } = runner;
  const asked = [...task.steps.values()].filter(
    ({ address, name }) => name === questionName && address.startsWith(`${attempt}/`),
  );
  for (const { address, outcome } of asked) {
    const round = stepAt(address.slice(0, address.lastIndexOf("/")) as StepAddress, 0);
    const asking = approvalAddress(round);
    // A question that was refused as invalid was never asked.
    if (outcome.kind !== "ok" || task.steps.has(asking) || !task.opened.has(asking)) continue;
    const { approvalId, input } = outcome.value as unknown as AskedQuestion;
    const decision: ApprovalDecision = { decision: "denied", reason, by: "runtime" };
    journal.record(approvalStep(round, { approvalId, input }), sealedOutcome(withdrawn), [
      { type: "approval_decision", data: { approvalId, decision } },
    ]);
  }
}

const questionName = "question";

/** Runs the body of an attempt. Its questions end with it, in the commit of its record. */
async function runLive<Value>(
  open: ActiveStep,
  name: string,
  live: LiveAttempt,
  body: (attempt: AttemptContext) => Promise<Value>,
): Promise<() => Value> {
  const { runner } = open;
  const from = runner.worker.clock.now();
  const inside = new BodyContext(runner.inside, live, () => open.submissionsOf(live.idempotencyKey));
  const end = (status?: "error"): void => {
    live.cancelScope.abandon("the attempt has ended");
    for (const draft of live.takeEvents()) open.emit(draft);
    withdrawQuestions(runner, live.scope, "the attempt that asked has ended");
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
    if (!runner.isDropped && !open.cancelScope.isAbandoned) end("error");
    throw error;
  }
}

/** What the body of `ctx.attempt` receives. Each call has a scope of its own, so that calls may run at the same time. */
class LiveAttempt extends AbandonableCall implements AttemptContext {
  readonly number: number;
  readonly scope: StepAddress;
  readonly idempotencyKey: string;
  readonly cancelScope: CancellationScope;
  readonly #from: CallingScope;
  readonly #runner: TaskRunner;
  /** Takes the events that belong to no call. */
  readonly #events: StepExecutor;
  #calls = 0;

  constructor(
    from: CallingScope,
    { runner, address, cancelScope }: ActiveStep,
    scope: StepAddress,
    number: number,
  ) {
    super();
    this.#from = from;
    this.#runner = runner;
    this.scope = scope;
    this.number = number;
    this.idempotencyKey = from.steps.idempotencyKey(address);
    this.cancelScope = CancellationScope.live(cancelScope);
    this.#events = new StepExecutor(runner, scope, this.cancelScope);
  }

  get signal(): CancelSignal {
    return this.cancelScope.signal;
  }

  /** Token that cancels the body alone. */
  get token(): CancellationToken {
    return this.cancelScope.token;
  }

  llm(request: LlmRequest): Promise<LlmReply> {
    return this.#inCall((ctx) => ctx.llm(request));
  }

  metered<Value extends JsonValue>(
    request: MeteredRequest,
    body: (call: MeteredCall) => Promise<MeteredResult<Value>>,
  ): Promise<Value> {
    return this.#inCall((ctx) => ctx.metered(request, body));
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

  /** The question is recorded with its request, so that the next owner can withdraw it. */
  approval(question: PersonQuestion): Promise<ApprovalDecision> {
    return this.#inCall((ctx, call) => {
      const { taskId, worker, journal } = this.#runner;
      const { input } = question;
      assertJson(input, `the question of ${question.toolName}`);
      const approvalId = approvalIdOf(taskId, stepAt(call, 0), worker.hash(canonicalJson(input)));
      const asked: AskedQuestion = { approvalId, input };
      const address = questionAddress(call);
      journal.record(
        { address, kind: "value", name: questionName, digest: JsonDigest.ofNull },
        sealedOutcome(structuredClone(asked) as unknown as JsonValue),
        [],
      );
      return ctx.approval(question);
    });
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

  async #inCall<Value>(perform: (ctx: NestedContext, call: StepAddress) => Promise<Value>): Promise<Value> {
    const call = branchScope(this.scope, `call.${this.#calls++}`) as StepAddress;
    const ctx = this.#from.inside(call, this.cancelScope);
    try {
      return await perform(ctx, call);
    } finally {
      for (const draft of ctx.takeEvents()) this.#events.emit(draft);
    }
  }
}
