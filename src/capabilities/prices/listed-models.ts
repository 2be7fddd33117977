/** Test that a lower-case name must pass. */
type NameTest =
  | { readonly or: readonly NameTest[] }
  | { readonly and: readonly NameTest[] }
  | { readonly equals: string }
  | { readonly starts_with: string }
  | { readonly ends_with: string }
  | { readonly contains: string }
  | { readonly regex: string };

/**
 * Prices in USD per million tokens; `request` is in USD per thousand calls. A tier applies to the whole call if its
 * input exceeds the tier's start.
 */
export type ListedPrice = Readonly<Partial<Record<PricedPart, number | TieredAmount>>>;

type PricedPart = "input" | "output" | "cacheRead" | "cacheWrite" | "reasoning" | "request";

/** A price that depends on the number of input tokens. */
export interface TieredAmount {
  readonly base: number;
  readonly tiers: readonly { readonly start: number; readonly price: number }[];
}

/**
 * A price that applies from a moment on (`since`, epoch milliseconds), or in some hours of the day (`hours`, seconds
 * since midnight UTC), or always.
 */
export interface TimedPrice {
  readonly since?: number;
  readonly hours?: readonly [from: number, to: number];
  readonly price: ListedPrice;
}

/** A model of the list, with its prices. */
interface ListedModel {
  readonly match: NameTest;
  /** Prices by time. The last one that applies is used. If none applies, the first one is used. */
  readonly prices: readonly TimedPrice[];
}

/** A model of the list, with the size of its context window in tokens. */
export interface ModelWindow {
  readonly match: NameTest;
  readonly contextWindow: number;
}

/** A provider of the list, with its models. */
export interface ListedProvider<Model = ListedModel> {
  readonly id: string;
  readonly match?: NameTest;
  /** Tests whether a model name belongs to this provider. */
  readonly modelMatch?: NameTest;
  /** Ids of providers whose models this provider offers, too. */
  readonly fallbacks?: readonly string[];
  /** `Model[]` as JSON text. It is parsed when a model of the provider is looked up. */
  readonly models: string & { readonly of?: Model };
}

/** Finds models in the price list by the names that providers and their SDKs use. */
export class ListedModels<Model extends { readonly match: NameTest }> {
  readonly #providers: readonly ListedProvider<Model>[];
  readonly #models = new Map<ListedProvider<Model>, readonly Model[]>();

  constructor(providers: readonly ListedProvider<Model>[]) {
    this.#providers = providers;
  }

  /** Returns the model, or `undefined` if it is not in the list. */
  find(providerName: string, modelName: string): Model | undefined {
    const name = modelName.toLowerCase().trim();
    if (providerName.toLowerCase() === "litellm") return this.#behindLiteLlm(name);
    const provider = this.#provider(providerName);
    return provider && this.#model(provider, name);
  }

  /** Whether the list has models of this provider. */
  hasProvider(providerName: string): boolean {
    return this.#provider(providerName) !== undefined;
  }

  /** Returns names of the models of a provider, as far as the list contains whole names or their beginnings. */
  names(providerName: string): readonly string[] {
    const provider = this.#provider(providerName);
    return provider === undefined
      ? []
      : this.#modelsOf(provider.id).flatMap(({ match }) => nameIn(match) ?? []);
  }

  /**
   * Finds a model behind LiteLLM, a proxy to many providers. The name is `provider/model`, or a model name that
   * identifies its provider.
   */
  #behindLiteLlm(name: string): Model | undefined {
    const [, providerName = "", rest = ""] = /^(.*?)\/(.*)$/s.exec(name) ?? [];
    const named = rest === "" ? undefined : this.#provider(providerName);
    if (named !== undefined) return this.#model(named, rest);
    const known = this.#providers.find(({ modelMatch }) => passes(modelMatch, name));
    return known && this.#model(known, name);
  }

  #provider(providerName: string): ListedProvider<Model> | undefined {
    const name = providerName.toLowerCase().trim();
    return (
      this.#providers.find(({ id }) => id === name) ??
      this.#providers.find(({ match }) => passes(match, name))
    );
  }

  /** Finds a model of a provider. A date in the name is tried without and with dashes, because providers write both. */
  #model(provider: ListedProvider<Model>, name: string): Model | undefined {
    return this.#modelNamed(provider, name) ?? this.#modelNamed(provider, withDashes(name));
  }

  #modelNamed(provider: ListedProvider<Model>, name: string): Model | undefined {
    for (const id of [provider.id, ...(provider.fallbacks ?? [])]) {
      const found = this.#modelsOf(id).find(({ match }) => passes(match, name));
      if (found !== undefined) return found;
    }
    return undefined;
  }

  #modelsOf(id: string): readonly Model[] {
    const provider = this.#providers.find((each) => each.id === id);
    if (provider === undefined) return [];
    const known = this.#models.get(provider) ?? (JSON.parse(provider.models) as readonly Model[]);
    this.#models.set(provider, known);
    return known;
  }
}

/** Returns the name in a test: the one with which it compares, or the beginning that it requires. */
function nameIn(test: NameTest): string | undefined {
  if ("or" in test) {
    const names = test.or.flatMap((each) => ("equals" in each ? [each.equals] : []));
    return names[0] ?? test.or.map(nameIn).find((name) => name !== undefined);
  }
  if ("equals" in test) return test.equals;
  return "starts_with" in test ? test.starts_with : undefined;
}

function passes(test: NameTest | undefined, name: string): boolean {
  if (test === undefined) return false;
  if ("or" in test) return test.or.some((each) => passes(each, name));
  if ("and" in test) return test.and.every((each) => passes(each, name));
  if ("equals" in test) return name === test.equals;
  if ("starts_with" in test) return name.startsWith(test.starts_with);
  if ("ends_with" in test) return name.endsWith(test.ends_with);
  if ("contains" in test) return name.includes(test.contains);
  return new RegExp(test.regex).test(name);
}

function withDashes(name: string): string {
  const date = /-(20\d\d)(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])(?=[-:]|$)/g;
  return name.replace(date, (found, year: string, month: string, day: string) => {
    const isDate =
      new Date(Date.UTC(Number(year), Number(month) - 1, Number(day))).getUTCDate() === Number(day);
    return isDate ? `-${year}-${month}-${day}` : found;
  });
}
