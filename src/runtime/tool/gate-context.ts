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

/**
 * Why checks receive a call: before it is executed (`gate`), after a person edited it (`edited`) or approved it
 * (`remember`), or after its execution (`after`).
 */
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
  /** Additional tools, which are searched before the agent's own. */
  readonly extra: readonly Tool[] | undefined;
  /** Present if a program wants to make the call with its own tool. */
  readonly foreign?: ForeignQuestion;
}

/** H2: how long an answer waits until the task has a seat. */
export interface SeatLimit {
  readonly waitMs: number;
  /** Called with `seat_lost` after that time. The answer remains available for the next attempt. */
  readonly onLost: (error: unknown) => void;
}

/** How a person is asked about a call of a program. */
export interface ForeignQuestion {
  readonly details: NonNullable<ApprovalRequest["foreign"]>;
  /**
   * Returns the id of the open question of an earlier attempt about the same subject. Other calls then no longer
   * get this question.
   */
  readonly takeKept: (subject: string) => string | undefined;
  /** Called before the question is asked. */
  readonly onAsk: (asked: {
    readonly round: StepAddress;
    readonly request: ApprovalRequest;
    readonly isAskedBefore: boolean;
  }) => void;
  /** How long an answer waits until the task has a seat. If absent, it does not wait. */
  readonly seat?: SeatLimit;
}

/** What the checks judge: a tool and its arguments. */
export interface JudgedCall {
  readonly tool: Tool;
  readonly needsApproval: boolean;
  readonly input: ParsedArguments;
}

/**
 * Calls checks with their context. `gatedCall` creates the call that they receive. Each stage of each round has its
 * own scope, so that a stage which is not repeated on a replay does not move the steps of another stage.
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
