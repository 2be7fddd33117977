import type { JsonObject, ModelRequest, ProviderOptions, ThinkingLevel } from "../../kernel/index.ts";

/** The lowest thinking budget that Anthropic accepts, in tokens. */
const leastBudget = 1_024;
/** The output limit, in tokens, from which a thinking budget is computed if the limit is unknown. */
const usualOutput = 16_000;

/** The share of the output limit that the model may use for thinking. */
const shares: Readonly<Record<Exclude<ThinkingLevel, "off">, number>> = {
  minimal: 0,
  low: 0.2,
  medium: 0.4,
  high: 0.6,
};

/** Thinking budgets of Gemini, in tokens. */
const geminiBudgets: Readonly<Record<ThinkingLevel, number>> = {
  off: 0,
  minimal: 512,
  low: 2_048,
  medium: 8_192,
  high: 24_576,
};

/** The translation of a thinking level: the `reasoning` setting of a V4 model, and options of the provider. */
export interface Thinking {
  readonly reasoning?: string;
  readonly providerOptions?: ProviderOptions;
}

/** The model for which a thinking level is translated. */
export interface ThinkingTarget {
  readonly provider: string;
  readonly version: "v3" | "v4";
  readonly maxOutputTokens: number | undefined;
}

/**
 * Translates the thinking level of a request for its provider. Options that the request sets itself take
 * precedence. A model of specification V4 receives the level; its package translates it. A V3 model of a provider
 * that is not listed here ignores the level.
 *
 * B1: Anthropic adds a thinking budget to the output limit, so the budget is always set here, as a part of the
 * limit (`outputLimit`).
 */
export function thinkingFor(request: ModelRequest, target: ThinkingTarget): Thinking {
  const { thinkingLevel: level, providerOptions: given } = request;
  if (level === undefined) return given === undefined ? {} : { providerOptions: given };
  const { provider, version } = target;
  const own = optionsFor(level, request, target);
  const providerOptions =
    own === undefined ? given : { ...given, [provider]: { ...own, ...given?.[provider] } };
  return {
    ...(version === "v4" && { reasoning: level === "off" ? "none" : level }),
    ...(providerOptions !== undefined && { providerOptions }),
  };
}

function optionsFor(
  level: ThinkingLevel,
  { maxOutputTokens = usualOutput }: ModelRequest,
  target: ThinkingTarget,
): JsonObject | undefined {
  const { provider, version } = target;
  if (provider === "anthropic")
    return {
      thinking: anthropicThinking(level, Math.min(maxOutputTokens, target.maxOutputTokens ?? Infinity)),
    };
  if (version === "v4") return undefined;
  if (provider === "openai" || provider === "azure")
    return { reasoningEffort: level === "off" ? "none" : level };
  if (provider === "google" || provider === "vertex")
    return { thinkingConfig: { thinkingBudget: geminiBudgets[level] } };
  return undefined;
}

/**
 * Returns the thinking options of Anthropic. If the output limit leaves no room for the lowest budget and an
 * answer, thinking is turned off.
 */
function anthropicThinking(level: ThinkingLevel, limit: number): JsonObject {
  if (level === "off" || limit < 2 * leastBudget) return { type: "disabled" };
  const budgetTokens = Math.max(leastBudget, Math.round(limit * shares[level]));
  return { type: "enabled", budgetTokens };
}
