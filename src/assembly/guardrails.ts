import * as agents from "../agents/interception/guardrails/index.ts";
import { textPattern } from "../capabilities/tools/text-pattern.ts";
import type { Guardrail } from "../kernel/index.ts";

export {
  contentFilter,
  llmJudge,
  loopDetection,
  maxTokens,
  pii,
  textGuardrail,
  toolCallValidation,
  type ArgumentCheck,
  type ContentFilterOptions,
  type GuardedStages,
  type LlmJudgeOptions,
  type LoopDetectionOptions,
  type MaxTokensOptions,
  type PiiKind,
  type PiiOptions,
  type TextGuardrailOptions,
  type ToolCallValidationOptions,
} from "../agents/interception/guardrails/index.ts";

/** Options of `promptInjection`. */
export type PromptInjectionOptions = Omit<agents.PromptInjectionOptions, "compile">;
/** Options of `regex`. */
export type RegexOptions = Omit<agents.RegexOptions, "compile">;

/**
 * Creates a guardrail that finds known signs of prompt injection. It detects many attacks, but cannot prove that
 * there is none. Additional patterns are searched in time linear in the length of the text.
 */
export function promptInjection(options: PromptInjectionOptions = {}): Guardrail {
  return agents.promptInjection({ compile: textPattern, ...options });
}

/**
 * Creates a guardrail with your own patterns, which are matched against the unchanged text, in time linear in its
 * length. A pattern that needs backtracking is refused, unless `allowBacktracking` is set.
 */
export function regex(options: RegexOptions): Guardrail {
  return agents.regex({ compile: textPattern, ...options });
}
