import { describeValue, Fault, type ModelPrice, type PriceQuery } from "../../kernel/index.ts";

/** Prices in USD per million tokens. A kind of token without a price costs as much as `input` or `output`. */
export interface UsdPerMillion {
  readonly input: number;
  readonly output: number;
  readonly cacheRead?: number;
  readonly cacheWrite?: number;
  readonly reasoning?: number;
}

/** A custom price. A `*` at the end of `provider` or `model` matches any text. */
export interface PriceOverride {
  /** Name of the provider, as in `model.provider`. */
  readonly provider: string;
  /** Id of the model, as in `model.modelId`. */
  readonly model: string;
  /** Prices of the tokens. */
  readonly usdPerMillion: UsdPerMillion;
  /** Price of each call in USD, independent of its size. Default: 0. */
  readonly usdPerRequest?: number;
  /**
   * Prices for calls whose input exceeds a number of tokens. They apply to the whole call. Of several tiers that
   * apply, the one with the highest number is used.
   */
  readonly tiers?: readonly { readonly aboveInputTokens: number; readonly usdPerMillion: UsdPerMillion }[];
  /** Time from which the price applies, in epoch milliseconds. If absent, it always applies. */
  readonly from?: number;
}

/**
 * Price overrides, sorted by precedence: an exact name before a pattern, a longer pattern before a shorter one, a later
 * `from` before an earlier one.
 */
export class PriceOverrides {
  readonly #all: readonly PriceOverride[];

  constructor(overrides: readonly PriceOverride[]) {
    for (const override of overrides) check(override);
    this.#all = overrides.toReversed().toSorted((one, other) => {
      const byName = weight(other.model) - weight(one.model) || weight(other.provider) - weight(one.provider);
      return byName || (other.from ?? -Infinity) - (one.from ?? -Infinity) || 0;
    });
  }

  /** Returns the price of a call, or `null` if no override matches. */
  find({ provider, modelId, inputTokens, at }: PriceQuery): ModelPrice | null {
    const found = this.#all.find(
      (each) =>
        matches(each.provider, provider) && matches(each.model, modelId) && (each.from ?? -Infinity) <= at,
    );
    if (found === undefined) return null;
    let { usdPerMillion } = found;
    let above = -1;
    for (const tier of found.tiers ?? []) {
      if (inputTokens <= tier.aboveInputTokens || tier.aboveInputTokens <= above) continue;
      above = tier.aboveInputTokens;
      ({ usdPerMillion } = tier);
    }
    return perToken(usdPerMillion, found.usdPerRequest);
  }
}

/** Converts prices per million tokens to prices per token. */
export function perToken(price: UsdPerMillion, requestUsd?: number): ModelPrice {
  const { input, output, cacheRead, cacheWrite, reasoning } = price;
  return {
    inputUsd: input / 1e6,
    outputUsd: output / 1e6,
    ...(cacheRead === undefined ? {} : { cacheReadUsd: cacheRead / 1e6 }),
    ...(cacheWrite === undefined ? {} : { cacheWriteUsd: cacheWrite / 1e6 }),
    ...(reasoning === undefined ? {} : { reasoningUsd: reasoning / 1e6 }),
    ...(requestUsd === undefined ? {} : { requestUsd }),
  };
}

/** Returns the precedence of a name: an exact name is above every pattern. */
function weight(pattern: string): number {
  return pattern.endsWith("*") ? pattern.length : Infinity;
}

function matches(pattern: string, name: string): boolean {
  return pattern.endsWith("*") ? name.startsWith(pattern.slice(0, -1)) : name === pattern;
}

function check({
  provider,
  model,
  usdPerMillion,
  usdPerRequest = 0,
  tiers = [],
  from = 0,
}: PriceOverride): void {
  const of = `the price of ${provider}/${model}`;
  for (const [name, text] of Object.entries({ provider, model })) {
    if (typeof text !== "string" || text === "")
      throw new Fault(
        "invalid_argument",
        `${of}: invalid ${name} ${describeValue(text)}; use a name, or a name that ends in *`,
      );
  }
  const amounts: [string, unknown][] = [["usdPerRequest", usdPerRequest]];
  for (const [index, { aboveInputTokens, usdPerMillion: above }] of tiers.entries()) {
    amounts.push([`tiers[${index}].aboveInputTokens`, aboveInputTokens]);
    for (const part of parts(above)) amounts.push([`tiers[${index}].usdPerMillion.${part}`, above[part]]);
  }
  for (const part of parts(usdPerMillion)) amounts.push([`usdPerMillion.${part}`, usdPerMillion[part]]);
  for (const [name, amount] of amounts) {
    if (typeof amount !== "number" || !Number.isFinite(amount) || amount < 0)
      throw new Fault(
        "invalid_argument",
        `${of}: invalid ${name} ${describeValue(amount)}; use a number of at least 0`,
      );
  }
  if (!Number.isFinite(from))
    throw new Fault("invalid_argument", `${of}: invalid from ${describeValue(from)}; use epoch milliseconds`);
}

/** Returns the names of the required prices and of the optional ones that are set. */
function parts(price: UsdPerMillion): readonly (keyof UsdPerMillion)[] {
  const given = Object.keys(price) as (keyof UsdPerMillion)[];
  return [...new Set<keyof UsdPerMillion>(["input", "output", ...given])].filter(
    (part) => part === "input" || part === "output" || price[part] !== undefined,
  );
}
