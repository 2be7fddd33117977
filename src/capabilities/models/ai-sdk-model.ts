/**
 * Any language model of the AI SDK, of specification V3 or V4. Known by its shape, so that neither that package nor its types are
 * needed to use one.
 */
export interface AiSdkModel {
  readonly specificationVersion: "v3" | "v4";
  readonly provider: string;
  readonly modelId: string;
  doGenerate(options: never): PromiseLike<unknown>;
  doStream(options: never): PromiseLike<unknown>;
}

/** `anthropic` of `anthropic.messages`: the name under which a provider's options, metadata and prices are found. */
export function providerName(provider: string): string {
  return provider.split(".", 1)[0] ?? provider;
}
