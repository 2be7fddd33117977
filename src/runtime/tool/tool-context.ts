import {
  Fault,
  type CancellationToken,
  type CancelSignal,
  type JsonValue,
  type RunFacts,
  type RunMeta,
  type TaskFolder,
  type ToolContext,
  type UpdateFilter,
} from "../../kernel/index.ts";
import type { ToolCallOptions } from "./gate-context.ts";
import { AbandonableCall, type NestedContext } from "../task/nested-scope.ts";
import type { InFlightCall } from "../task/in-flight-calls.ts";
import { CancellationScope } from "../task/cancellation-scope.ts";

const noFilters: readonly UpdateFilter[] = [];

/**
 * The context that a tool's body receives. F1: parts that most bodies do not use are created when they are first
 * used.
 */
export class ToolCallContext extends AbandonableCall implements ToolContext {
  readonly #call: ToolCallOptions;
  /** The in-flight call of the body. */
  readonly #opened: InFlightCall | undefined;
  readonly #filters: readonly UpdateFilter[];
  #cancelScope: CancellationScope | undefined;

  constructor(call: ToolCallOptions, opened: InFlightCall | undefined, filters = noFilters) {
    super();
    this.#call = call;
    this.#opened = opened;
    this.#filters = filters;
  }

  override get cancelScope(): CancellationScope {
    return (this.#cancelScope ??= new CancellationScope(this.#call.open.cancelScope, this.#opened));
  }

  /** Token that cancels the body alone. */
  get token(): CancellationToken {
    return this.cancelScope.token;
  }

  protected override createContext(): NestedContext {
    const { open, from } = this.#call;
    return from.inside(open.address, this.cancelScope);
  }

  get meta(): RunMeta {
    return this.#call.open.runner.meta;
  }

  get facts(): RunFacts {
    return this.#call.open.runner.facts;
  }

  get context(): unknown {
    return this.facts.context;
  }

  get callId(): string {
    return this.#call.call.callId;
  }

  get idempotencyKey(): string {
    return this.#call.from.steps.idempotencyKey(this.#call.open.address);
  }

  /**
   * The folder of the task. D8: a child in a fork does not work in the folder that it inherited from a task of the
   * original run.
   */
  get folder(): TaskFolder | null {
    const { folder, log } = this.#call.open.runner;
    if (folder === null || folder.runId === log.lease.runId) return folder;
    throw new Fault(
      "unsupported",
      `${log.lease.runId} is a fork of ${folder.runId}, in whose folder ${folder.path} it cannot work; start a new run instead`,
    );
  }

  get signal(): CancelSignal {
    return this.cancelScope.signal;
  }

  get progress(): (update: JsonValue) => void {
    const { callId } = this;
    const { toolName } = this.#call.call;
    const { taskId, log, worker } = this.#call.open.runner;
    const { runId } = log.lease;
    return (whole) => {
      const update = this.#filters.reduce((shown, filter) => filter(shown), whole);
      worker.sizes.assert(update, `the progress of tool ${toolName}`);
      log.putDelta({ type: "tool_execution_update", runId, taskId, callId, update });
    };
  }
}

/** Members that tool contexts of other libraries have, each with the member to use instead. */
const foreignMembers = {
  abortSignal: "signal",
  toolCallId: "callId",
} as const;

// On the prototype: reading `undefined` here would silently disable what the body does with the member.
for (const [name, use] of Object.entries(foreignMembers))
  Object.defineProperty(ToolCallContext.prototype, name, {
    get: () => {
      throw new Fault(
        "invalid_argument",
        `the second argument of execute has no ${name}; use ${use}: execute: async (input, { ${use} }) => ...`,
      );
    },
  });

// A tool reaches the prototype through its context. If it could redefine `facts` there, it would do so for all other tools.
Object.freeze(ToolCallContext.prototype);
