import type { Model } from "../../kernel/index.ts";
import { contextWindows } from "../prices/context-windows.ts";
import { ListedModels } from "../prices/listed-models.ts";

/** The limits of a model, as far as they are known. */
export type ModelLimits = Pick<Model, "contextWindow" | "maxOutputTokens">;

const windows = new ListedModels(contextWindows);

/**
 * Returns the limits of a model. The context window is that of the price list. The price list has no output limits and
 * not all windows, so these are listed here; the output limit never exceeds the context window.
 */
export function modelLimits(provider: string, modelId: string): ModelLimits {
  // A server of the user may serve another model under a known name.
  const isKnown = windows.hasProvider(provider);
  const limitIn = (limits: typeof outputLimits): number | undefined =>
    isKnown ? limits.find(([name]) => name.test(modelId.toLowerCase()))?.[1] : undefined;
  const contextWindow = windows.find(provider, modelId)?.contextWindow ?? limitIn(missingWindows);
  const limit = limitIn(outputLimits);
  return {
    ...(contextWindow !== undefined && { contextWindow }),
    ...(limit !== undefined && { maxOutputTokens: Math.min(limit, contextWindow ?? limit) }),
  };
}

/**
 * Context windows that the price list does not contain, according to the documentation of the providers. The first
 * name that matches applies.
 */
const missingWindows: readonly (readonly [name: RegExp, tokens: number])[] = [
  [/gemini-(?:2\.5|3).*(?:image|tts|audio|live)/u, 32_768],
  [/gemini-(?:2\.5|3)/u, 1_048_576],
];

/**
 * Maximum number of output tokens by model name, according to the documentation of the providers. The first name
 * that matches applies.
 */
const outputLimits: readonly (readonly [name: RegExp, tokens: number])[] = [
  [/claude-(?:opus|sonnet|haiku)-4-5|claude-sonnet-4(?!-[6-9])|claude-3-7-sonnet/u, 64_000],
  [/claude-opus-4(?!-[6-9])/u, 32_000],
  [/claude-3-5/u, 8_192],
  [/claude-(?:3-|2|instant)/u, 4_096],
  [/claude-(?:opus|sonnet)-(?:4-[6-9]|5)/u, 128_000],
  [/gpt-5(?!.*chat)/u, 128_000],
  [/gpt-4\.1/u, 32_768],
  [/gpt-4o|gpt-5.*chat/u, 16_384],
  [/gpt-4-turbo|gpt-3\.5/u, 4_096],
  [/gpt-4(?:$|-\d)/u, 8_192],
  [/(?:^|\/)o[134](?:$|-)/u, 100_000],
  [/gemini-(?:2\.5|3)(?!.*image)/u, 65_536],
  [/gemini-(?:2\.0|1\.5)/u, 8_192],
];
