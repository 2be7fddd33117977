import { isDeepStrictEqual } from "node:util";
import { ScopeCalls } from "./scope-calls.ts";
import { callAgent } from "./workflow-agent.ts";
import {
  handleUpdateTable,
  notABranch,
  notBranches,
  requireHandler,
  sendTable,
} from "./workflow-arguments.ts";
import { PromiseHandle, StartedWorkflowRun, type HandleScope, type ScopeOf } from "./workflow-handles.ts";
import { messageReader, ReadOnce } from "./workflow-messages.ts";
import { objectCallId, rejectionOf, retriedStep } from "../runtime/index.ts";
import {
  defaultStepRetry,
  describeValue,
  Fault,
  readProperty,
  outcomeStatus,
  requireObject,
  requireMessage,
  requireObjectKey,
  requireWorkflow,
  withKnownHandlers,
  type AgentId,
  type ApprovalDecision,
  type CallAgentOptions,
  type CancelSignal,
  type CompensationContext,
  type CompensationOptions,
  type DurablePromise,
  type Duration,
  type HandledUpdate,
  type HandleUpdateOptions,
  type HostedAgent,
  type HostedObject,
  type HostedWorkflow,
  type Infer,
  type JsonObject,
  type JsonValue,
  type MapOptions,
  type MaybePromise,
  type ObjectCall,
  type ObjectCalls,
  type ObjectSendOptions,
  type ObjectStartOptions,
  type ParallelOptions,
  type PersonQuestion,
  type Query,
  type RecordedValue,
  type RunContext,
  type RunFacts,
  type RunId,
  type RunTarget,
  type Schema,
  type SendOptions,
  type Serializable,
  type SettledItem,
  type Signal,
  type SignalOptions,
  type StartedWorkflow,
  type StartRunOptions,
  type StepOptions,
  type Update,
  type UncancellableOptions,
  type UserPart,
  type WorkflowBranch,
  type WorkflowBranchOrHandle,
  type WorkflowBranchResults,
  type WorkflowCompensationContext,
  type WorkflowContext,
  type WorkflowStepContext,
} from "../kernel/index.ts";

/** The context of a workflow's function or of one of its branches. Each of its methods calls the run context. */
export class WorkflowScope<Context> implements WorkflowContext<Context>, HandleScope {
  readonly #ctx: RunContext;
  /** Checks the input of `continueAsNew`. Absent in a branch, which cannot call it. */
  readonly #readInput: ((input: JsonValue) => MaybePromise<JsonValue>) | undefined;
  readonly #calls = new ScopeCalls();
  /** Possible refusals of published values whose schema is asynchronous. Created for the first such value. */
  #refusals: Promise<Fault | undefined>[] | undefined;
  /** Decides where handles of this scope wait: in this scope, or in the scope that their caller passes. */
  readonly #waits: ScopeOf = (call, ctx = this) => {
    if (ctx instanceof WorkflowScope) return ctx;
    throw new Fault(
      "invalid_argument",
      `invalid ctx ${describeValue(ctx)} of ${call}: expected the ctx of the workflow or of a branch`,
    );
  };

  constructor(ctx: RunContext, readInput?: (input: JsonValue) => MaybePromise<JsonValue>) {
    this.#ctx = ctx;
    this.#readInput = readInput;
  }

  /**
   * Executes the code of this scope. Throws if the code ends before it has awaited its calls (rule J2). `name` describes the
   * code in words.
   */
  async run<Value>(name: string, code: (ctx: this) => MaybePromise<Value>): Promise<Value> {
    const value = await code(this);
    const refused = (await Promise.all(this.#refusals ?? [])).find((each) => each !== undefined);
    if (refused !== undefined) throw refused;
    this.#calls.requireAwaited(`the end of ${name}`);
    return value;
  }

  /** Follows a call of this scope to its end. `about` is the call's first argument, if it is a text. */
  #follow<Value>(method: string, work: () => Promise<Value>, about?: unknown): Promise<Value> {
    return this.#calls.follow(method, about, work());
  }

  get runId(): RunId {
    return this.#ctx.facts.runId;
  }

  get facts(): Omit<RunFacts<Context>, "sessionId"> {
    return this.#ctx.facts as RunFacts<Context>;
  }

  get signal(): CancelSignal {
    return this.#ctx.signal;
  }

  step<Value>(
    name: string,
    body: (step: WorkflowStepContext) => MaybePromise<Value & Serializable<Value>>,
    options?: StepOptions,
  ): Promise<RecordedValue<Value>> {
    const retried =
      typeof options === "object" && options !== null
        ? { ...options, retry: options.retry ?? defaultStepRetry }
        : (options ?? retriedStep);
    // The record of a body that returns nothing is `null`, because a record is JSON (J10).
    const perform = body as (step: WorkflowStepContext) => Promise<never>;
    return this.#calls.follow("step", name, this.#ctx.step<never>(name, perform, retried));
  }

  patched(name: string): boolean {
    return this.#ctx.patched(name);
  }

  continueAsNew(input: JsonValue): Promise<never> {
    return this.#follow("continueAsNew", () => this.#continueAsNew(input));
  }

  async #continueAsNew(input: JsonValue): Promise<never> {
    if (this.#readInput === undefined)
      throw new Fault(
        "invalid_argument",
        "ctx.continueAsNew() was called in a branch, which cannot end the other branches; call it in the function of the workflow, with the ctx that it received",
      );
    if (input === undefined)
      throw new Fault(
        "invalid_argument",
        "missing input of ctx.continueAsNew(): expected the input of the next history; use ctx.continueAsNew(input), with null for a workflow that takes none",
      );
    return this.#ctx.continueAsNew(await this.#readInput(input));
  }

  now(): Promise<number> {
    return this.#follow("now", () => this.#ctx.now());
  }

  random(): Promise<number> {
    return this.#follow("random", () => this.#ctx.random());
  }

  uuid(): Promise<string> {
    return this.#follow("uuid", () => this.#ctx.uuid());
  }

  sleep(time: Duration | Date): Promise<void> {
    return this.#follow("sleep", () => this.#ctx.sleep(time), time);
  }

  timeout<Value>(
    limit: Duration,
    branch: (ctx: WorkflowContext<Context>) => Promise<Value & Serializable<Value>>,
  ): Promise<Value> {
    return this.#follow(
      "timeout",
      async () => this.#ctx.timeout(limit, this.#branch("timeout", branch)) as Promise<Value>,
    );
  }

  waitForSignal<Value>(
    signal: Signal<never, Value>,
    options?: { readonly timeoutMs?: number },
  ): Promise<Value | undefined>;
  waitForSignal(name: string, options?: { readonly timeoutMs?: number }): Promise<JsonValue | undefined>;
  waitForSignal(
    signal: string | Signal<never, unknown>,
    options?: { readonly timeoutMs?: number },
  ): Promise<unknown> {
    const name = typeof signal === "string" ? signal : readProperty(signal, "name");
    return this.#follow("waitForSignal", () => this.#waitForSignal(signal, options), name);
  }

  async #waitForSignal(
    signal: string | Signal<never, unknown>,
    options: { readonly timeoutMs?: number } | undefined,
  ): Promise<unknown> {
    requireMessage("signal", "ctx.waitForSignal()", signal);
    if (typeof signal === "string") return this.#ctx.waitForSignal(signal, options);
    const read = new ReadOnce((value) => signal.read(value));
    const value = await this.#ctx.waitForSignal(signal.name, { ...options, accept: read.accept });
    return value === undefined ? undefined : read.valueOf(value);
  }

  handleUpdate<Value, Returned, Reply>(
    update: Update<never, Value, Returned, Reply>,
    handler: (value: Value) => Promise<Returned>,
    options: HandleUpdateOptions<Value> = {},
  ): Promise<HandledUpdate<Value, Reply> | undefined> {
    const name = readProperty(update, "name");
    return this.#follow("handleUpdate", () => this.#handleUpdate(update, handler, options), name);
  }

  async #handleUpdate<Value, Returned, Reply>(
    update: Update<never, Value, Returned, Reply>,
    handler: (value: Value) => Promise<Returned>,
    options: HandleUpdateOptions<Value>,
  ): Promise<HandledUpdate<Value, Reply> | undefined> {
    const { timeoutMs, validate } = handleUpdateTable.read("ctx.handleUpdate()", options);
    requireHandler(update, handler);
    const ctx = this.#ctx;
    const received = await ctx.waitForUpdate(update.name, {
      ...(timeoutMs !== undefined && { timeoutMs }),
      accept: async (sent) => {
        const value = await update.read(sent);
        // A body that is not type-checked may return anything.
        if ((await validate?.(value)) !== false) return;
        throw new Fault(
          "update_refused",
          `validate of ctx.handleUpdate(${JSON.stringify(update.name)}) refused the value by returning false; send another one`,
        );
      },
    });
    if (received === undefined) return undefined;
    const value = await update.read(received.value);
    let reply: JsonValue;
    try {
      reply = (await update.readReply((await handler(value)) ?? null)) as JsonValue;
    } catch (error) {
      // A cancel ends the run, and no reply follows.
      ctx.check();
      const failure = Fault.from(error).toJSON();
      await ctx.answerUpdate(update.name, received, { status: "failed", failure });
      return { status: "failed", value, error: failure };
    }
    await ctx.answerUpdate(update.name, received, { status: "completed", value: reply });
    return { status: "completed", value, reply: reply as Reply };
  }

  sendSignal(
    run: RunTarget,
    signal: string | Signal<never, unknown>,
    given: unknown = null,
    options?: SignalOptions,
  ): Promise<void> {
    return this.#follow("sendSignal", () => this.#sendSignal(run, signal, given, options));
  }

  async #sendSignal(
    run: RunTarget,
    signal: string | Signal<never, unknown>,
    given: unknown,
    options: SignalOptions | undefined,
  ): Promise<void> {
    requireMessage("signal", "ctx.sendSignal()", signal);
    const value = given as JsonValue;
    if (typeof signal !== "string") await signal.read(value);
    const runId = typeof run === "string" ? run : readProperty(run, "runId");
    if (typeof runId !== "string")
      throw new Fault(
        "invalid_argument",
        `invalid run ${describeValue(run)} of ctx.sendSignal(): expected the id or the handle of a run; use "run_..." or handle.runId`,
      );
    await this.#ctx.sendSignal(runId, typeof signal === "string" ? signal : signal.name, value, options);
  }

  promise<const Source extends Schema = never>(
    schema?: Source,
  ): DurablePromise<[Source] extends [never] ? JsonValue : Infer<Source>> {
    const id = this.#ctx.newPromise();
    const read = messageReader("promise", schema);
    return { id, promise: new PromiseHandle<never>(this.#waits, id, read) };
  }

  /** Waits until a promise is settled, and returns its value, converted by the schema. */
  waitForPromise<Value>(id: string, schema: (value: JsonValue) => MaybePromise<Value>): Promise<Value> {
    return this.#follow("promise", async () => {
      const read = new ReadOnce(schema);
      return read.valueOf(await this.#ctx.waitForPromise(id, { accept: read.accept }));
    });
  }

  resolvePromise(id: string, value: unknown): Promise<void> {
    const resolved = { status: "resolved", value: (value ?? null) as JsonValue } as const;
    return this.#follow("resolvePromise", () => this.#ctx.settlePromise(id, resolved), id);
  }

  rejectPromise(id: string, error: unknown): Promise<void> {
    return this.#follow("rejectPromise", () => this.#ctx.settlePromise(id, rejectionOf(error)), id);
  }

  publish(query: string | Query<never, unknown>, value: unknown): void {
    requireMessage("query", "ctx.publish()", query);
    const given = (value ?? null) as JsonValue;
    if (typeof query === "string") return this.#ctx.publish(query, given);
    const refusal = query.refusalOf(given);
    if (refusal instanceof Promise) (this.#refusals ??= []).push(refusal);
    else if (refusal !== undefined) throw refusal;
    this.#ctx.publish(query.name, given);
  }

  approval(question: PersonQuestion): Promise<ApprovalDecision> {
    return this.#follow("approval", () => this.#ctx.approval(question));
  }

  agent<const Output extends Schema = never>(
    agent: HostedAgent,
    input: string | readonly UserPart[],
    options?: CallAgentOptions<Output>,
  ): Promise<[Output] extends [never] ? string : Infer<Output>> {
    const id = readProperty(agent, "id");
    return this.#follow("agent", () => callAgent(this.#ctx, agent, input, options), id);
  }

  parallel<Branches extends Readonly<Record<string, WorkflowBranchOrHandle<unknown, Context>>>>(
    branches: Branches,
    options?: ParallelOptions,
  ): Promise<WorkflowBranchResults<Branches>> {
    return this.#follow(
      "parallel",
      async () =>
        this.#ctx.parallel(this.#scoped("parallel", branches), options) as Promise<
          WorkflowBranchResults<Branches>
        >,
    );
  }

  race<Value>(
    branches: Readonly<Record<string, WorkflowBranchOrHandle<Value, Context>>>,
  ): Promise<{ readonly winner: string; readonly value: Value }> {
    return this.#follow("race", async () => this.#ctx.race(this.#scoped("race", branches)));
  }

  compensate(
    name: string,
    undo: (step: WorkflowCompensationContext<Context>) => MaybePromise<unknown>,
    options?: CompensationOptions,
  ): Promise<void> {
    const run = async ({ ctx, ...step }: CompensationContext): Promise<void> => {
      const scope = new WorkflowScope<Context>(ctx);
      await scope.run(`compensation ${name}`, () => undo({ ...step, ctx: scope }));
    };
    const checked = typeof undo === "function" ? run : undo;
    return this.#follow("compensate", () => this.#ctx.compensate(name, checked, options), name);
  }

  uncancellable<Value>(
    branch: (ctx: WorkflowContext<Context>) => Promise<Value & Serializable<Value>>,
    options?: UncancellableOptions,
  ): Promise<Value> {
    return this.#follow(
      "uncancellable",
      async () => this.#ctx.uncancellable(this.#branch("uncancellable", branch), options) as Promise<Value>,
    );
  }

  any<Value>(
    branches: Readonly<Record<string, WorkflowBranchOrHandle<Value, Context>>>,
  ): Promise<{ readonly winner: string; readonly value: Value }> {
    return this.#follow("any", async () => this.#ctx.any(this.#scoped("any", branches)));
  }

  map<Item, Value>(
    items: readonly Item[],
    perform: (
      item: Item,
      ctx: WorkflowContext<Context>,
      index: number,
    ) => Promise<Value & Serializable<Value>>,
    options?: MapOptions,
  ): Promise<readonly SettledItem<Value>[]> {
    const each = async (item: Item, ctx: RunContext, index: number): Promise<JsonValue> => {
      const work = (own: WorkflowContext<Context>): Promise<unknown> => perform(item, own, index);
      const value = await new WorkflowScope<Context>(ctx).run(`item ${index} of ctx.map()`, work);
      return (value ?? null) as JsonValue;
    };
    const checked = typeof perform === "function" ? each : perform;
    return this.#follow(
      "map",
      () => this.#ctx.map(items, checked, options) as Promise<readonly SettledItem<Value>[]>,
    );
  }

  start<Input, Output>(
    workflow: HostedWorkflow<Input, Output>,
    input: NoInfer<Input>,
    options?: StartRunOptions,
  ): Promise<StartedWorkflow<Output>> {
    return this.#follow("start", () => this.#start(workflow, input, options), readProperty(workflow, "name"));
  }

  async #start<Output>(
    workflow: HostedWorkflow<never, Output>,
    input: unknown,
    options: StartRunOptions | undefined,
  ): Promise<StartedWorkflowRun<Output>> {
    requireWorkflow("ctx.start()", workflow);
    const { runId } = await this.#ctx.start(workflow.id, input as JsonValue, options);
    return new StartedWorkflowRun<Output>(this.#waits, runId, workflow.name);
  }

  call<Input, Output>(
    workflow: HostedWorkflow<Input, Output>,
    input: NoInfer<Input>,
    options?: StartRunOptions,
  ): Promise<Output> {
    const call = async (): Promise<Output> => {
      this.#refuseSelfCall(workflow, input);
      return this.#call(workflow, input, options);
    };
    return this.#follow("call", call, readProperty(workflow, "name"));
  }

  /**
   * Throws for a call of this workflow with the same input as this run, because the called run would make the same call again
   * without end.
   */
  #refuseSelfCall(workflow: unknown, input: unknown): void {
    const own = this.#ctx;
    if (readProperty(workflow, "id") !== own.agentId || !isDeepStrictEqual(input, own.input)) return;
    throw new Fault(
      "invalid_argument",
      `invalid input of ctx.call(): this run of ${own.agentId} has the same input, so each run would start the next one without end; pass another input, or use ctx.continueAsNew() to repeat work`,
    );
  }

  async #call<Output>(
    workflow: HostedWorkflow<never, Output>,
    input: unknown,
    options: StartRunOptions | undefined,
  ): Promise<Output> {
    const { runId } = await this.#start(workflow, input, options);
    return this.#join(runId, workflow.name) as Promise<Output>;
  }

  send<Input>(workflow: HostedWorkflow<Input>, input: NoInfer<Input>, options?: SendOptions): Promise<RunId>;
  send(agentId: AgentId, body: JsonValue): Promise<void>;
  send(target: HostedWorkflow<never> | AgentId, body: unknown, options?: SendOptions): Promise<RunId | void> {
    const name = typeof target === "string" ? target : readProperty(target, "name");
    return this.#follow("send", () => this.#send(target, body, options), name);
  }

  async #send(
    target: HostedWorkflow<never> | AgentId,
    body: unknown,
    options: SendOptions | undefined,
  ): Promise<RunId | void> {
    if (typeof target === "string") {
      if (options !== undefined)
        throw new Fault(
          "invalid_argument",
          `invalid options of ctx.send() to agent ${target}: a message to the inbox of an agent takes no options; use ctx.sleep() before it, or send to a workflow`,
        );
      return this.#ctx.send(target, body as JsonValue);
    }
    requireWorkflow("ctx.send()", target);
    const given = sendTable.read("ctx.send()", options ?? {});
    const { runId } = await this.#ctx.start(target.id, body as JsonValue, {
      ...given,
      onParentEnd: "abandon",
    });
    return runId;
  }

  object<State, Handlers>(object: HostedObject<State, Handlers>, key: string): ObjectCalls<Handlers> {
    requireObject("ctx.object()", object);
    const { name, handlerNames } = object;
    requireObjectKey(`object ${name}`, key);
    const { tenantId } = this.facts;
    type Options = ObjectStartOptions & ObjectSendOptions;
    type Given = [input?: JsonValue, options?: Options];
    const methods = (begin: (call: ObjectCall, options: Options) => Promise<unknown>): object =>
      Object.fromEntries(
        handlerNames.map((handler) => [
          handler,
          (...[input = null, options]: Given) => {
            // An id belongs to the key, and not to all runs.
            const { id } = options ?? {};
            const own = typeof id === "string" ? { id: objectCallId(tenantId, { name, key }, id) } : {};
            return begin({ handler, key, input }, { ...options, ...own });
          },
        ]),
      );
    const known = <Calls extends object>(member: string, calls: Calls): Calls =>
      withKnownHandlers(object, `ctx.object(${name}, key)${member}`, calls);
    const follow = (begin: () => Promise<unknown>): Promise<unknown> => this.#follow("object", begin, name);
    return known("", {
      ...methods((call, options) => follow(() => this.#call(object, call, options))),
      start: known(
        ".start",
        methods((call, options) => follow(() => this.#start(object, call, options))),
      ),
      send: known(
        ".send",
        methods((call, options) => follow(() => this.#send(object, call, options))),
      ),
    } as ObjectCalls<Handlers>);
  }

  /** Returns the state of the object key to which the run belongs (L19). */
  objectState(): Promise<JsonValue | undefined> {
    return this.#ctx.objectState();
  }

  setObjectState(state: JsonValue | undefined): void {
    this.#ctx.setObjectState(state);
  }

  /** The context of the task, for a scope with additional methods. */
  get runContext(): RunContext {
    return this.#ctx;
  }

  /** Waits in this scope for the end of a started run. */
  joinRun(runId: RunId, name: string): Promise<unknown> {
    return this.#follow("start", () => this.#join(runId, name), name);
  }

  async #join(runId: RunId, name: string): Promise<unknown> {
    const outcome = await this.#ctx.join({ runId });
    if (outcome.status === "completed") return outcome.output;
    const { failure } = outcome;
    const status = outcomeStatus(outcome);
    throw new Fault(
      "child_failed",
      `workflow ${name} ended as ${status} in ${runId}${failure === null ? "" : `: ${failure.message}`}`,
      {
        details: {
          runId,
          status,
          ...(failure !== null && { failure: failure as unknown as JsonObject }),
        },
      },
    );
  }

  cancelRun(runId: RunId, reason: string): Promise<void> {
    return this.#follow("start", () => this.#ctx.cancel({ runId }, reason), runId);
  }

  resource<Value>(open: () => Promise<Value>, close: (value: Value) => Promise<void>): Promise<Value> {
    return this.#follow("resource", () => this.#ctx.resource(open, close));
  }

  check(): void {
    this.#ctx.check();
  }

  /**
   * Returns a branch whose value is recorded. If the branch returns nothing, its value is `null`, because recorded values
   * must be JSON (J10).
   */
  #branch(method: string, branch: WorkflowBranch<unknown, Context>): (ctx: RunContext) => Promise<JsonValue> {
    const caller = `ctx.${method}()`;
    if (typeof branch !== "function") throw notABranch(caller, branch);
    return async (ctx) =>
      ((await new WorkflowScope<Context>(ctx).run(`the branch of ${caller}`, branch)) ?? null) as JsonValue;
  }

  #scoped<Value>(
    method: string,
    branches: Readonly<Record<string, WorkflowBranchOrHandle<Value, Context>>>,
  ): Record<string, (ctx: RunContext) => Promise<Value>> {
    const caller = `ctx.${method}()`;
    if (typeof branches !== "object" || branches === null || Array.isArray(branches))
      throw notBranches(caller, branches);
    const scoped = Object.entries(branches).map(([name, branch]) => {
      if (typeof branch !== "function" && typeof readProperty(branch, "result") !== "function")
        throw notABranch(caller, branch, name);
      return [
        name,
        (ctx: RunContext) => {
          const scope = new WorkflowScope<Context>(ctx);
          return typeof branch === "function"
            ? scope.run(`branch ${name} of ${caller}`, branch)
            : branch.result(scope);
        },
      ];
    });
    return Object.fromEntries(scoped) as Record<string, (ctx: RunContext) => Promise<Value>>;
  }
}
