import type {
  DurableHandle,
  JsonValue,
  MaybePromise,
  RunId,
  StartedWorkflow,
  WorkflowContext,
} from "../kernel/index.ts";

/** A scope of a workflow in which handles wait. */
export interface HandleScope {
  /** Waits for the end of a started run. `name` is the name of its workflow. */
  joinRun(runId: RunId, name: string): Promise<unknown>;
  cancelRun(runId: RunId, reason: string): Promise<void>;
  /** Waits until a promise is settled, and returns its value, converted by the schema. */
  waitForPromise<Value>(id: string, schema: (value: JsonValue) => MaybePromise<Value>): Promise<Value>;
}

/**
 * Returns the scope for a `ctx` that a caller passes. Throws if the value is not a `ctx`. `call` is the name of the
 * call, for the error. Default: the scope to which the handle belongs.
 */
export type ScopeOf = (call: string, ctx: WorkflowContext | undefined) => HandleScope;

/** A run that a workflow has started. */
export class StartedWorkflowRun<Output> implements StartedWorkflow<Output> {
  readonly runId: RunId;
  readonly #scopeOf: ScopeOf;
  readonly #name: string;

  constructor(scopeOf: ScopeOf, runId: RunId, name: string) {
    this.#scopeOf = scopeOf;
    this.runId = runId;
    this.#name = name;
  }

  result(ctx?: WorkflowContext): Promise<Output> {
    return this.#in("result()", ctx).joinRun(this.runId, this.#name) as Promise<Output>;
  }

  cancel(reason: string, ctx?: WorkflowContext): Promise<void> {
    return this.#in("cancel()", ctx).cancelRun(this.runId, reason);
  }

  #in(call: string, ctx: WorkflowContext | undefined): HandleScope {
    return this.#scopeOf(`${call} of run ${this.runId}`, ctx);
  }
}

/** A promise of a workflow. `await` waits for its value, like `result()`. */
export class PromiseHandle<Value> implements DurableHandle<Value>, PromiseLike<Value> {
  readonly #scopeOf: ScopeOf;
  readonly #id: string;
  readonly #read: (value: JsonValue) => MaybePromise<Value>;

  constructor(scopeOf: ScopeOf, id: string, read: (value: JsonValue) => MaybePromise<Value>) {
    this.#scopeOf = scopeOf;
    this.#id = id;
    this.#read = read;
  }

  async result(ctx?: WorkflowContext): Promise<Value> {
    return this.#scopeOf("result() of a promise", ctx).waitForPromise(this.#id, this.#read);
  }

  // oxlint-disable-next-line unicorn/no-thenable -- without it, `await promise` would not wait, and raise no error
  then<Result = Value, Refused = never>(
    onFulfilled?: ((value: Value) => Result | PromiseLike<Result>) | null,
    onRejected?: ((reason: unknown) => Refused | PromiseLike<Refused>) | null,
  ): Promise<Result | Refused> {
    return this.result().then(onFulfilled, onRejected);
  }
}
