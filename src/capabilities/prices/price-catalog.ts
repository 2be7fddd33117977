import type { ModelPrice, PriceQuery, PriceTable } from "../../kernel/index.ts";
import type { BundledPrices } from "./bundled-prices.ts";
import { PriceOverrides, type PriceOverride } from "./price-override.ts";

export interface PriceCatalogOptions {
  /** Asked first. */
  readonly overrides?: readonly PriceOverride[];
  /** Whether to ask the list that comes with the package for what no override names. `true` unless told. */
  readonly bundled?: boolean;
}

/**
 * Prices of your own over a public list, that of `@pydantic/genai-prices`. Offline: the list is the one that came with this package. It is
 * read with the first model call. What is in neither is not known (B4).
 */
export function priceCatalog(options: PriceCatalogOptions = {}): PriceTable {
  return new PriceCatalog(options);
}

class PriceCatalog implements PriceTable {
  readonly #overrides: PriceOverrides | undefined;
  #bundled: BundledPrices | undefined;
  #loading: Promise<void> | undefined;
  #done: boolean;

  constructor({ overrides = [], bundled = true }: PriceCatalogOptions) {
    this.#overrides = overrides.length === 0 ? undefined : new PriceOverrides(overrides);
    this.#done = !bundled;
  }

  load(): Promise<void> | undefined {
    if (this.#done) return undefined;
    this.#loading ??= this.#load();
    return this.#loading;
  }

  find(query: PriceQuery): ModelPrice | null {
    return this.#overrides?.find(query) ?? this.#bundled?.find(query) ?? null;
  }

  async #load(): Promise<void> {
    const { BundledPrices: Bundled } = await import("./bundled-prices.ts");
    this.#bundled = new Bundled();
    this.#done = true;
  }
}
