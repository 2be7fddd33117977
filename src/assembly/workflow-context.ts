import { outputReader } from "./answer-shape.ts";
import { describeWorkerFailure, toWorkerResult } from "../agents/team/run-worker.ts";
import {
  Fault,
  is,
  jsonText,
  optionTable,
  reviveFault,
  spawnKinds,
  type ApprovalDecision,
  type CallAgentOptions,
  type CancelSignal,
  type Duration,
  type HostedAgent,
  type Infer,
  type JsonObject,
  type JsonValue,
  type MaybePromise,
  type OptionKinds,
  type ParallelOptions,
  type PersonQuestion,
  type RunContext,
  type RunFacts,
  type RunId,
  type Schema,
  type Serializable,
  type Signal,
  type StepOptions,
  type UserPart,
  type WorkflowBranch,
  type WorkflowContext,
  type WorkflowStepContext,
} from "../kernel/index.ts";

type BranchValues<Branches extends Readonly<Record<string, (ctx: never) => Promise<unknown>>>> = {
  readonly [Name in keyof Branches]: Awaited<ReturnType<Branches[Name]>>;
};

const callTable = optionTable({
  budget: spawnKinds.budget,
  priority: spawnKinds.priority,
  role: spawnKinds.role,
  output: is.any,
} satisfies OptionKinds<CallAgentOptions>);

/** Steps of a workflow are retried with the default settings. */
const defaultRetry: StepOptions = Object.freeze({ retry: Object.freeze({}) });

/** The context of one scope of a workflow: its function, or a branch. Every call is one of the run context. */
export class WorkflowScope<Context> implements WorkflowContext<Context> {
  readonly #ctx: RunContext;

  constructor(ctx: RunContext) {
    this.#ctx = ctx;
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

  timeout<Value>(
    limit: Duration,
    branch: (ctx: WorkflowContext<Context>) => Promise<Value & Serializable<Value>>,
  ): Promise<Value> {
    const work = async (ctx: RunContext): Promise<JsonValue> =>
      ((await branch(new WorkflowScope<Context>(ctx))) ?? null) as JsonValue;
    return this.#ctx.timeout(limit, work) as Promise<Value>;
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
    if (typeof signal === "string") return this.#ctx.waitForSignal(signal, options);
    const value = await this.#ctx.waitForSignal(signal.name, options);
    return value === undefined ? undefined : signal.read(value);
  }

  approval(question: PersonQuestion): Promise<ApprovalDecision> {
    return this.#ctx.approval(question);
  }

  async agent<const Output extends Schema = never>(
    agent: HostedAgent,
    input: string | readonly UserPart[],
    options: CallAgentOptions<Output> = {},
  ): Promise<[Output] extends [never] ? string : Infer<Output>> {
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

  parallel<Branches extends Readonly<Record<string, WorkflowBranch<unknown, Context>>>>(
    branches: Branches,
    options?: ParallelOptions,
  ): Promise<BranchValues<Branches>> {
    return this.#ctx.parallel(this.#scoped(branches), options) as Promise<BranchValues<Branches>>;
  }

  race<Value>(
    branches: Readonly<Record<string, WorkflowBranch<Value, Context>>>,
  ): Promise<{ readonly winner: string; readonly value: Value }> {
    return this.#ctx.race(this.#scoped(branches));
  }

  resource<Value>(open: () => Promise<Value>, close: (value: Value) => Promise<void>): Promise<Value> {
    return this.#ctx.resource(open, close);
  }

  check(): void {
    this.#ctx.check();
  }

  #scoped<Value>(
    branches: Readonly<Record<string, WorkflowBranch<Value, Context>>>,
  ): Record<string, (ctx: RunContext) => Promise<Value>> {
    const scoped = Object.entries(branches).map(([name, branch]) => [
      name,
      (ctx: RunContext) => branch(new WorkflowScope<Context>(ctx)),
    ]);
    return Object.fromEntries(scoped) as Record<string, (ctx: RunContext) => Promise<Value>>;
  }
}
