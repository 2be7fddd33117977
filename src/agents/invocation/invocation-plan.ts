import type { SchemaCheck } from "../base/answer-format.ts";
import type { MiddlewarePipeline } from "../interception/middleware/pipeline.ts";
import type { CompactionPlan } from "../context/compaction/compaction-plan.ts";
import type { PromptWindow } from "../context/compaction/prompt-window.ts";
import type { ExtensionHost } from "../interception/extensions/extension-host.ts";
import type { Reviewer } from "../team/reviewers/reviewer.ts";
import type { ToolSpecs } from "../base/tool-specs.ts";
import type { InvocationParts } from "./invocation-scope.ts";
import type { StopHook } from "../interception/turns/stop-hook.ts";
import type {
  Architecture,
  DrainMode,
  EphemeralSource,
  Guardrail,
  HistoryProvider,
  InstructionsSource,
  PrepareStep,
  RunContext,
  RunFacts,
  StopCondition,
} from "../../kernel/index.ts";

/** The settings of an agent that every invocation uses. */
export interface InvocationPlan extends Pick<
  InvocationParts,
  "agent" | "memory" | "permissions" | "hooks" | "telemetry"
> {
  readonly steering: DrainMode;
  readonly followUps: DrainMode;
  readonly architecture: Architecture;
  /** The architecture of a child that shares the prompt: a plain loop. */
  readonly childArchitecture: Architecture;
  readonly instructions: string | InstructionsFunction | InstructionsSource;
  readonly maxTurns: number;
  readonly maxToolCallsPerTurn: number;
  readonly ephemeral: readonly EphemeralSource[];
  readonly guardrails: readonly Guardrail[];
  readonly pipeline: MiddlewarePipeline;
  readonly stopHooks: readonly StopHook[];
  readonly prepareStep: PrepareStep | null;
  readonly stopWhen: StopCondition | null;
  /** How long conversations are shortened. `null` if they are not. */
  readonly compaction: CompactionPlan | null;
  /** Creates the window of a session that is shortened. `null` if none is. */
  readonly window: ((ctx: RunContext) => PromptWindow) | null;
  readonly history: HistoryProvider | undefined;
  /** The extensions of the agent. `undefined` if it has none. */
  readonly extensions: ExtensionHost | undefined;
  readonly reviewers: readonly Reviewer[];
  readonly check: SchemaCheck;
  readonly toolSpecs: ToolSpecs;
}

/**
 * Builds the system prompt of an invocation from its user, metadata and context. It is called once per invocation; the
 * text is journaled, so a resumed invocation does not call it again.
 */
export type InstructionsFunction<Context = unknown> = (facts: RunFacts<Context>) => string | Promise<string>;
