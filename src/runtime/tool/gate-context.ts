import {
  branchScope,
  type GatedCall,
  type JsonValue,
  type StepScope,
  type Tool,
  type ToolCall,
} from "../../kernel/index.ts";
import type { CallHistory } from "./call-history.ts";
import type { ActiveStep } from "../task/active-step.ts";
import { NestedScope, type NestedContext } from "../task/nested-scope.ts";
import type { StepExecutor } from "../task/step-executor.ts";
import { CancellationScope } from "../task/cancellation-scope.ts";

/** Why a call is shown to its gate: before it is made, again when a person has edited or approved it, after it. */
export type GateStage = "gate" | "edited" | "remember" | "after";

/** Where calls are made from. */
export interface CallingScope {
  readonly steps: StepExecutor;
  readonly history: CallHistory;
  /** A scope below it. */
  readonly inside: (scope: StepScope, cancelScope: CancellationScope) => NestedContext;
}

export interface GatedCallOptions {
  readonly open: ActiveStep;
  readonly call: ToolCall;
  /** Of the code that calls the tool. */
  readonly from: CallingScope;
}

/**
 * Shows a call to its gate. Steps that the gate takes have a scope of their own for each look, so that one that is not repeated on
 * replay shifts no other.
 */
export async function withGateContext<Value>(
  { open, call, from }: GatedCallOptions,
  { tool, needsApproval, stage, input = call.input }: Look,
  look: (gated: GatedCall) => Promise<Value>,
): Promise<Value> {
  const { agentId, taskId, facts, host } = open.runner;
  const inside = new InsideGate(open, from, stage);
  try {
    return await look({
      call: input === call.input ? call : { ...call, input },
      tool,
      needsApproval,
      agentId,
      taskId,
      tenantId: host.tenantId,
      facts,
      history: from.history.calls,
      get ctx() {
        return inside.ctx;
      },
      emitEvent: (event) => open.emitFromCode(event),
    });
  } finally {
    for (const draft of inside.takeEvents()) open.emit(draft);
  }
}

export interface Look {
  readonly tool: Tool;
  readonly needsApproval: boolean;
  readonly stage: GateStage;
  /** Edited arguments. */
  readonly input?: JsonValue;
}

/** The steps of one look. */
class InsideGate extends NestedScope {
  readonly #open: ActiveStep;
  readonly #from: CallingScope;
  readonly #stage: GateStage;

  constructor(open: ActiveStep, from: CallingScope, stage: GateStage) {
    super();
    this.#open = open;
    this.#from = from;
    this.#stage = stage;
  }

  protected override createContext(): NestedContext {
    const open = this.#open;
    // What was called has settled; a step of the gate is a call of its own (H7).
    open.end();
    return this.#from.inside(branchScope(open.address, this.#stage), new CancellationScope(open.cancelScope));
  }
}
