/**
 * A language model of the AI SDK, of specification V3 or V4. Its type is declared here by its structure, so that
 * using a model needs neither that package nor its types.
 */
export interface AiSdkModel {
  readonly specificationVersion: "v3" | "v4";
  readonly provider: string;
  readonly modelId: string;
  doGenerate(options: never): PromiseLike<unknown>;
  doStream(options: never): PromiseLike<unknown>;
}

/**
 * Returns the first part of a provider's name, `anthropic` for `anthropic.messages`. Options, metadata and prices are
 * stored under that part.
 */
export function providerName(provider: string): string {
  return provider.split(".", 1)[0] ?? provider;
}

/** Providers whose packages send an output schema to a parameter that the provider enforces, for every model. */
export const structuredProviders: ReadonlySet<string> = new Set([
  "anthropic",
  "azure",
  "google",
  "openai",
  "vertex",
]);
