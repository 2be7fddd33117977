import type { Failure } from "../base/fault.ts";
import type { CancelSignal } from "../base/cancel-signal.ts";
import type { AgentId, RunId } from "../base/identity.ts";
import type { Infer, Schema } from "../base/schema.ts";
import type { Duration } from "../base/duration.ts";
import type { JsonValue, RecordedValue, Serializable } from "../base/json-value.ts";
import type { MaybePromise } from "../base/maybe-promise.ts";
import type { UserPart } from "../messages/content.ts";
import type { ApprovalDecision, PersonQuestion } from "../run/approval.ts";
import type { RunFacts } from "../run/run-facts.ts";
import type { Query, RunTarget, Signal, SignalOptions, Update } from "../run/run-messages.ts";
import type { SpawnOptions } from "../run/spawn-options.ts";
import type { HostedAgent } from "./hosted-agent.ts";
import type { HostedWorkflow } from "./hosted-workflow.ts";
import type { HandlerArguments, HostedObject, HandlerOutput } from "./object.ts";
import type { StartRunOptions } from "../run/started-run.ts";
import type { MapOptions, ParallelOptions, SettledItem, UncancellableOptions } from "./branch-options.ts";
import type { CompensationContext, CompensationOptions, StepContext, StepOptions } from "./run-context.ts";

/** What the body of a step of a workflow receives. */
export type WorkflowStepContext = Pick<StepContext, "idempotencyKey" | "attempt" | "signal">;

/** What the function of a compensation of a workflow receives. */
export interface WorkflowCompensationContext<Context = unknown>
  extends WorkflowStepContext, Pick<CompensationContext, "status" | "reason"> {
  /** Context for steps inside the compensation, such as a call of an agent. No cancel reaches them. */
  readonly ctx: WorkflowContext<Context>;
}

/** One branch of `parallel` or `race`. It must use the `ctx` it receives, which has a scope of its own (J2). */
export type WorkflowBranch<Value, Context = unknown> = (ctx: WorkflowContext<Context>) => Promise<Value>;

/** Options of `WorkflowContext.agent`. */
export interface CallAgentOptions<Output extends Schema = never> extends Pick<
  SpawnOptions,
  "budget" | "priority" | "role"
> {
  /** Schema that the answer must match. If absent, the answer is a text. */
  readonly output?: Output;
}

/** A promise that other runs and processes settle by its id. */
export interface DurablePromise<Value> {
  /** Id with which any run, process or REST caller settles the promise. */
  readonly id: string;
  /**
   * The value. `result` waits for it, and throws the error of a rejected promise. `await promise` does the same in the scope
   * that created it.
   */
  readonly promise: DurableHandle<Value> & PromiseLike<Value>;
}

/** Options of `WorkflowContext.handleUpdate`. */
export interface HandleUpdateOptions<Value = unknown> {
  /** Milliseconds after which the wait ends without an update. Default: no limit. */
  readonly timeoutMs?: number;
  /**
   * Throws, or returns `false`, to refuse the update. It must decide by the value and by what the function knows from its
   * steps.
   */
  readonly validate?: (value: Value) => MaybePromise<boolean | void>;
}

/** How an update ended. */
export type HandledUpdate<Value, Reply> =
  | { readonly status: "completed"; readonly value: Value; readonly reply: Reply }
  | { readonly status: "failed"; readonly value: Value; readonly error: Failure };

/**
 * Something whose value comes later, such as a run that `ctx.start` has started. J2: a handle is not an open call, so other
 * calls may be made before it is awaited; `result` is one. `parallel`, `race` and `any` accept a handle in place of a branch.
 */
export interface DurableHandle<Value> {
  /**
   * Waits for the value. It may be called several times. In a branch, pass the `ctx` of the branch. Default: the scope in
   * which the handle was created.
   */
  result(ctx?: WorkflowContext): Promise<Value>;
}

/** A run that `ctx.start` has started. */
export interface StartedWorkflow<Output> extends DurableHandle<Output> {
  /** Id of the run. */
  readonly runId: RunId;
  /**
   * Waits for the end of the run and returns its output. A run that ends without one is the fault `child_failed`, whose
   * details have its `runId`, `status` and `failure`.
   */
  result(ctx?: WorkflowContext): Promise<Output>;
  /** C1: cancels the run and does not wait for its end. */
  cancel(reason: string, ctx?: WorkflowContext): Promise<void>;
}

/** A branch of `parallel`, `race` or `any`: a function that uses the `ctx` that it receives, or a handle. */
export type WorkflowBranchOrHandle<Value, Context = unknown> =
  | WorkflowBranch<Value, Context>
  | DurableHandle<Value>;

/** The results of `parallel`, by branch name. */
export type WorkflowBranchResults<
  Branches extends Readonly<Record<string, WorkflowBranchOrHandle<unknown, never>>>,
> = {
  readonly [Name in keyof Branches]: Branches[Name] extends DurableHandle<infer Value>
    ? Value
    : Branches[Name] extends (ctx: never) => Promise<infer Value>
      ? Value
      : never;
};

/** Options of `ctx.send`. */
export type SendOptions = Omit<StartRunOptions, "onParentEnd">;

/** Options of a call of an object by a workflow or a handler. They mean what those of `ctx.start` mean. */
export type ObjectStartOptions = Omit<StartRunOptions, "priority">;

/** Options of a call of an object that is not awaited. */
export type ObjectSendOptions = Omit<ObjectStartOptions, "onParentEnd">;

/** One key of an object, as a workflow or a handler calls it. Each handler is a method that waits for its result. */
export type ObjectCalls<Handlers> = {
  readonly [Name in keyof Handlers]: (
    ...given: HandlerArguments<Handlers[Name], ObjectStartOptions>
  ) => Promise<HandlerOutput<Handlers[Name]>>;
} & {
  /** Calls that return a durable handle, like `ctx.start`. */
  readonly start: {
    readonly [Name in keyof Handlers]: (
      ...given: HandlerArguments<Handlers[Name], ObjectStartOptions>
    ) => Promise<StartedWorkflow<HandlerOutput<Handlers[Name]>>>;
  };
  /** Calls that nothing waits for, like `ctx.send`. They return the id of the run. */
  readonly send: {
    readonly [Name in keyof Handlers]: (
      ...given: HandlerArguments<Handlers[Name], ObjectSendOptions>
    ) => Promise<RunId>;
  };
};

/**
 * The interface through which a workflow does its work (`ctx`). Each asynchronous method except `resource` is journaled:
 * it runs once, its result or error is recorded, and after a crash the same call returns the record (J1, J5). The code
 * around them runs again from the start, so it must decide by nothing else: `now`, `random` and `uuid` replace
 * `Date.now()`, `Math.random()` and `crypto.randomUUID()`.
 *
 * J2: a scope has at most one journaled call in flight; a second one fails with `journal_ambiguous`. Use `parallel`, `map`,
 * `race` or `any` for concurrent work. A `DurableHandle` is not a call in flight; awaiting it is. Code that returns while a
 * call is in flight, or after one has failed that nothing awaited, fails with `journal_ambiguous` as well.
 */
export interface WorkflowContext<Context = unknown, Input = JsonValue> {
  /** Id of the run. */
  readonly runId: RunId;
  /** Tenant, user, run, metadata and live context of the run. */
  readonly facts: Omit<RunFacts<Context>, "sessionId">;
  /** Aborted when the workflow is cancelled, and when this process drops it, for example to suspend it. */
  readonly signal: CancelSignal;
  /**
   * Runs an effect and records its result. J6: the body runs at least once, its result is recorded exactly once. Pass
   * `idempotencyKey`, which is the same on every attempt, to services that detect repeated requests. A body that throws
   * is retried, by default up to 5 times within 10 minutes; `retry: false` switches that off, and a `FatalError` ends the
   * step at once. A body that returns nothing has the value `null`.
   */
  step<Value>(
    name: string,
    body: (step: WorkflowStepContext) => MaybePromise<Value & Serializable<Value>>,
    options?: StepOptions,
  ): Promise<RecordedValue<Value>>;
  /**
   * J9: whether changed code takes its new path: `if (ctx.patched("vat-2027")) { ... }`. A run that was already beyond this
   * place when the change was deployed gets `false`, every other one `true`. The first call with a name decides for the
   * run, and the decision is recorded.
   */
  patched(name: string): boolean;
  /**
   * J8: ends this history and starts the function again with `input`, which is checked like that of a start. The run keeps
   * its id, its budget, its live children and the signals that it has not read; steps and registered compensations are those of
   * the new history. Only the function itself may call it, not a branch: `return ctx.continueAsNew(input)`. The code ends at
   * this place: neither `catch` nor `finally` goes on.
   */
  continueAsNew(input: Input): Promise<never>;
  /** Returns the current time in epoch milliseconds. Recorded: a replay returns the same time. */
  now(): Promise<number>;
  /** Returns a random number from 0 (inclusive) to 1 (exclusive). Recorded: a replay returns the same number. */
  random(): Promise<number>;
  /** Returns a new unique id. Recorded: a replay returns the same id. */
  uuid(): Promise<string>;
  /**
   * Waits for a duration (milliseconds, or a text such as `2 hours`), or until a date. The run holds no slot and may be
   * dropped from memory meanwhile. The end is journaled at the first call.
   */
  sleep(time: Duration | Date): Promise<void>;
  /**
   * Runs a branch that may take at most `limit`. If it takes longer, it is cancelled with its children, and `timeout` is
   * thrown. What is left of the time survives restarts.
   */
  timeout<Value>(
    limit: Duration,
    branch: (ctx: WorkflowContext<Context>) => Promise<Value & Serializable<Value>>,
  ): Promise<Value>;
  /**
   * Waits for a typed signal and returns its value, or `undefined` after the timeout. An early signal is kept. Throws
   * `invalid_argument` for a value that was sent by name and does not match the schema; the next wait takes the next one.
   */
  waitForSignal<Value>(
    signal: Signal<never, Value>,
    options?: { readonly timeoutMs?: number },
  ): Promise<Value | undefined>;
  /** Waits for a signal sent with `RunHandle.signal`, or returns `undefined` after the timeout. An early signal is kept. */
  waitForSignal(name: string, options?: { readonly timeoutMs?: number }): Promise<JsonValue | undefined>;
  /**
   * Waits for an update, runs the handler and replies with what it returns. Returns how the update ended, or `undefined`
   * after the timeout. An update that arrives early is kept. `validate` throws or returns `false` to refuse an update
   * before it is accepted; its sender receives the error, and the wait continues. An error of the handler is the reply and does not end the run.
   */
  handleUpdate<Value, Returned, Reply>(
    update: Update<never, Value, Returned, Reply>,
    handler: (value: Value) => Promise<NoInfer<Returned>>,
    options?: HandleUpdateOptions<Value>,
  ): Promise<HandledUpdate<Value, Reply> | undefined>;
  /**
   * Sends a signal to another run, in the commit that records this call. A repeated `id` has no effect. Throws `not_found`
   * if the run has ended, or does not exist in the tenant of this run (S6).
   */
  sendSignal<Given>(
    run: RunTarget,
    signal: Signal<Given, unknown>,
    value: NoInfer<Given>,
    options?: SignalOptions,
  ): Promise<void>;
  /** Like the other overload, for a signal that has no schema here. */
  sendSignal(run: RunTarget, name: string, value?: JsonValue, options?: SignalOptions): Promise<void>;
  /**
   * Creates a promise that any run, process or REST caller settles by its `id`. Neither an effect nor a call: the id is the
   * same on every replay. The schema is applied by `promise.result()`, and on each replay, so its transforms must be pure.
   */
  promise<const Source extends Schema = never>(
    schema?: Source,
  ): DurablePromise<[Source] extends [never] ? JsonValue : Infer<Source>>;
  /**
   * Resolves a promise of another run, in the commit that records this call. Has no effect if it was settled before. Throws
   * `not_found` if its run has ended, or does not exist in the tenant of this run (S6).
   */
  resolvePromise<Value>(id: string, value: Value & Serializable<Value>): Promise<void>;
  /** Rejects a promise of another run. The run receives an error with this code and message. Otherwise like `resolvePromise`. */
  rejectPromise(id: string, error: Error): Promise<void>;
  /**
   * Publishes a value that `run.read(name)` returns, in any process, without waking the run. It is committed with the next
   * step, or at once if the function waits for something else. Throws `invalid_argument` for a value that the schema
   * refuses; if the schema is asynchronous, the function fails with it when it returns.
   */
  publish<Given>(query: Query<Given, unknown>, value: NoInfer<Given>): void;
  /** Like the other overload, for a value without a schema. */
  publish<Value>(name: string, value: Value & Serializable<Value>): void;
  /** Asks a person and waits durably until `RunHandle.approve` answers. The clock of the deadline stops meanwhile. */
  approval(question: PersonQuestion): Promise<ApprovalDecision>;
  /**
   * Runs an agent as a child task of this run and returns its answer. The agent must be one of the `agents` of the
   * workflow, or registered with the runtime. The child takes a seat, and what it spends counts against the budget of
   * this run. If all seats are taken, the call waits. An agent that ends without an answer is the fault `child_failed`,
   * whose details name the status.
   */
  agent<const Output extends Schema = never>(
    agent: HostedAgent,
    input: string | readonly UserPart[],
    options?: CallAgentOptions<Output>,
  ): Promise<[Output] extends [never] ? string : Infer<Output>>;
  /**
   * Runs branches concurrently, each in a scope of its own, and waits for all of them. Then it throws the fault of the
   * first failed branch in declaration order. With `stopOnFault` it throws the first fault without waiting for the
   * other branches.
   */
  parallel<Branches extends Readonly<Record<string, WorkflowBranchOrHandle<unknown, Context>>>>(
    branches: Branches,
    options?: ParallelOptions,
  ): Promise<WorkflowBranchResults<Branches>>;
  /**
   * Runs branches concurrently. The first branch to settle wins; the others are cancelled, with their children and the runs
   * that they have started. A run whose handle loses continues.
   */
  race<Value>(
    branches: Readonly<Record<string, WorkflowBranchOrHandle<Value, Context>>>,
  ): Promise<{ readonly winner: string; readonly value: Value }>;
  /**
   * Registers what undoes the work so far, after the step that did it. If the workflow fails, is cancelled or passes its
   * deadline, the registered functions run in reverse order before it ends. Each is a step of this name: it is retried
   * like one, and no cancel reaches it. A compensation that fails is reported, and the others follow. From the first one
   * on the run is final. A workflow that completes, is paused or stops at its budget runs none; cancelling it then does.
   */
  compensate(
    name: string,
    undo: (step: WorkflowCompensationContext<Context>) => MaybePromise<unknown>,
    options?: CompensationOptions,
  ): Promise<void>;
  /**
   * C2: runs a branch that neither a cancel nor the deadline of the run reaches, also after one. Its own limit of time ends
   * it, by default after 10 minutes.
   */
  uncancellable<Value>(
    branch: (ctx: WorkflowContext<Context>) => Promise<Value & Serializable<Value>>,
    options?: UncancellableOptions,
  ): Promise<Value>;
  /**
   * Like `race`, but the first branch that succeeds wins. If all fail, throws the error of the first one in declaration
   * order, whose `details.branches` list all.
   */
  any<Value>(
    branches: Readonly<Record<string, WorkflowBranchOrHandle<Value, Context>>>,
  ): Promise<{ readonly winner: string; readonly value: Value }>;
  /**
   * Calls a function for each item, each with a `ctx` of its own, and waits for all of them. An error is the result of its
   * item: the others continue. The results have the order of the items and the form of `Promise.allSettled`.
   */
  map<Item, Value>(
    items: readonly Item[],
    perform: (
      item: Item,
      ctx: WorkflowContext<Context>,
      index: number,
    ) => Promise<Value & Serializable<Value>>,
    options?: MapOptions,
  ): Promise<readonly SettledItem<Value>[]>;
  /**
   * Starts a run of another workflow and returns a handle to it. The run is created with the record of this call: a replay
   * starts no second one. It takes no seat of this run. The workflow must be one of the `agents` of this one, or registered
   * with the runtime.
   */
  start<Input, Output>(
    workflow: HostedWorkflow<Input, Output>,
    input: NoInfer<Input>,
    options?: StartRunOptions,
  ): Promise<StartedWorkflow<Output>>;
  /** Starts a run of another workflow, waits for its end, and returns its output. */
  call<Input, Output>(
    workflow: HostedWorkflow<Input, Output>,
    input: NoInfer<Input>,
    options?: StartRunOptions,
  ): Promise<Output>;
  /**
   * Starts a run of another workflow, now or after `delayMs`, and does not wait for it. The run continues when this one has
   * ended. Returns its id.
   */
  send<Input>(workflow: HostedWorkflow<Input>, input: NoInfer<Input>, options?: SendOptions): Promise<RunId>;
  /** Sends a message to the inbox of an agent. */
  send(agentId: AgentId, body: JsonValue): Promise<void>;
  /**
   * L19: returns one key of an object, to call its handlers: `await ctx.object(counter, "a").add(1)`. A call starts a run
   * like `start`, so that a replay does not repeat it. The object must be one of the `agents` of this workflow, or
   * registered with the runtime. A call that waits for a key which this run holds is refused.
   */
  object<State, Handlers>(object: HostedObject<State, Handlers>, key: string): ObjectCalls<Handlers>;
  /** Opens something that cannot be journaled. `close` is called when the task ends or is dropped; a replay opens it again. */
  resource<Value>(open: () => Promise<Value>, close: (value: Value) => Promise<void>): Promise<Value>;
  /** C2: throws if the workflow is cancelled or past its deadline. Passes while recorded steps remain in this scope. */
  check(): void;
}

/** The interface through which a shared handler of an object does its work. */
export interface SharedObjectContext<State = JsonValue, Context = unknown> extends Omit<
  WorkflowContext<Context>,
  "continueAsNew"
> {
  /** Key of the object. */
  readonly key: string;
  /**
   * The state of the key: what it was when the handler started, and what the handler has set since. Do not change it in
   * place; use `setState`. Throws `invalid_argument` if the stored state does not match the schema.
   */
  readonly state: State;
}

/** The interface through which a handler of an object does its work. No other handler of the key runs meanwhile, except shared ones. */
export interface ObjectContext<State = JsonValue, Context = unknown> extends SharedObjectContext<
  State,
  Context
> {
  /**
   * Replaces the state of the key. It is stored together with the record of the next step, before the effect of that step
   * begins, or with the end of the handler: after a crash neither or both exist. Only the handler itself may call it, neither a
   * branch nor the body of a step.
   */
  setState(state: State): void;
  /** Removes the state of the key, so that it has the default of the schema. Otherwise like `setState`. */
  clearState(): void;
}
