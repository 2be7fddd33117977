import {
  branchScope,
  type ApprovalRequest,
  type EmittableEvent,
  type GatedCall,
  type StepAddress,
  type StepScope,
  type Tool,
  type ToolCall,
} from "../../kernel/index.ts";
import type { CallHistory } from "./call-history.ts";
import type { ParsedArguments } from "./call-arguments.ts";
import { toolDigest } from "./tool-digest.ts";
import type { ActiveStep } from "../task/active-step.ts";
import { NestedScope, type NestedContext } from "../task/nested-scope.ts";
import type { StepExecutor } from "../task/step-executor.ts";
import { CancellationScope } from "../task/cancellation-scope.ts";

/** Why entries see a call: before it is executed, after a person edited or approved it, or after its execution. */
export type GateStage = "gate" | "edited" | "remember" | "after";

/** The scope from which tools are called. */
export interface CallingScope {
  readonly steps: StepExecutor;
  readonly history: CallHistory;
  /** Creates a scope below this one. */
  readonly inside: (scope: StepScope, cancelScope: CancellationScope) => NestedContext;
}

/** A tool call that is in progress. */
export interface ToolCallOptions {
  readonly open: ActiveStep;
  /** The call with the arguments that the model sent. */
  readonly call: ToolCall;
  /** The scope of the code that calls the tool. */
  readonly from: CallingScope;
  /** Additional tools, which are found before the agent's own. */
  readonly extra: readonly Tool[] | undefined;
  /** Present if a program wants to make the call with a tool of its own. */
  readonly foreign?: ForeignQuestion;
}

/** H2: how long an answer waits for the seat of the task. */
export interface SeatLimit {
  readonly waitMs: number;
  /** Called with `seat_lost` after that time. The answer stays available to the next attempt. */
  readonly onLost: (error: unknown) => void;
}

/** How a person is asked about a call of a program. */
export interface ForeignQuestion {
  readonly details: NonNullable<ApprovalRequest["foreign"]>;
  /** Returns the id of the open question of an earlier attempt that was asked about the same thing, which is asked no more by others. */
  readonly takeKept: (subject: string) => string | undefined;
  /** Called before the question is asked. */
  readonly onAsk: (asked: {
    readonly round: StepAddress;
    readonly request: ApprovalRequest;
    readonly isAskedBefore: boolean;
  }) => void;
  /** How long an answer waits for the seat of the task. If absent, it does not wait. */
  readonly seat?: SeatLimit;
}

/** What the entries judge: a tool and its arguments. */
export interface JudgedCall {
  readonly tool: Tool;
  readonly needsApproval: boolean;
  readonly input: ParsedArguments;
}

/**
 * Calls entries with their context. `gatedCall` makes the call that they see. Each stage of each round has its own scope,
 * so a stage that is not repeated on replay does not shift the steps of another.
 */
export async function withGateContext<Value>(
  { open, call, from }: ToolCallOptions,
  { stage, round }: { readonly stage: GateStage; readonly round: StepAddress },
  look: (gatedCall: (judged: JudgedCall) => GatedCall) => Promise<Value>,
): Promise<Value> {
  const { agentId, taskId, facts, host, worker } = open.runner;
  const inside = new InsideGate(open, from, branchScope(round, stage));
  try {
    // Frozen, because one entry must not change for whom the next one decides.
    return await look(({ tool, needsApproval, input: { sent, parsed, json } }) =>
      Object.freeze({
        call: json === call.input ? call : { ...call, input: json },
        sent,
        parsed,
        tool,
        get toolDigest() {
          return toolDigest(tool, worker.hash);
        },
        needsApproval,
        agentId,
        taskId,
        tenantId: host.tenantId,
        facts,
        folder: open.runner.folder,
        history: from.history.calls,
        get ctx() {
          return inside.ctx;
        },
        emitEvent: (event: EmittableEvent) => open.emitFromCode(event),
      } satisfies GatedCall),
    );
  } finally {
    for (const draft of inside.takeEvents()) open.emit(draft);
  }
}

/** The scope of the entries of one stage. */
class InsideGate extends NestedScope {
  readonly #open: ActiveStep;
  readonly #from: CallingScope;
  readonly #scope: StepScope;

  constructor(open: ActiveStep, from: CallingScope, scope: StepScope) {
    super();
    this.#open = open;
    this.#from = from;
    this.#scope = scope;
  }

  protected override createContext(): NestedContext {
    const open = this.#open;
    // The tool's call has settled; a step of an entry is a separate call (H7).
    open.end();
    return this.#from.inside(this.#scope, new CancellationScope(open.cancelScope));
  }
}
