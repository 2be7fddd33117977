import type {
  CancelSignal,
  JsonValue,
  RunFacts,
  RunMeta,
  ToolContext,
  UpdateFilter,
} from "../kernel/index.ts";
import type { GatedCallOptions } from "./gated-call.ts";
import { ScopeInside } from "./scope-inside.ts";
import type { ScopeSteps } from "./scope-steps.ts";
import type { Strand } from "./strand.ts";

interface RunningCall extends GatedCallOptions {
  /** Of the code that calls the tool. */
  readonly steps: ScopeSteps;
}

const noFilters: readonly UpdateFilter[] = [];

/** What a tool's body is given. What most bodies do not ask for is made when one does (F1). */
export class RunningTool extends ScopeInside implements ToolContext {
  readonly #call: RunningCall;
  readonly #strand: Strand;
  readonly #filters: readonly UpdateFilter[];

  constructor(call: RunningCall, strand: Strand, filters: readonly UpdateFilter[] = noFilters) {
    super(() => call.scoped(strand));
    this.#call = call;
    this.#strand = strand;
    this.#filters = filters;
  }

  get meta(): RunMeta {
    return this.#call.open.runner.meta;
  }

  get facts(): RunFacts {
    return this.#call.open.runner.facts;
  }

  get callId(): string {
    return this.#call.call.callId;
  }

  get idempotencyKey(): string {
    return this.#call.steps.idempotencyKey(this.#call.open.address);
  }

  get signal(): CancelSignal {
    return this.#strand.signal;
  }

  get progress(): (update: JsonValue) => void {
    const { callId } = this;
    const { taskId, log, owner } = this.#call.open.runner;
    const { runId } = log.lease;
    return (whole) => {
      const update = this.#filters.reduce((shown, filter) => filter(shown), whole);
      owner.store.events.putDelta(log.lease, {
        type: "tool_execution_update",
        runId,
        taskId,
        callId,
        update,
      });
    };
  }
}
