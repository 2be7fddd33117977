import {
  Fault,
  type Model,
  type ModelCallOptions,
  type ModelRequest,
  type ModelResponse,
  type ModelStreamPart,
  is,
  optionTable,
  type OptionKinds,
} from "../../kernel/index.ts";
import { AiSdkAdapter } from "./ai-sdk-adapter.ts";
import { structuredProviders, type AiSdkModel } from "./ai-sdk-model.ts";
import { modelLimits } from "./model-limits.ts";
import { anyServer, providerDirectory, type ProviderEntry } from "./provider-directory.ts";

/** Provider and model id, such as `"anthropic/claude-sonnet-5"`. The model id may contain further slashes. */
export type ModelName = `${string}/${string}`;

/** Options of `namedModel()`. */
export interface NamedModelOptions {
  /** Base URL of the server. If it is set, an unknown provider name means an OpenAI-compatible server. */
  readonly baseUrl?: string;
  /** API key. Default: the key in the provider's environment variable. */
  readonly apiKey?: string;
  /** HTTP headers of every request. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Further settings of the provider's package. */
  readonly settings?: Readonly<Record<string, unknown>>;
  /** Environment variables for keys and base URLs. Default: `process.env`. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /**
   * Loads a provider's package that is not installed where Reeve is, such as `(name) => import(name)`. Returns
   * `undefined` if there is no such package. Default: only packages installed beside Reeve are used, never those of
   * the working folder.
   */
  readonly loadPackage?: (name: string) => Promise<object | undefined>;
}

const knownOptions = optionTable({
  baseUrl: is.text(),
  apiKey: is.text(),
  headers: is.any,
  settings: is.any,
  env: is.any,
  loadPackage: is.callback(),
} satisfies OptionKinds<NamedModelOptions>);

/**
 * Returns a model by its name, `provider/model`, which may come from a variable. The provider's package is loaded at the first call; if it or the API key is missing,
 * that call fails with a fault that says what to install or to set.
 */
export function namedModel(name: string, options: NamedModelOptions = {}): Model {
  knownOptions.read("namedModel()", options);
  const slash = name.indexOf("/");
  const [provider, modelId] = [name.slice(0, slash), name.slice(slash + 1)];
  if (slash < 1 || modelId === "") {
    throw new Fault(
      "invalid_argument",
      `invalid model ${JSON.stringify(name)}: expected "provider/model", such as "anthropic/claude-sonnet-5"`,
    );
  }
  const entry = Object.hasOwn(providerDirectory, provider) ? providerDirectory[provider] : undefined;
  if (entry === undefined && options.baseUrl === undefined) {
    const known = Object.keys(providerDirectory).join(", ");
    throw new Fault(
      "invalid_argument",
      `unknown provider ${JSON.stringify(provider)}: use one of ${known}; or pass a model of an AI SDK provider; or pass a baseUrl to namedModel() for an OpenAI-compatible server`,
    );
  }
  return new NamedModel({ name, provider, modelId, entry: entry ?? anyServer, options });
}

/** Returns a model by its name like `namedModel`, but `undefined` if the name has no known provider. */
export function findNamedModel(name: string): Model | undefined {
  const slash = name.indexOf("/");
  const isKnown =
    slash > 0 && slash < name.length - 1 && Object.hasOwn(providerDirectory, name.slice(0, slash));
  return isKnown ? namedModel(name) : undefined;
}

/**
 * Returns what this process is missing for calls of a named model: the key, the base URL or the package of its
 * provider. `undefined` if nothing is missing. Also `undefined` for other models, which report this only when they
 * are called.
 */
export function lackOfModel(model: Model): Fault | undefined {
  return model instanceof NamedModel ? model.lack() : undefined;
}

interface ModelReference {
  readonly name: string;
  readonly provider: string;
  readonly modelId: string;
  readonly entry: ProviderEntry;
  readonly options: NamedModelOptions;
}

class NamedModel implements Model {
  readonly provider: string;
  readonly modelId: string;
  readonly contextWindow?: number;
  readonly maxOutputTokens?: number;
  readonly supportsStructuredOutput?: boolean;
  readonly #reference: ModelReference;
  #loaded: Promise<Model> | undefined;

  constructor(naming: ModelReference) {
    this.#reference = naming;
    this.provider = naming.provider;
    this.modelId = naming.modelId;
    Object.assign(this, modelLimits(this.provider, this.modelId));
    // A server at another address may accept a schema and ignore it.
    if (naming.options.baseUrl === undefined && structuredProviders.has(naming.provider))
      this.supportsStructuredOutput = true;
  }

  async generate(request: ModelRequest, options?: ModelCallOptions): Promise<ModelResponse> {
    return (await this.#load()).generate(request, options);
  }

  async *stream(request: ModelRequest, options?: ModelCallOptions): AsyncIterable<ModelStreamPart> {
    yield* (await this.#load()).stream(request, options);
  }

  lack(): Fault | undefined {
    const { entry, options } = this.#reference;
    try {
      settingsFor(this.#reference);
    } catch (error) {
      return Fault.from(error);
    }
    const mayLoad = options.loadPackage !== undefined || installedAddress(entry.package) !== undefined;
    return mayLoad ? undefined : missingPackage(this.#reference);
  }

  /**
   * Loads the provider's package once. After a failure the next call tries again, because the user may have
   * provided what was missing.
   */
  async #load(): Promise<Model> {
    this.#loaded ??= load(this.#reference);
    try {
      return await this.#loaded;
    } catch (error) {
      this.#loaded = undefined;
      throw error;
    }
  }
}

async function load(naming: ModelReference): Promise<Model> {
  const { entry, modelId } = naming;
  const settings = settingsFor(naming);
  const exports = await loadPackage(naming);
  const factory = exports[entry.factory];
  if (typeof factory !== "function") {
    throw new Fault(
      "unsupported",
      `${entry.package} does not export ${entry.factory}: install a version of it for AI SDK 6 or 7`,
    );
  }
  const provider = (factory as (settings: object) => (id: string) => AiSdkModel)(settings);
  return new AiSdkAdapter(provider(modelId));
}

function settingsFor({ name, provider, entry, options }: ModelReference): Record<string, unknown> {
  const { env = process.env, headers, settings } = options;
  const apiKey =
    options.apiKey ?? entry.keys.map((key) => env[key]).find((key) => key !== undefined && key !== "");
  if (apiKey === undefined && entry.keys.length > 0 && entry.keyless !== true) {
    throw new Fault("model_auth", `${entry.keys.join(" or ")} is not set: set it to use ${name}`);
  }
  const { server } = entry;
  const baseURL =
    options.baseUrl ?? (server === undefined ? undefined : (env[server.variable] ?? server.url));
  if (server !== undefined && baseURL === undefined) {
    throw new Fault(
      "invalid_argument",
      `the base URL of ${name} is unknown: set ${server.variable}, for example to http://127.0.0.1:8000/v1, or pass a baseUrl to namedModel(), or --base-url to reeve run`,
    );
  }
  return {
    ...entry.settings,
    ...(server === undefined ? {} : { name: provider }),
    ...(apiKey === undefined ? {} : { apiKey }),
    ...(baseURL === undefined ? {} : { baseURL }),
    ...(headers === undefined ? {} : { headers }),
    ...settings,
  };
}

/**
 * Loads a package from the place where Reeve is installed, or else with the option `loadPackage`. It is never
 * loaded from the working folder, which may be a repository that the user has not reviewed.
 */
async function loadPackage(naming: ModelReference): Promise<Readonly<Record<string, unknown>>> {
  const { entry, options } = naming;
  const wanted = entry.package;
  const address = installedAddress(wanted);
  const loaded: unknown = address === undefined ? await options.loadPackage?.(wanted) : await import(address);
  if (loaded !== undefined) return loaded as Readonly<Record<string, unknown>>;
  throw missingPackage(naming);
}

function missingPackage({ name, entry: { package: wanted } }: ModelReference): Fault {
  return new Fault(
    "dependency_missing",
    `${name} needs the package ${wanted}: npm install ${wanted} where Reeve is installed`,
  );
}

/**
 * Returns the address of a package where Reeve is installed, or `undefined` if it is not there. It is searched in
 * the way of `import`, so that the variable `NODE_PATH`, which may name the working folder, has no effect.
 */
export function installedAddress(wanted: string): string | undefined {
  try {
    return import.meta.resolve(wanted);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ERR_MODULE_NOT_FOUND") return undefined;
    throw error;
  }
}

/** Facts about a provider in the directory, for this process. Keys are only named and never read. */
export interface ProviderFacts {
  /** Name of the provider in `provider/model`. */
  readonly name: string;
  /** npm package of the provider. */
  readonly package: string;
  /** Whether the package is installed where Reeve is. */
  readonly isInstalled: boolean;
  /** Environment variables that may hold the key. Empty if the package finds its credentials itself. */
  readonly keys: readonly string[];
  /** Name of the environment variable that contains the key. `null` if none is set. */
  readonly key: string | null;
  /** Whether a call without a key is refused. */
  readonly needsKey: boolean;
  /**
   * Environment variable with the address, for a provider whose server may be anywhere. `null` for other providers.
   */
  readonly addressVariable: string | null;
}

/** Returns facts about every provider for this process. It loads no package. */
export function providerFacts(env: Readonly<Record<string, string | undefined>>): readonly ProviderFacts[] {
  return Object.entries(providerDirectory).map(
    ([name, { package: wanted, keys, keyless = false, server }]) => ({
      name,
      package: wanted,
      isInstalled: installedAddress(wanted) !== undefined,
      keys,
      key: keys.find((key) => env[key] !== undefined && env[key] !== "") ?? null,
      needsKey: keys.length > 0 && !keyless,
      addressVariable: server?.variable ?? null,
    }),
  );
}
