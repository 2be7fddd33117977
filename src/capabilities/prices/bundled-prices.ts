import { calcPrice, type ModelPrice as ListedPrice, type TieredPrices } from "@pydantic/genai-prices";
import type { ModelPrice, PriceQuery, PriceTable } from "../../kernel/index.ts";
import { perToken } from "./price-override.ts";

/** The list that comes with `@pydantic/genai-prices`. A provider that is not in it has no prices, whatever its models are called. */
export class BundledPrices implements PriceTable {
  /** Prices that hold at any time; `null`: not listed. Those with dates or hours are looked up anew. */
  readonly #steady = new Map<string, Map<string, ListedPrice | null>>();
  #kept = 0;

  find(query: PriceQuery): ModelPrice | null {
    const listed = this.#listed(query);
    if (listed === null) return null;
    const { inputTokens } = query;
    const at = (key: string): number | undefined => amount(listed[key], inputTokens);
    const [input, output, request] = [at("input_mtok"), at("output_mtok"), at("requests_kcount")];
    if (input === undefined || output === undefined) return null;
    const [cacheRead, cacheWrite, reasoning] = [
      at("cache_read_mtok"),
      at("cache_write_mtok"),
      at("output_reasoning_mtok"),
    ];
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

  #listed({ provider, modelId, at }: PriceQuery): ListedPrice | null {
    const steady = this.#steady.get(provider)?.get(modelId);
    if (steady !== undefined) return steady;
    if (provider === "" || modelId === "") return null;
    // Nothing is priced: this asks which prices apply.
    const found = calcPrice({}, modelId, { providerId: provider, timestamp: new Date(at) });
    if (found === null || !Array.isArray(found.model.prices)) {
      if (this.#kept++ >= mostKept) this.#forget();
      const models = this.#steady.get(provider) ?? new Map<string, ListedPrice | null>();
      this.#steady.set(provider, models.set(modelId, found?.model_price ?? null));
    }
    return found?.model_price ?? null;
  }

  #forget(): void {
    this.#steady.clear();
    this.#kept = 0;
  }
}

/** Model names may come from outside. */
const mostKept = 1_000;

/** A tier holds for the whole of a call whose input is above its start. */
function amount(price: number | TieredPrices | undefined, inputTokens: number): number | undefined {
  if (typeof price !== "object") return price;
  let highest = { start: -1, price: price.base };
  for (const tier of price.tiers) if (inputTokens > tier.start && tier.start > highest.start) highest = tier;
  return highest.price;
}
