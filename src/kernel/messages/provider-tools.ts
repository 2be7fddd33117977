import { boundDocuments } from "./input-bound.ts";
import type { ToolSpec } from "./model.ts";

/** What the tools of a provider can cost in one call. */
export interface ProviderToolBound {
  /** Names of the tools whose uses are not limited. A call with such a tool has no upper bound. */
  readonly unlimited: readonly string[];
  /** B1: highest cost of all uses, besides the tokens. */
  readonly costUsd: number;
  /** Cost of these uses. Uses of unknown number cost as much as all that are possible. */
  costOf(uses: Readonly<Record<string, number>> | undefined): number;
  /**
   * B1: returns the highest number of input tokens of the call. `input` is that of the request, `output` its output limit. After each
   * use, the provider reads the conversation again with the result, and bills it again.
   */
  inputTokens(input: number, output: number): number;
}

/** Upper bound of the tokens of the instructions that a provider adds for one of its tools. */
const overhead = 2_048;

/** What the tools of the provider in a request can cost. `undefined` if it has none. */
export function boundProviderTools(
  tools: readonly ToolSpec[] | undefined,
  { modelId, contextWindow }: { readonly modelId: string; readonly contextWindow?: number },
): ProviderToolBound | undefined {
  // Most requests have none, so no list is made for them.
  if (tools === undefined || !tools.some(({ provider }) => provider !== undefined)) return undefined;
  const own = tools.flatMap(({ name, provider }) => (provider === undefined ? [] : [{ ...provider, name }]));
  const window = boundDocuments(modelId, contextWindow);
  const uses = own.reduce((sum, { maxUses }) => sum + (maxUses ?? 1), 0);
  const perUse = Math.max(...own.map(({ maxTokensPerUse }) => maxTokensPerUse ?? window));
  // OpenAI limits the uses of all its tools together, so that each use may be one of the dearest tool.
  const costUsd = uses * Math.max(...own.map(({ usdPerUse }) => usdPerUse));
  const prices = new Map(own.map(({ name, usdPerUse }) => [name, usdPerUse]));
  return {
    unlimited: own.flatMap(({ name, maxUses }) => (maxUses === null ? [name] : [])),
    costUsd,
    costOf: (counted) =>
      counted === undefined
        ? costUsd
        : Object.entries(counted).reduce((sum, [name, count]) => sum + count * (prices.get(name) ?? 0), 0),
    inputTokens: (input, output) => {
      const first = Math.min(window, input + own.length * overhead);
      let tokens = first;
      for (let use = 1; use <= uses; use++) tokens += Math.min(window, first + output + use * perUse);
      return tokens;
    },
  };
}
