/** What a name in lower case is held against. */
type NameTest =
  | { readonly or: readonly NameTest[] }
  | { readonly and: readonly NameTest[] }
  | { readonly equals: string }
  | { readonly starts_with: string }
  | { readonly ends_with: string }
  | { readonly contains: string }
  | { readonly regex: string };

/** Dollars per million tokens; `request` is dollars per thousand calls. A tier holds for the whole of a call whose input is above its start. */
export type ListedPrice = Readonly<Partial<Record<PricedPart, number | TieredAmount>>>;

type PricedPart = "input" | "output" | "cacheRead" | "cacheWrite" | "reasoning" | "request";

export interface TieredAmount {
  readonly base: number;
  readonly tiers: readonly { readonly start: number; readonly price: number }[];
}

/** A price that holds from a moment on (epoch milliseconds), or in some hours of the day (seconds from midnight, UTC); else always. */
export interface TimedPrice {
  readonly since?: number;
  readonly hours?: readonly [from: number, to: number];
  readonly price: ListedPrice;
}

export interface ListedModel {
  readonly match: NameTest;
  /** Of those that hold, the last counts; if none does, the first. */
  readonly prices: readonly TimedPrice[];
}

export interface ListedProvider {
  readonly id: string;
  readonly match?: NameTest;
  /** Names of models that are known for this provider's. */
  readonly modelMatch?: NameTest;
  /** Whose models it has beside its own. */
  readonly fallbacks?: readonly string[];
  /** `ListedModel[]` as JSON: read for the providers that are asked for. */
  readonly models: string;
}

/** Finds models by the names that providers and their SDKs give them. */
export class ListedModels {
  readonly #providers: readonly ListedProvider[];
  readonly #models = new Map<ListedProvider, readonly ListedModel[]>();

  constructor(providers: readonly ListedProvider[]) {
    this.#providers = providers;
  }

  find(providerName: string, modelName: string): ListedModel | undefined {
    const name = modelName.toLowerCase().trim();
    if (providerName.toLowerCase() === "litellm") return this.#behindLiteLlm(name);
    const provider = this.#provider(providerName);
    return provider && this.#model(provider, name);
  }

  /** A door to many providers: what is asked for is `provider/model`, or a model whose name alone says whose it is. */
  #behindLiteLlm(name: string): ListedModel | undefined {
    const [, providerName = "", rest = ""] = /^(.*?)\/(.*)$/s.exec(name) ?? [];
    const named = rest === "" ? undefined : this.#provider(providerName);
    if (named !== undefined) return this.#model(named, rest);
    const known = this.#providers.find(({ modelMatch }) => passes(modelMatch, name));
    return known && this.#model(known, name);
  }

  #provider(providerName: string): ListedProvider | undefined {
    const name = providerName.toLowerCase().trim();
    return (
      this.#providers.find(({ id }) => id === name) ??
      this.#providers.find(({ match }) => passes(match, name))
    );
  }

  /** Some write the date in a name with dashes and some without. */
  #model(provider: ListedProvider, name: string): ListedModel | undefined {
    return this.#modelNamed(provider, name) ?? this.#modelNamed(provider, withDashes(name));
  }

  #modelNamed(provider: ListedProvider, name: string): ListedModel | undefined {
    for (const id of [provider.id, ...(provider.fallbacks ?? [])]) {
      const found = this.#modelsOf(id).find(({ match }) => passes(match, name));
      if (found !== undefined) return found;
    }
    return undefined;
  }

  #modelsOf(id: string): readonly ListedModel[] {
    const provider = this.#providers.find((each) => each.id === id);
    if (provider === undefined) return [];
    const known = this.#models.get(provider) ?? (JSON.parse(provider.models) as readonly ListedModel[]);
    this.#models.set(provider, known);
    return known;
  }
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
