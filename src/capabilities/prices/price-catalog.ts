import {
  type ModelPrice,
  type PriceQuery,
  type PriceTable,
  is,
  optionTable,
  type OptionKinds,
} from "../../kernel/index.ts";
import type { BundledPrices } from "./bundled-prices.ts";
import { PriceOverrides, type PriceOverride } from "./price-override.ts";

/** Options of `priceCatalog()`. */
export interface PriceCatalogOptions {
  /** Prices that take precedence over the bundled list. */
  readonly overrides?: readonly PriceOverride[];
  /** Whether to use the bundled list for models that no override matches. Default: `true`. */
  readonly bundled?: boolean;
}

const knownOptions = optionTable({
  overrides: is.list(),
  bundled: is.boolean(),
} satisfies OptionKinds<PriceCatalogOptions>);

/**
 * Returns a price table of your own prices and the public list of `@pydantic/genai-prices`. It works offline: the list is part of this
 * package and is read at the first model call. B4: a model that is in neither has no known price.
 *
 * @example
 * ```ts
 * import { openRuntime, priceCatalog } from "reeve";
 *
 * const prices = priceCatalog({
 *   overrides: [{ provider: "vllm", model: "*", usdPerMillion: { input: 0.1, output: 0.3 } }],
 * });
 * const runtime = await openRuntime({ prices });
 * ```
 */
export function priceCatalog(options: PriceCatalogOptions = {}): PriceTable {
  knownOptions.read("priceCatalog()", options);
  return new PriceCatalog(options);
}

/** Returns the names, `provider/id`, of the models of these providers in the bundled list. It reads the list. */
export async function listedModelNames(providers: readonly string[]): Promise<readonly string[]> {
  const { BundledPrices: Bundled } = await import("./bundled-prices.ts");
  const prices = new Bundled();
  return providers.flatMap((provider) => prices.names(provider).map((name) => `${provider}/${name}`));
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
