import { describeValue, Fault, type ModelPrice, type PriceQuery } from "../../kernel/index.ts";

/** Dollars per million tokens, as providers print them. What has no price of its own costs what `input` or `output` costs. */
export interface UsdPerMillion {
  readonly input: number;
  readonly output: number;
  readonly cacheRead?: number;
  readonly cacheWrite?: number;
  readonly reasoning?: number;
}

/** A price of your own. `*` at the end of a name stands for anything. */
export interface PriceOverride {
  /** As the model names its provider. */
  readonly provider: string;
  readonly model: string;
  readonly usdPerMillion: UsdPerMillion;
  /** For each call, whatever its size. */
  readonly usdPerRequest?: number;
  /** For a whole call whose input is above so many tokens; of those that apply, the highest. */
  readonly tiers?: readonly { readonly aboveInputTokens: number; readonly usdPerMillion: UsdPerMillion }[];
  /** Epoch milliseconds from which it holds; always, unless told. */
  readonly from?: number;
}

/** Overrides in the order in which they are looked at: an exact name before a pattern, a longer one before a shorter, a later before an earlier. */
export class PriceOverrides {
  readonly #all: readonly PriceOverride[];

  constructor(overrides: readonly PriceOverride[]) {
    for (const override of overrides) check(override);
    this.#all = overrides.toReversed().toSorted((one, other) => {
      const byName = weight(other.model) - weight(one.model) || weight(other.provider) - weight(one.provider);
      return byName || (other.from ?? -Infinity) - (one.from ?? -Infinity) || 0;
    });
  }

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

/** An exact name weighs more than any pattern. */
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
        `${of}: ${name} is ${describeValue(text)}: it must be a name, or one ending in *`,
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
        `${of}: ${name} is ${describeValue(amount)}: it must be a number from 0`,
      );
  }
  if (!Number.isFinite(from))
    throw new Fault(
      "invalid_argument",
      `${of}: from is ${describeValue(from)}: it must be epoch milliseconds`,
    );
}

/** Those that must be there, and those that are. */
function parts(price: UsdPerMillion): readonly (keyof UsdPerMillion)[] {
  const given = Object.keys(price) as (keyof UsdPerMillion)[];
  return [...new Set<keyof UsdPerMillion>(["input", "output", ...given])].filter(
    (part) => part === "input" || part === "output" || price[part] !== undefined,
  );
}
