import { outputReader } from "./answer-shape.ts";
import { messageReader } from "./workflow-messages.ts";
import { objectCallId, rejectionOf } from "../runtime/index.ts";
import { describeWorkerFailure, toWorkerResult } from "../agents/team/run-worker.ts";
import {
  describeValue,
  Fault,
  is,
  jsonText,
  optionTable,
  readProperty,
  reviveFault,
  spawnKinds,
  outcomeStatus,
  requireObject,
  requireObjectKey,
  requireWorkflow,
  startRunKinds,
  type AgentId,
  type ApprovalDecision,
  type CallAgentOptions,
  type CancelSignal,
  type CompensationContext,
  type CompensationOptions,
  type DurableHandle,
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
  type OptionKinds,
  type ParallelOptions,
  type PersonQuestion,
  type Query,
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

const callTable = optionTable({
  budget: spawnKinds.budget,
  priority: spawnKinds.priority,
  role: spawnKinds.role,
  output: is.any,
} satisfies OptionKinds<CallAgentOptions>);

const updateTable = optionTable({
  timeoutMs: is.number({ from: 0 }),
  validate: is.callback(),
} satisfies OptionKinds<HandleUpdateOptions>);
const { onParentEnd: _onParentEnd, ...sendKinds } = startRunKinds;
const sendTable = optionTable(sendKinds satisfies OptionKinds<SendOptions>);

/** Steps of a workflow are retried with the default settings. */
const defaultRetry: StepOptions = Object.freeze({ retry: Object.freeze({}) });

/** The scope in which a handle waits. `call` names the call, such as `result() of a promise`. */
function scopeOf(call: string, ctx: unknown): WorkflowScope<unknown> {
  if (ctx instanceof WorkflowScope) return ctx as WorkflowScope<unknown>;
  throw new Fault(
    "invalid_argument",
    `invalid ctx ${describeValue(ctx)} of ${call}: expected the ctx of the workflow or of a branch`,
  );
}

/** Refuses an update without a schema and a handler that is no function. */
function requireHandler(update: unknown, handler: unknown): void {
  if (typeof readProperty(update, "readReply") !== "function")
    throw new Fault(
      "invalid_argument",
      `invalid update ${describeValue(update)} of ctx.handleUpdate(): expected an update; use update("name", { input, output }) of reeve/workflow`,
    );
  if (typeof handler !== "function")
    throw new Fault(
      "invalid_argument",
      `invalid handler ${describeValue(handler)} of ctx.handleUpdate(): expected a function; use ctx.handleUpdate(update, async (value) => ...)`,
    );
}

function notABranch(caller: string, branch: unknown, name?: string): Fault {
  return new Fault(
    "invalid_argument",
    `invalid branch${name === undefined ? "" : ` ${name}`} of ${caller}: expected ${name === undefined ? "a function" : "a function or the handle of ctx.start()"}, not ${describeValue(branch)}; use async (branch) => branch.step(...)`,
  );
}

/** Refuses a signal that is neither a name nor one of `signal()`. */
function requireSignal(caller: string, signal: unknown): void {
  if (typeof signal === "string" || typeof readProperty(signal, "read") === "function") return;
  throw new Fault(
    "invalid_argument",
    `invalid signal ${describeValue(signal)} of ${caller}: expected a name or a signal; use signal("name", schema) of reeve/workflow`,
  );
}

/** The context of one scope of a workflow: its function, or a branch. Every call is one of the run context. */
export class WorkflowScope<Context> implements WorkflowContext<Context> {
  readonly #ctx: RunContext;
  /** Checks the input of `continueAsNew`. Absent in a branch. */
  readonly #readInput: ((input: JsonValue) => MaybePromise<JsonValue>) | undefined;

  constructor(ctx: RunContext, readInput?: (input: JsonValue) => MaybePromise<JsonValue>) {
    this.#ctx = ctx;
    this.#readInput = readInput;
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
  ): Promise<Value> {
    // A body that returns nothing has the value `null`, because a record is JSON (J10).
    const run = async (step: WorkflowStepContext): Promise<JsonValue> =>
      ((await body(step)) ?? null) as JsonValue;
    const retried = options === undefined ? defaultRetry : { ...defaultRetry, ...options };
    return this.#ctx.step(name, typeof body === "function" ? run : body, retried) as Promise<Value>;
  }

  patched(name: string): boolean {
    return this.#ctx.patched(name);
  }

  async continueAsNew(input: JsonValue): Promise<never> {
    if (this.#readInput === undefined)
      throw new Fault(
        "invalid_argument",
        "ctx.continueAsNew() was called in a branch, which cannot end the others; call it in the function of the workflow, with the ctx that it received",
      );
    if (input === undefined)
      throw new Fault(
        "invalid_argument",
        "missing input of ctx.continueAsNew(): expected the input of the next history; use ctx.continueAsNew(input), with null for a workflow that takes none",
      );
    return this.#ctx.continueAsNew(await this.#readInput(input));
  }

  now(): Promise<number> {
    return this.#ctx.now();
  }

  random(): Promise<number> {
    return this.#ctx.random();
  }

  uuid(): Promise<string> {
    return this.#ctx.uuid();
  }

  sleep(time: Duration | Date): Promise<void> {
    return this.#ctx.sleep(time);
  }

  async timeout<Value>(
    limit: Duration,
    branch: (ctx: WorkflowContext<Context>) => Promise<Value & Serializable<Value>>,
  ): Promise<Value> {
    return this.#ctx.timeout(limit, this.#branch("ctx.timeout()", branch)) as Promise<Value>;
  }

  waitForSignal<Value>(
    signal: Signal<never, Value>,
    options?: { readonly timeoutMs?: number },
  ): Promise<Value | undefined>;
  waitForSignal(name: string, options?: { readonly timeoutMs?: number }): Promise<JsonValue | undefined>;
  async waitForSignal(
    signal: string | Signal<never, unknown>,
    options?: { readonly timeoutMs?: number },
  ): Promise<unknown> {
    requireSignal("ctx.waitForSignal()", signal);
    if (typeof signal === "string") return this.#ctx.waitForSignal(signal, options);
    const read = new ReadOnce((value) => signal.read(value));
    const value = await this.#ctx.waitForSignal(signal.name, { ...options, accept: read.accept });
    return value === undefined ? undefined : read.valueOf(value);
  }

  async handleUpdate<Value, Returned, Reply>(
    update: Update<never, Value, Returned, Reply>,
    handler: (value: Value) => Promise<Returned>,
    options: HandleUpdateOptions<Value> = {},
  ): Promise<HandledUpdate<Value, Reply> | undefined> {
    const { timeoutMs, validate } = updateTable.read("ctx.handleUpdate()", options);
    requireHandler(update, handler);
    const ctx = this.#ctx;
    const received = await ctx.waitForUpdate(update.name, {
      ...(timeoutMs !== undefined && { timeoutMs }),
      accept: async (sent) => {
        const value = await update.read(sent);
        await validate?.(value);
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

  async sendSignal(
    run: RunTarget,
    signal: string | Signal<never, unknown>,
    given: unknown = null,
    options?: SignalOptions,
  ): Promise<void> {
    requireSignal("ctx.sendSignal()", signal);
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
    const promise: DurableHandle<never> = {
      result: async (ctx = this) => scopeOf("result() of a promise", ctx).waitForPromise(id, read),
    };
    return { id, promise };
  }

  /** Waits until a promise is settled, and returns its value as the schema defines it. */
  async waitForPromise<Value>(id: string, schema: (value: JsonValue) => MaybePromise<Value>): Promise<Value> {
    const read = new ReadOnce(schema);
    return read.valueOf(await this.#ctx.waitForPromise(id, { accept: read.accept }));
  }

  resolvePromise(id: string, value: unknown): Promise<void> {
    return this.#ctx.settlePromise(id, { status: "resolved", value: (value ?? null) as JsonValue });
  }

  rejectPromise(id: string, error: unknown): Promise<void> {
    return this.#ctx.settlePromise(id, rejectionOf(error));
  }

  publish(query: string | Query<never, unknown>, value: unknown): void {
    this.#ctx.publish(typeof query === "string" ? query : query.name, (value ?? null) as JsonValue);
  }

  approval(question: PersonQuestion): Promise<ApprovalDecision> {
    return this.#ctx.approval(question);
  }

  async agent<const Output extends Schema = never>(
    agent: HostedAgent,
    input: string | readonly UserPart[],
    options: CallAgentOptions<Output> = {},
  ): Promise<[Output] extends [never] ? string : Infer<Output>> {
    if (typeof readProperty(agent, "id") !== "string")
      throw new Fault(
        "invalid_argument",
        `invalid agent ${describeValue(agent)} of ctx.agent(): expected an agent; use new Agent({ ... }) and list it in the option agents of the workflow`,
      );
    const { output, ...spawning } = callTable.read("ctx.agent()", options);
    const reader = output === undefined ? undefined : outputReader(output);
    const asked = reader === undefined ? input : { prompt: input, output: reader.jsonSchema };
    const ctx = this.#ctx;
    const spawned = await ctx.spawn(agent.id, asked as JsonValue, { onFull: "wait", ...spawning });
    const result = spawned.kind === "refused" ? spawned : toWorkerResult(await ctx.join(spawned.handle));
    if (result.kind !== "answered") {
      ctx.check();
      const failure = result.kind === "stopped" ? result.outcome.failure : null;
      if (failure?.code === "budget_exhausted") throw reviveFault(failure);
      throw new Fault("child_failed", describeWorkerFailure(agent.id, result), {
        details: {
          agent: agent.id,
          status: result.kind === "stopped" ? result.status : "refused",
          ...(failure !== null && { failure: failure as unknown as JsonObject }),
        },
      });
    }
    if (reader === undefined) return jsonText(result.output) as never;
    return Promise.resolve(reader.parse(result.output)) as never;
  }

  async parallel<Branches extends Readonly<Record<string, WorkflowBranchOrHandle<unknown, Context>>>>(
    branches: Branches,
    options?: ParallelOptions,
  ): Promise<WorkflowBranchResults<Branches>> {
    return this.#ctx.parallel(this.#scoped("ctx.parallel()", branches), options) as Promise<
      WorkflowBranchResults<Branches>
    >;
  }

  async race<Value>(
    branches: Readonly<Record<string, WorkflowBranchOrHandle<Value, Context>>>,
  ): Promise<{ readonly winner: string; readonly value: Value }> {
    return this.#ctx.race(this.#scoped("ctx.race()", branches));
  }

  compensate(
    name: string,
    undo: (step: WorkflowCompensationContext<Context>) => MaybePromise<unknown>,
    options?: CompensationOptions,
  ): Promise<void> {
    const run = async ({ ctx, ...step }: CompensationContext): Promise<void> => {
      await undo({ ...step, ctx: new WorkflowScope<Context>(ctx) });
    };
    return this.#ctx.compensate(name, typeof undo === "function" ? run : undo, options);
  }

  async uncancellable<Value>(
    branch: (ctx: WorkflowContext<Context>) => Promise<Value & Serializable<Value>>,
    options?: UncancellableOptions,
  ): Promise<Value> {
    return this.#ctx.uncancellable(this.#branch("ctx.uncancellable()", branch), options) as Promise<Value>;
  }

  async any<Value>(
    branches: Readonly<Record<string, WorkflowBranchOrHandle<Value, Context>>>,
  ): Promise<{ readonly winner: string; readonly value: Value }> {
    return this.#ctx.any(this.#scoped("ctx.any()", branches));
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
    const each = async (item: Item, ctx: RunContext, index: number): Promise<JsonValue> =>
      ((await perform(item, new WorkflowScope<Context>(ctx), index)) ?? null) as JsonValue;
    const checked = typeof perform === "function" ? each : perform;
    return this.#ctx.map(items, checked, options) as Promise<readonly SettledItem<Value>[]>;
  }

  async start<Input, Output>(
    workflow: HostedWorkflow<Input, Output>,
    input: NoInfer<Input>,
    options?: StartRunOptions,
  ): Promise<StartedWorkflow<Output>> {
    requireWorkflow("ctx.start()", workflow);
    const { runId } = await this.#ctx.start(workflow.id, input as JsonValue, options);
    return new StartedWorkflowRun<Output>(this, runId, workflow.name);
  }

  async call<Input, Output>(
    workflow: HostedWorkflow<Input, Output>,
    input: NoInfer<Input>,
    options?: StartRunOptions,
  ): Promise<Output> {
    const run = await this.start(workflow, input, options);
    return run.result();
  }

  send<Input>(workflow: HostedWorkflow<Input>, input: NoInfer<Input>, options?: SendOptions): Promise<RunId>;
  send(agentId: AgentId, body: JsonValue): Promise<void>;
  async send(
    target: HostedWorkflow<never> | AgentId,
    body: unknown,
    options?: SendOptions,
  ): Promise<RunId | void> {
    if (typeof target === "string") {
      if (options !== undefined)
        throw new Fault(
          "invalid_argument",
          `invalid options of ctx.send() to agent ${target}: a message to the inbox of an agent has none; use ctx.sleep() before it, or send to a workflow`,
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
    const start = (call: ObjectCall, options: ObjectStartOptions): Promise<StartedWorkflow<unknown>> =>
      this.start(object, call, options);
    return {
      ...methods(async (call, options) => (await start(call, options)).result()),
      start: methods(start),
      send: methods((call, options) => this.send(object, call, options)),
    } as ObjectCalls<Handlers>;
  }

  /** L19: the state of the key to which the run belongs. */
  objectState(): Promise<JsonValue | undefined> {
    return this.#ctx.objectState();
  }

  setObjectState(state: JsonValue | undefined): void {
    this.#ctx.setObjectState(state);
  }

  /** The context of the task, for a scope with more members. */
  get runContext(): RunContext {
    return this.#ctx;
  }

  /** Waits for the end of a started run in this scope. */
  async joinRun(runId: RunId, name: string): Promise<unknown> {
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
    return this.#ctx.cancel({ runId }, reason);
  }

  resource<Value>(open: () => Promise<Value>, close: (value: Value) => Promise<void>): Promise<Value> {
    return this.#ctx.resource(open, close);
  }

  check(): void {
    this.#ctx.check();
  }

  /** A branch whose value is recorded. One that returns nothing has the value `null`, because a record is JSON (J10). */
  #branch(caller: string, branch: WorkflowBranch<unknown, Context>): (ctx: RunContext) => Promise<JsonValue> {
    if (typeof branch !== "function") throw notABranch(caller, branch);
    return async (ctx) => ((await branch(new WorkflowScope<Context>(ctx))) ?? null) as JsonValue;
  }

  #scoped<Value>(
    caller: string,
    branches: Readonly<Record<string, WorkflowBranchOrHandle<Value, Context>>>,
  ): Record<string, (ctx: RunContext) => Promise<Value>> {
    const scoped = Object.entries(branches).map(([name, branch]) => {
      if (typeof branch !== "function" && typeof readProperty(branch, "result") !== "function")
        throw notABranch(caller, branch, name);
      return [
        name,
        (ctx: RunContext) => {
          const scope = new WorkflowScope<Context>(ctx);
          return typeof branch === "function" ? branch(scope) : branch.result(scope);
        },
      ];
    });
    return Object.fromEntries(scoped) as Record<string, (ctx: RunContext) => Promise<Value>>;
  }
}

/** Applies the schema of a value when it arrives, and again only on a replay, which finds the value recorded. */
class ReadOnce<Value> {
  readonly #read: (value: JsonValue) => MaybePromise<Value>;
  #found: { readonly value: Value } | undefined;

  constructor(read: (value: JsonValue) => MaybePromise<Value>) {
    this.#read = read;
  }

  /** Throws if the schema refuses the value. */
  readonly accept = async (value: JsonValue): Promise<void> => {
    this.#found = { value: await this.#read(value) };
  };

  valueOf(value: JsonValue): MaybePromise<Value> {
    return this.#found === undefined ? this.#read(value) : this.#found.value;
  }
}

/** A run that a workflow has started. */
class StartedWorkflowRun<Output> implements StartedWorkflow<Output> {
  readonly runId: RunId;
  readonly #scope: WorkflowScope<unknown>;
  readonly #name: string;

  constructor(scope: WorkflowScope<unknown>, runId: RunId, name: string) {
    this.#scope = scope;
    this.runId = runId;
    this.#name = name;
  }

  result(ctx?: WorkflowContext): Promise<Output> {
    return this.#in("result()", ctx).joinRun(this.runId, this.#name) as Promise<Output>;
  }

  cancel(reason: string, ctx?: WorkflowContext): Promise<void> {
    return this.#in("cancel()", ctx).cancelRun(this.runId, reason);
  }

  #in(call: string, ctx: WorkflowContext = this.#scope): WorkflowScope<unknown> {
    return scopeOf(`${call} of run ${this.runId}`, ctx);
  }
}
