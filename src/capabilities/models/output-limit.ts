import { Fault, type JsonObject, type ModelRequest } from "../../kernel/index.ts";

/**
 * B1: returns the output limit to send to the AI SDK, so that the limit includes reasoning. The Anthropic provider adds
 * the thinking budget to the limit that it receives, so it is subtracted here.
 */
export function outputLimit({ maxOutputTokens, providerOptions }: ModelRequest): number | undefined {
  const thinking = providerOptions?.["anthropic"]?.["thinking"];
  if (maxOutputTokens === undefined || !isObject(thinking) || thinking["type"] !== "enabled")
    return maxOutputTokens;
  const { budgetTokens = 1_024 } = thinking as { readonly budgetTokens?: number };
  if (budgetTokens < maxOutputTokens) return maxOutputTokens - budgetTokens;
  throw new Fault(
    "invalid_argument",
    `the thinking budget of ${budgetTokens} tokens uses up the output limit of ${maxOutputTokens}: lower budgetTokens, or raise maxOutputTokens or the run's budget`,
  );
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
