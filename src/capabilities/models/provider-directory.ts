/** How to reach a provider by its name. */
export interface ProviderEntry {
  /** npm package of the provider. */
  readonly package: string;
  /** Name of the package's export that creates a provider from settings. */
  readonly factory: string;
  /**
   * Environment variables that may contain the API key. The first one that is set is used. If empty, the package
   * finds its credentials itself.
   */
  readonly keys: readonly string[];
  /** Whether the server works without a key. */
  readonly keyless?: boolean;
  /** Base URL of an OpenAI-compatible server, and the environment variable that overrides it. */
  readonly server?: { readonly url?: string; readonly variable: string };
  /** Settings that are always passed to the factory. */
  readonly settings?: Readonly<Record<string, unknown>>;
}

function native(name: string, factory: string, ...keys: readonly string[]): ProviderEntry {
  return { package: `@ai-sdk/${name}`, factory, keys };
}

function compatible(
  server: ProviderEntry["server"] & {},
  keys: readonly string[],
  keyless = false,
): ProviderEntry {
  return {
    package: "@ai-sdk/openai-compatible",
    factory: "createOpenAICompatible",
    keys,
    keyless,
    server,
    // Without includeUsage a streamed answer reports no usage.
    settings: { includeUsage: true, supportsStructuredOutputs: true },
  };
}

const anyServerPrefix = "OPENAI_COMPATIBLE";

/** Providers that can be used in `"provider/model"`. */
export const providerDirectory: Readonly<Record<string, ProviderEntry>> = {
  anthropic: native("anthropic", "createAnthropic", "ANTHROPIC_API_KEY"),
  openai: native("openai", "createOpenAI", "OPENAI_API_KEY"),
  google: native("google", "createGoogleGenerativeAI", "GOOGLE_GENERATIVE_AI_API_KEY", "GEMINI_API_KEY"),
  groq: native("groq", "createGroq", "GROQ_API_KEY"),
  mistral: native("mistral", "createMistral", "MISTRAL_API_KEY"),
  xai: native("xai", "createXai", "XAI_API_KEY"),
  deepseek: native("deepseek", "createDeepSeek", "DEEPSEEK_API_KEY"),
  cohere: native("cohere", "createCohere", "COHERE_API_KEY"),
  azure: native("azure", "createAzure", "AZURE_API_KEY"),
  bedrock: native("amazon-bedrock", "createAmazonBedrock"),
  vertex: native("google-vertex", "createVertex"),
  openrouter: compatible({ url: "https://openrouter.ai/api/v1", variable: "OPENROUTER_BASE_URL" }, [
    "OPENROUTER_API_KEY",
  ]),
  together: compatible({ url: "https://api.together.xyz/v1", variable: "TOGETHER_BASE_URL" }, [
    "TOGETHER_API_KEY",
  ]),
  fireworks: compatible({ url: "https://api.fireworks.ai/inference/v1", variable: "FIREWORKS_BASE_URL" }, [
    "FIREWORKS_API_KEY",
  ]),
  cerebras: compatible({ url: "https://api.cerebras.ai/v1", variable: "CEREBRAS_BASE_URL" }, [
    "CEREBRAS_API_KEY",
  ]),
  ollama: compatible(
    { url: "http://127.0.0.1:11434/v1", variable: "OLLAMA_BASE_URL" },
    ["OLLAMA_API_KEY"],
    true,
  ),
  vllm: compatible({ url: "http://127.0.0.1:8000/v1", variable: "VLLM_BASE_URL" }, ["VLLM_API_KEY"], true),
  lmstudio: compatible({ url: "http://127.0.0.1:1234/v1", variable: "LMSTUDIO_BASE_URL" }, [], true),
  "openai-compatible": compatible(
    { variable: `${anyServerPrefix}_BASE_URL` },
    [`${anyServerPrefix}_API_KEY`],
    true,
  ),
};

/** Entry for an OpenAI-compatible server of the user, under any provider name. */
export const anyServer: ProviderEntry = compatible(
  { variable: `${anyServerPrefix}_BASE_URL` },
  [`${anyServerPrefix}_API_KEY`],
  true,
);

/** Names of the packages of all providers. */
export const providerPackages: readonly string[] = [
  ...new Set([...Object.values(providerDirectory), anyServer].map((entry) => entry.package)),
];
