import type {
  AgentContext,
  AgentSession,
  Dependencies,
  ExtraToolListener,
  HostedAgent,
  ReplyReasons,
  RunContext,
  Tool,
  ToolSpec,
} from "../../kernel/index.ts";
import type { SchemaCheck } from "../base/answer-format.ts";
import type { CompactionPlan } from "../context/compaction/compaction-plan.ts";
import type { OpenSessions } from "../context/prompt-history.ts";
import type { TaskBudget } from "./task-budget.ts";

/** The dependencies that are the same in every scope of an invocation. */
export interface InvocationParts extends Pick<
  Dependencies,
  "memory" | "permissions" | "hooks" | "telemetry" | "ephemeral" | "streaming" | "settings"
> {
  readonly agent: HostedAgent;
  readonly sessionId: AgentSession["id"];
  readonly sessions: OpenSessions;
  /**
   * Returns the conversation for a scope. A window makes its summaries in the scope that reads it, because another
   * scope may have a call in flight (J2).
   */
  readonly historyIn: (ctx: RunContext) => AgentContext;
  readonly budget: TaskBudget;
  /** Names of the agent's middleware. */
  readonly layers: ReadonlySet<string>;
  readonly check: SchemaCheck;
  /** How transcripts that exceed the context window are shortened. `null` if they are not. */
  readonly compaction: Pick<CompactionPlan, "strategy" | "keepRecentTokens"> | null;
  /** The tool specifications that were frozen when the invocation began. */
  readonly specs: readonly ToolSpec[];
  /** Notes why the replies of `deps.model` ended, so that an answer that was cut is recognised. */
  readonly replies: ReplyReasons;
}

/** A listener that receives the results of some extra tools. */
export interface ResultWatcher {
  readonly tools: readonly Tool[];
  readonly onResult: ExtraToolListener;
}

/** The dependencies that differ between the scopes of an invocation. */
export interface InvocationScope extends Pick<
  Dependencies,
  "steering" | "isSteered" | "followUps" | "prepareStep" | "stopWhen" | "outputFormat"
> {
  readonly ctx: RunContext;
  readonly history: AgentContext;
  readonly role: string;
  readonly extra: readonly Tool[];
  readonly watchers: readonly ResultWatcher[];
  readonly maxTurns: number;
}
