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
  /**
   * Context for steps inside the compensation, such as a call of an agent. A cancel of the run does not reach these
   * steps.
   */
  readonly ctx: WorkflowContext<Context>;
}

/**
 * One branch of `parallel` or `race`. Its steps must use the `ctx` that it receives and not the outer one, because
 * each branch has its own scope in the journal (J2).
 */
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
   * The handle of the value. Its `result` waits for the value, and throws the error of a rejected promise. In the
   * scope that created it, `await promise` does the same.
   */
  readonly promise: DurableHandle<Value> & PromiseLike<Value>;
}

/** Options of `WorkflowContext.handleUpdate`. */
export interface HandleUpdateOptions<Value = unknown> {
  /** Milliseconds after which the wait ends without an update. Default: no limit. */
  readonly timeoutMs?: number;
  /**
   * Checks the value before the update is accepted. If it throws or returns `false`, the update is refused. Its
   * decision must depend only on the value and on results of earlier steps.
   */
  readonly validate?: (value: Value) => MaybePromise<boolean | void>;
}

/** How an update ended. */
export type HandledUpdate<Value, Reply> =
  | { readonly status: "completed"; readonly value: Value; readonly reply: Reply }
  | { readonly status: "failed"; readonly value: Value; readonly error: Failure };

/**
 * A handle of a value that is available later, such as the output of a run that `ctx.start` has started. J2: the
 * handle itself is not an open call, so that other calls may be made before the code awaits it; a call of `result`
 * is an open call. `parallel`, `race` and `any` accept a handle in place of a branch.
 */
export interface DurableHandle<Value> {
  /**
   * Waits for the value. It may be called several times. `ctx` is the context in which the code waits: in a branch,
   * pass the `ctx` of the branch. Default: the context that created the handle.
   */
  result(ctx?: WorkflowContext): Promise<Value>;
}

/** A run that `ctx.start` has started. */
export interface StartedWorkflow<Output> extends DurableHandle<Output> {
  /** Id of the run. */
  readonly runId: RunId;
  /**
   * Waits for the end of the run and returns its output. If the run ends without an output, throws `child_failed`,
   * whose details have the `runId`, `status` and `failure` of the run.
   */
  result(ctx?: WorkflowContext): Promise<Output>;
  /** C1: cancels the run. Returns without waiting for its end. */
  cancel(reason: string, ctx?: WorkflowContext): Promise<void>;
}

/** A branch of `parallel`, `race` or `any`: a function that uses the `ctx` that it receives, or a durable handle. */
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

/** Options with which a workflow or a handler calls an object. They mean the same as in `ctx.start`. */
export type ObjectStartOptions = Omit<StartRunOptions, "priority">;

/** Options with which a workflow or a handler calls an object without waiting for the result. */
export type ObjectSendOptions = Omit<ObjectStartOptions, "onParentEnd">;

/**
 * One key of an object, as a workflow or a handler calls it. Each handler is a method that waits for the handler's
 * result.
 */
export type ObjectCalls<Handlers> = {
  readonly [Name in keyof Handlers]: (
    ...given: HandlerArguments<Handlers[Name], ObjectStartOptions>
  ) => Promise<HandlerOutput<Handlers[Name]>>;
} & {
  /** Calls handlers and returns a durable handle of each result, like `ctx.start`. */
  readonly start: {
    readonly [Name in keyof Handlers]: (
      ...given: HandlerArguments<Handlers[Name], ObjectStartOptions>
    ) => Promise<StartedWorkflow<HandlerOutput<Handlers[Name]>>>;
  };
  /** Calls handlers without waiting for them, like `ctx.send`. A call returns the id of its run. */
  readonly send: {
    readonly [Name in keyof Handlers]: (
      ...given: HandlerArguments<Handlers[Name], ObjectSendOptions>
    ) => Promise<RunId>;
  };
};

/**
 * The interface through which a workflow does its work (`ctx`). Each asynchronous method except `resource` is
 * journaled: it runs once, its result or error is recorded, and after a crash the same call returns the record (J1,
 * J5). The code around these calls runs again from the start. Its decisions must therefore depend only on their
 * results: `now`, `random` and `uuid` replace `Date.now()`, `Math.random()` and `crypto.randomUUID()`.
 *
 * J2: a scope has at most one journaled call in flight; a second one fails with `journal_ambiguous`. Use
 * `parallel`, `map`, `race` or `any` for concurrent work. A `DurableHandle` is not a call in flight, but awaiting
 * it is. Code also fails with `journal_ambiguous` if it returns while a call is in flight, or after a call has
 * failed that the code did not await.
 */
export interface WorkflowContext<Context = unknown, Input = JsonValue> {
  /** Id of the run. */
  readonly runId: RunId;
  /** Tenant, user, run, metadata and live context of the run. */
  readonly facts: Omit<RunFacts<Context>, "sessionId">;
  /** Aborted when the workflow is cancelled, and when this process drops the workflow, for example to suspend it. */
  readonly signal: CancelSignal;
  /**
   * Runs an effect and records its result. J6: the body runs at least once, its result is recorded exactly once.
   * Pass `idempotencyKey`, which is the same on every attempt, to services that detect repeated requests. A body
   * that throws is retried, by default up to 5 times within 10 minutes; `retry: false` switches retries off, and a
   * `FatalError` ends the step at once. A body that returns nothing has the value `null`.
   */
  step<Value>(
    name: string,
    body: (step: WorkflowStepContext) => MaybePromise<Value & Serializable<Value>>,
    options?: StepOptions,
  ): Promise<RecordedValue<Value>>;
  /**
   * J9: tells code that was changed whether to take its new path: `if (ctx.patched("vat-2027")) { ... }`. Returns
   * `false` in a run that was already beyond this place when the change was deployed, and `true` in all other runs.
   * The first call with a name decides for the run, and the decision is recorded.
   */
  patched(name: string): boolean;
  /**
   * J8: ends the journal of this run and starts the function again with `input`, which is checked like the input of
   * a new run. The run keeps its id, its budget, its live children and the signals that it has not read. Steps and
   * registered compensations begin anew. Only the function itself may call it, not a branch: `return
   * ctx.continueAsNew(input)`. The code after the call does not run, not even `catch` and `finally` blocks.
   */
  continueAsNew(input: Input): Promise<never>;
  /** Returns the current time in epoch milliseconds. Recorded: a replay returns the same time. */
  now(): Promise<number>;
  /** Returns a random number from 0 (inclusive) to 1 (exclusive). Recorded: a replay returns the same number. */
  random(): Promise<number>;
  /** Returns a new unique id. Recorded: a replay returns the same id. */
  uuid(): Promise<string>;
  /**
   * Waits for a duration (milliseconds, or a text such as `2 hours`), or until a date. While it waits, the run
   * holds no slot and may be dropped from memory. The first call records the end time, so that a restart does not
   * wait again from the beginning.
   */
  sleep(time: Duration | Date): Promise<void>;
  /**
   * Runs a branch that may take at most `limit`. If the branch takes longer, the branch and its children are
   * cancelled, and the call throws `timeout`. The time limit continues over restarts.
   */
  timeout<Value>(
    limit: Duration,
    branch: (ctx: WorkflowContext<Context>) => Promise<Value & Serializable<Value>>,
  ): Promise<Value>;
  /**
   * Waits for a typed signal and returns its value, or `undefined` after the timeout. A signal that arrives before
   * the call is kept. Throws `invalid_argument` if a signal that was sent by name has a value that does not match
   * the schema; the next call takes the next signal.
   */
  waitForSignal<Value>(
    signal: Signal<never, Value>,
    options?: { readonly timeoutMs?: number },
  ): Promise<Value | undefined>;
  /**
   * Waits for a signal sent with `RunHandle.signal` and returns its value, or `undefined` after the timeout. A
   * signal that arrives before the call is kept.
   */
  waitForSignal(name: string, options?: { readonly timeoutMs?: number }): Promise<JsonValue | undefined>;
  /**
   * Waits for an update, runs the handler and sends the value that the handler returns as the reply. Returns how
   * the update ended, or `undefined` after the timeout. An update that arrives before the call is kept. `validate`
   * can refuse an update before it is accepted, if it throws or returns `false`: the sender of the update receives
   * the error, and the wait continues. An error of the handler is sent as the reply and does not end the run.
   */
  handleUpdate<Value, Returned, Reply>(
    update: Update<never, Value, Returned, Reply>,
    handler: (value: Value) => Promise<NoInfer<Returned>>,
    options?: HandleUpdateOptions<Value>,
  ): Promise<HandledUpdate<Value, Reply> | undefined>;
  /**
   * Sends a signal to another run, in the commit that records this call. A second signal with the same `id` has no
   * effect. Throws `not_found` if the run has ended, or does not exist in the tenant of this run (S6).
   */
  sendSignal<Given>(
    run: RunTarget,
    signal: Signal<Given, unknown>,
    value: NoInfer<Given>,
    options?: SignalOptions,
  ): Promise<void>;
  /** Sends a signal by name, like the other overload, without a schema. */
  sendSignal(run: RunTarget, name: string, value?: JsonValue, options?: SignalOptions): Promise<void>;
  /**
   * Creates a promise that any run, process or REST caller settles by its `id`. The call records no step: the id is
   * the same on every replay. `promise.result()` applies the schema, again on each replay, so that transforms of
   * the schema must be pure.
   */
  promise<const Source extends Schema = never>(
    schema?: Source,
  ): DurablePromise<[Source] extends [never] ? JsonValue : Infer<Source>>;
  /**
   * Resolves a promise of another run, in the commit that records this call. Has no effect on a promise that is
   * already settled. Throws `not_found` if the run of the promise has ended, or does not exist in the tenant of
   * this run (S6).
   */
  resolvePromise<Value>(id: string, value: Value & Serializable<Value>): Promise<void>;
  /**
   * Rejects a promise of another run, which receives an error with this code and message. Otherwise works like
   * `resolvePromise`.
   */
  rejectPromise(id: string, error: Error): Promise<void>;
  /**
   * Publishes a value that `run.read(name)` returns in any process, without waking the run. The next step commits
   * the value; if the function waits for something else, the runtime commits it at once. Throws `invalid_argument`
   * for a value that the schema refuses. With an asynchronous schema, this error is thrown only when the function
   * returns.
   */
  publish<Given>(query: Query<Given, unknown>, value: NoInfer<Given>): void;
  /** Publishes a value like the other overload, without a schema. */
  publish<Value>(name: string, value: Value & Serializable<Value>): void;
  /**
   * Asks a person and waits durably until `RunHandle.approve` answers. The time in which it waits does not count
   * for the deadline.
   */
  approval(question: PersonQuestion): Promise<ApprovalDecision>;
  /**
   * Runs an agent as a child task of this run and returns its answer. The agent must be one of the `agents` of the
   * workflow, or registered with the runtime. The child task takes a seat of this run, and its costs count against
   * the budget of this run. If all seats are taken, the call waits. If the agent ends without an answer, the call
   * throws `child_failed`, whose details name the status.
   */
  agent<const Output extends Schema = never>(
    agent: HostedAgent,
    input: string | readonly UserPart[],
    options?: CallAgentOptions<Output>,
  ): Promise<[Output] extends [never] ? string : Infer<Output>>;
  /**
   * Runs branches concurrently, each in its own scope, and waits for all of them. If branches fail, it throws the
   * fault of the first failed branch in declaration order. With `stopOnFault` it throws the first fault without
   * waiting for the other branches.
   */
  parallel<Branches extends Readonly<Record<string, WorkflowBranchOrHandle<unknown, Context>>>>(
    branches: Branches,
    options?: ParallelOptions,
  ): Promise<WorkflowBranchResults<Branches>>;
  /**
   * Runs branches concurrently. The first branch to settle wins. The other branches are cancelled, with their
   * children and the runs that they have started. If a handle is passed as a branch and loses, its run continues.
   */
  race<Value>(
    branches: Readonly<Record<string, WorkflowBranchOrHandle<Value, Context>>>,
  ): Promise<{ readonly winner: string; readonly value: Value }>;
  /**
   * Registers a compensation, which is a function that undoes earlier work. Call it after the step that did the
   * work. If the workflow fails, is cancelled or passes its deadline, the registered functions run in reverse order
   * before the run ends. Each runs as a step of this name: it is retried like a step, and no cancel reaches it. A
   * compensation that fails is reported, and the next ones follow. After the first compensation has started, the
   * run cannot be resumed. A workflow that completes, is paused or stops at its budget runs no compensation; if it
   * is cancelled after it stopped at its budget, its compensations run.
   */
  compensate(
    name: string,
    undo: (step: WorkflowCompensationContext<Context>) => MaybePromise<unknown>,
    options?: CompensationOptions,
  ): Promise<void>;
  /**
   * C2: runs a branch that neither a cancel nor the deadline of the run reaches, also after a cancel. Only its own
   * time limit ends it, by default after 10 minutes.
   */
  uncancellable<Value>(
    branch: (ctx: WorkflowContext<Context>) => Promise<Value & Serializable<Value>>,
    options?: UncancellableOptions,
  ): Promise<Value>;
  /**
   * Runs branches concurrently. The first branch that succeeds wins, and the other branches are cancelled, as in
   * `race`. If all branches fail, throws the error of the first one in declaration order, whose `details.branches`
   * list all errors.
   */
  any<Value>(
    branches: Readonly<Record<string, WorkflowBranchOrHandle<Value, Context>>>,
  ): Promise<{ readonly winner: string; readonly value: Value }>;
  /**
   * Calls a function for each item, each with its own `ctx`, and waits for all calls. An error becomes the result
   * of its item and does not end the calls for the other items. The results have the order of the items and the
   * form of `Promise.allSettled`.
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
   * Starts a run of another workflow and returns a handle to it. The commit that records this call also creates the
   * run, so that a replay starts no second run. The new run takes no seat of this run. The workflow must be one of
   * the `agents` of this one, or registered with the runtime.
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
   * Starts a run of another workflow, now or after `delayMs`, and returns its id without waiting for it. The new
   * run continues when this run has ended.
   */
  send<Input>(workflow: HostedWorkflow<Input>, input: NoInfer<Input>, options?: SendOptions): Promise<RunId>;
  /** Sends a message to the inbox of an agent. */
  send(agentId: AgentId, body: JsonValue): Promise<void>;
  /**
   * L19: returns one key of an object, to call its handlers: `await ctx.object(counter, "a").add(1)`. A call starts
   * a run like `start`, so that a replay does not repeat it. The object must be one of the `agents` of this
   * workflow, or registered with the runtime. If the code waits for a call of a key on which this run itself works,
   * the call throws, because it could never start.
   */
  object<State, Handlers>(object: HostedObject<State, Handlers>, key: string): ObjectCalls<Handlers>;
  /**
   * Opens something that cannot be journaled, such as a connection. `close` is called when the task ends or is
   * dropped; a replay calls `open` again.
   */
  resource<Value>(open: () => Promise<Value>, close: (value: Value) => Promise<void>): Promise<Value>;
  /**
   * C2: throws if the workflow is cancelled or past its deadline. During a replay it does not throw while this
   * scope has recorded steps that the replay has not reached.
   */
  check(): void;
}

/**
 * The interface through which a shared handler of an object does its work. A shared handler only reads the state
 * and can run at the same time as other handlers.
 */
export interface SharedObjectContext<State = JsonValue, Context = unknown> extends Omit<
  WorkflowContext<Context>,
  "continueAsNew"
> {
  /** Key of the object. */
  readonly key: string;
  /**
   * The state of the key: its value when the handler started, or the value that the handler has set since. Do not
   * change it in place; use `setState`. Throws `invalid_argument` if the stored state does not match the schema.
   */
  readonly state: State;
}

/**
 * The interface through which a handler of an object does its work. While it runs, only shared handlers of the same
 * key can run.
 */
export interface ObjectContext<State = JsonValue, Context = unknown> extends SharedObjectContext<
  State,
  Context
> {
  /**
   * Replaces the state of the key. The state is stored together with the record of the next step, before the effect
   * of that step begins, or with the end of the handler. After a crash, both the state and the record exist, or
   * neither does. Only the handler itself may call it, not a branch and not the body of a step.
   */
  setState(state: State): void;
  /** Removes the state of the key, so that `state` is the default of the schema. Otherwise works like `setState`. */
  clearState(): void;
}
