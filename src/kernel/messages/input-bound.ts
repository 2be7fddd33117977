/**
 * Upper bound of the tokens of one image for most models. A provider that does not reduce large images divides an
 * image into at most 10,000 parts.
 */
const tokensPerImage = 16_384;

/** Upper bounds of the tokens of one image, by model name. The first pattern that matches applies. */
const imageBounds: readonly (readonly [name: RegExp, tokens: number])[] = [
  // 2,833 tokens, and 5,667 for each of at most eight tiles.
  [/gpt-4o-mini/u, 49_152],
  [/claude|gemini/u, 8_192],
];

/** Context window in tokens that is assumed for a model that states none. Few models have a larger one. */
const largestWindow = 1_048_576;

/** B1: returns an upper bound of the tokens of one image, whatever its size. */
export function boundImage(modelId: string): number {
  const name = modelId.toLowerCase();
  return imageBounds.find(([pattern]) => pattern.test(name))?.[1] ?? tokensPerImage;
}

/**
 * B1: returns an upper bound of the input tokens of a request with a document that is not text. A short file may
 * have many pages, so that only the context window is a bound: no provider reads more. For Claude the bound is a
 * million tokens, because a header can extend its window to that size.
 */
export function boundDocuments(modelId: string, contextWindow: number | undefined): number {
  const isClaude = modelId.toLowerCase().includes("claude");
  return isClaude ? Math.max(contextWindow ?? 0, 1_000_000) : (contextWindow ?? largestWindow);
}

/** Whether a document of this media type is text, of which each byte is at most one token. */
export function isTextDocument(mediaType: string): boolean {
  return /^text\/|[/+](?:json|xml|yaml|csv) *(?:;|$)/u.test(mediaType.toLowerCase());
}
