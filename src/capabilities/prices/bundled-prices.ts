import type { ModelPrice, PriceQuery, PriceTable } from "../../kernel/index.ts";
import { type ListedPrice, ListedModels, type TieredAmount, type TimedPrice } from "./listed-models.ts";
import { priceList } from "./price-list.ts";
import { perToken } from "./price-override.ts";

/**
 * Prices from the list that is part of this package. A provider that is not in the list has no prices, even if its
 * models have the names of other providers' models.
 */
export class BundledPrices implements PriceTable {
  readonly #models = new ListedModels(priceList);
  /** Prices by provider and model. An empty list means that the model is not in the price list. */
  readonly #cache = new Map<string, Map<string, readonly TimedPrice[]>>();
  #cachedCount = 0;

  /** Returns the price of a call, or `null` if the model is not in the list. */
  find({ provider, modelId, inputTokens, at }: PriceQuery): ModelPrice | null {
    const listed = priceAt(this.#prices(provider, modelId), at);
    if (listed === undefined) return null;
    const input = amount(listed.input, inputTokens);
    const output = amount(listed.output, inputTokens);
    if (input === undefined || output === undefined) return null;
    const cacheRead = amount(listed.cacheRead, inputTokens);
    const cacheWrite = amount(listed.cacheWrite, inputTokens);
    const reasoning = amount(listed.reasoning, inputTokens);
    const request = amount(listed.request, inputTokens);
    return perToken(
      {
        input,
        output,
        ...(cacheRead !== undefined && { cacheRead }),
        ...(cacheWrite !== undefined && { cacheWrite }),
        ...(reasoning !== undefined && { reasoning }),
      },
      request === undefined ? undefined : request / 1_000,
    );
  }

  /** Returns the names of a provider's models in the list. */
  names(provider: string): readonly string[] {
    return this.#models.names(provider);
  }

  #prices(provider: string, modelId: string): readonly TimedPrice[] {
    const known = this.#cache.get(provider)?.get(modelId);
    if (known !== undefined) return known;
    const isNamed = provider !== "" && modelId !== "";
    const prices = (isNamed ? this.#models.find(provider, modelId)?.prices : undefined) ?? [];
    if (this.#cachedCount++ >= maxCached) this.#forget();
    const models = this.#cache.get(provider) ?? new Map<string, readonly TimedPrice[]>();
    this.#cache.set(provider, models.set(modelId, prices));
    return prices;
  }

  #forget(): void {
    this.#cache.clear();
    this.#cachedCount = 0;
  }
}

/**
 * Maximum number of models whose prices are cached. The number is limited, because model names may come from
 * outside.
 */
const maxCached = 1_000;

const dayMs = 86_400_000;

/** Returns the last price that applies at a time. If none applies, returns the first. */
function priceAt(prices: readonly TimedPrice[], at: number): ListedPrice | undefined {
  const second = (at % dayMs) / 1_000;
  const found = prices.findLast(
    ({ since = -Infinity, hours: [from, to] = allDay }) =>
      at >= since && (from <= to ? second >= from && second < to : second >= from || second < to),
  );
  return (found ?? prices[0])?.price;
}

const allDay = [0, dayMs / 1_000] as const;

/**
 * Returns the price for a number of input tokens. A tier applies to the whole call if its input exceeds the tier's
 * start.
 */
function amount(price: number | TieredAmount | undefined, inputTokens: number): number | undefined {
  if (typeof price !== "object") return price;
  let highest = { start: -1, price: price.base };
  for (const tier of price.tiers) if (inputTokens > tier.start && tier.start > highest.start) highest = tier;
  return highest.price;
}
