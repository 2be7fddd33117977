import type {
  AgentContext,
  ExtraToolListener,
  ReplyReasons,
  ResponseFormat,
  RunContext,
  Tool,
  Turn,
} from "../../kernel/index.ts";
import type { OpenSessions } from "../context/prompt-history.ts";
import type { AgentPlan } from "../definition/agent-plan.ts";
import type { TaskBudget } from "./task-budget.ts";

/** The parts that are the same in every scope of an invocation. */
export interface InvocationParts {
  readonly plan: AgentPlan;
  /** The context of the task that the invocation belongs to. */
  readonly ctx: RunContext;
  /** The values with which the invocation started, such as its tool specifications. */
  readonly turn: Turn;
  readonly sessions: OpenSessions;
  /**
   * Returns the conversation for a scope. Summaries are made in the scope that reads the conversation, because
   * another scope may have a call in flight (J2).
   */
  readonly historyIn: (ctx: RunContext) => AgentContext;
  readonly budget: TaskBudget;
  /** The format of the invocation's answer. `null` means text. */
  readonly outputFormat: ResponseFormat | null;
  /** Records why the replies of `deps.model` ended, so that an answer that was cut is recognised. */
  readonly replies: ReplyReasons;
}

/** A listener that receives the results of some extra tools. */
export interface ResultWatcher {
  readonly tools: readonly Tool[];
  readonly onResult: ExtraToolListener;
}

/** The parts that differ between the scopes of an invocation. */
export interface InvocationScope {
  readonly ctx: RunContext;
  readonly history: AgentContext;
  readonly role: string;
  /**
   * Whether this is the scope of the main loop. Only there are turns controlled, inputs read and the answer
   * formatted.
   */
  readonly isMain: boolean;
  readonly extra: readonly Tool[];
  readonly watchers: readonly ResultWatcher[];
  readonly maxTurns: number;
}
