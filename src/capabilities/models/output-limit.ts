import { Fault, type JsonObject, type ModelRequest } from "../../kernel/index.ts";

/**
 * B1: the limit on all that a model writes, thinking included, as the AI SDK must be told it. Its Anthropic provider adds the thinking
 * budget on top of the limit it is given.
 */
export function outputLimit({ maxOutputTokens, providerOptions }: ModelRequest): number | undefined {
  const thinking = providerOptions?.["anthropic"]?.["thinking"];
  if (maxOutputTokens === undefined || !isObject(thinking) || thinking["type"] !== "enabled")
    return maxOutputTokens;
  const { budgetTokens = 1_024 } = thinking as { readonly budgetTokens?: number };
  if (budgetTokens < maxOutputTokens) return maxOutputTokens - budgetTokens;
  throw new Fault(
    "invalid_argument",
    `the thinking budget of ${budgetTokens} tokens leaves nothing of the output limit of ${maxOutputTokens}: lower budgetTokens, or raise the limit or the run's budget`,
  );
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
