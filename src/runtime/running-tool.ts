import type {
  CancelSignal,
  JsonValue,
  RunFacts,
  RunMeta,
  ToolContext,
  UpdateFilter,
} from "../kernel/index.ts";
import type { GatedCallOptions } from "./gated-call.ts";
import type { OpenStep } from "./open-step.ts";
import { ScopeInside } from "./scope-inside.ts";
import type { Strand } from "./strand.ts";

interface RunningCall extends GatedCallOptions {
  readonly idempotencyKey: string;
}

const noFilters: readonly UpdateFilter[] = [];

/** What a tool's body is given. What most bodies do not ask for is made when one does (F1). */
export class RunningTool extends ScopeInside implements ToolContext {
  readonly meta: RunMeta;
  readonly facts: RunFacts;
  readonly idempotencyKey: string;
  readonly callId: string;
  readonly #open: OpenStep;
  readonly #strand: Strand;
  readonly #filters: readonly UpdateFilter[];

  constructor(
    { open, call, idempotencyKey, scoped }: RunningCall,
    strand: Strand,
    filters: readonly UpdateFilter[] = noFilters,
  ) {
    super(() => scoped(strand));
    this.meta = open.runner.meta;
    this.facts = open.runner.facts;
    this.idempotencyKey = idempotencyKey;
    this.callId = call.callId;
    this.#open = open;
    this.#strand = strand;
    this.#filters = filters;
  }

  get signal(): CancelSignal {
    return this.#strand.signal;
  }

  get progress(): (update: JsonValue) => void {
    const { callId } = this;
    const { taskId, log, owner } = this.#open.runner;
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
