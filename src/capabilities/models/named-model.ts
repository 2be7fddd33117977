import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import {
  Fault,
  type Model,
  type ModelCallOptions,
  type ModelRequest,
  type ModelResponse,
  type ModelStreamPart,
} from "../../kernel/index.ts";
import { AiSdkAdapter } from "./ai-sdk-adapter.ts";
import type { AiSdkModel } from "./ai-sdk-model.ts";
import { anyServer, providerDirectory, type ProviderEntry } from "./provider-directory.ts";

/** `"anthropic/claude-sonnet-5"`: a provider, and what it calls the model, which may have slashes of its own. */
export type ModelName = `${string}/${string}`;

export interface NamedModelOptions {
  /** Of the server. With it any provider name will do: an unknown one is an OpenAI-compatible server. */
  readonly baseUrl?: string;
  /** Instead of the environment's. */
  readonly apiKey?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Anything else that the provider's package takes. */
  readonly settings?: Readonly<Record<string, unknown>>;
  /** Where keys and addresses are looked up. `process.env` unless told. */
  readonly env?: Readonly<Record<string, string | undefined>>;
}

/**
 * A model by its name. Its provider's package is loaded with the first call, not before: what is missing then is a fault that says what
 * to install or to set.
 */
export function namedModel(name: ModelName, options: NamedModelOptions = {}): Model {
  const slash = name.indexOf("/");
  const [provider, modelId] = [name.slice(0, slash), name.slice(slash + 1)];
  if (slash < 1 || modelId === "") {
    throw new Fault(
      "invalid_argument",
      `${JSON.stringify(name)} is not a model: write "provider/model", such as "anthropic/claude-sonnet-5"`,
    );
  }
  const entry = Object.hasOwn(providerDirectory, provider) ? providerDirectory[provider] : undefined;
  if (entry === undefined && options.baseUrl === undefined) {
    const known = Object.keys(providerDirectory).join(", ");
    throw new Fault(
      "invalid_argument",
      `no provider is called ${JSON.stringify(provider)}; known: ${known}. Give the model of an AI SDK provider instead of its name, or a baseUrl with namedModel for a server that speaks OpenAI's protocol`,
    );
  }
  return new NamedModel({ name, provider, modelId, entry: entry ?? anyServer, options });
}

interface Naming {
  readonly name: ModelName;
  readonly provider: string;
  readonly modelId: string;
  readonly entry: ProviderEntry;
  readonly options: NamedModelOptions;
}

class NamedModel implements Model {
  readonly provider: string;
  readonly modelId: string;
  readonly #naming: Naming;
  #loaded: Promise<Model> | undefined;

  constructor(naming: Naming) {
    this.#naming = naming;
    this.provider = naming.provider;
    this.modelId = naming.modelId;
  }

  async generate(request: ModelRequest, options?: ModelCallOptions): Promise<ModelResponse> {
    return (await this.#load()).generate(request, options);
  }

  async *stream(request: ModelRequest, options?: ModelCallOptions): AsyncIterable<ModelStreamPart> {
    yield* (await this.#load()).stream(request, options);
  }

  /** What failed is looked up again with the next call: someone may have set what was missing. */
  async #load(): Promise<Model> {
    this.#loaded ??= load(this.#naming);
    try {
      return await this.#loaded;
    } catch (error) {
      this.#loaded = undefined;
      throw error;
    }
  }
}

async function load(naming: Naming): Promise<Model> {
  const { entry, modelId } = naming;
  const settings = settingsFor(naming);
  const exports = await loadPackage(naming);
  const factory = exports[entry.factory];
  if (typeof factory !== "function") {
    throw new Fault(
      "unsupported",
      `${entry.package} has no ${entry.factory}: install a version of it for AI SDK 6 or 7`,
    );
  }
  const provider = (factory as (settings: object) => (id: string) => AiSdkModel)(settings);
  return new AiSdkAdapter(provider(modelId));
}

function settingsFor({ name, provider, entry, options }: Naming): Record<string, unknown> {
  const { env = process.env, headers, settings } = options;
  const apiKey =
    options.apiKey ?? entry.keys.map((key) => env[key]).find((key) => key !== undefined && key !== "");
  if (apiKey === undefined && entry.keys.length > 0 && entry.keyless !== true) {
    throw new Fault("model_auth", `${entry.keys.join(" or ")} is not set: ${name} needs it`);
  }
  const { server } = entry;
  const baseURL =
    options.baseUrl ?? (server === undefined ? undefined : (env[server.variable] ?? server.url));
  if (server !== undefined && baseURL === undefined) {
    throw new Fault(
      "invalid_argument",
      `the address of the server of ${name} is not known: set ${server.variable}, such as http://127.0.0.1:8000/v1, or give namedModel a baseUrl`,
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

/** From where this package is installed, or else from where the program runs, which may be another place. */
async function loadPackage({ name, entry }: Naming): Promise<Readonly<Record<string, unknown>>> {
  const wanted = entry.package;
  const address =
    resolveFrom(import.meta.url, wanted) ?? resolveFrom(pathToFileURL(join(process.cwd(), "_")), wanted);
  if (address === undefined) {
    throw new Fault("dependency_missing", `${name} needs the package ${wanted}: npm install ${wanted}`);
  }
  return (await import(pathToFileURL(address).href)) as Readonly<Record<string, unknown>>;
}

function resolveFrom(place: string | URL, wanted: string): string | undefined {
  try {
    return createRequire(place).resolve(wanted);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "MODULE_NOT_FOUND") return undefined;
    throw error;
  }
}
