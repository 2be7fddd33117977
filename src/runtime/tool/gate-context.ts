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

/** Why the gate sees a call: before it is executed, after a person edited or approved it, or after its execution. */
export type GateStage = "gate" | "edited" | "remember" | "after";

/** The scope from which tools are called. */
export interface CallingScope {
  readonly steps: StepExecutor;
  readonly history: CallHistory;
  /** Creates a scope below this one. */
  readonly inside: (scope: StepScope, cancelScope: CancellationScope) => NestedContext;
}

export interface GatedCallOptions {
  readonly open: ActiveStep;
  readonly call: ToolCall;
  /** The scope of the code that calls the tool. */
  readonly from: CallingScope;
}

/**
 * Calls the gate with its context. Each stage has its own scope, so a stage that is not repeated on replay does not
 * shift the steps of another.
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
  /** The edited arguments, if a person changed them. */
  readonly input?: JsonValue;
}

/** The scope of one stage of the gate. */
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
    // The tool's call has settled; a step of the gate is a separate call (H7).
    open.end();
    return this.#from.inside(branchScope(open.address, this.#stage), new CancellationScope(open.cancelScope));
  }
}
