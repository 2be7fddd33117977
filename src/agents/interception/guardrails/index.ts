export { contentFilter, type ContentFilterOptions } from "./content-filter.ts";
export { llmJudge, type LlmJudgeOptions } from "./llm-judge.ts";
export { loopDetection, type LoopDetectionOptions } from "./loop-detection.ts";
export { maxTokens, type MaxTokensOptions } from "./max-tokens.ts";
export type { PiiKind } from "../middleware/pii-pattern.ts";
export { pii, type PiiOptions } from "./pii.ts";
export { promptInjection, type PromptInjectionOptions } from "./prompt-injection.ts";
export { regex, type RegexOptions } from "./regex.ts";
export { textGuardrail, type GuardedStages, type TextGuardrailOptions } from "./text-guardrail.ts";
export {
  toolCallValidation,
  type ArgumentCheck,
  type ToolCallValidationOptions,
} from "./tool-call-validation.ts";
