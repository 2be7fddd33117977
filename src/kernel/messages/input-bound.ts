/** Upper bound of the tokens of one image of any size at most models: a provider that keeps the size of an image cuts it into 10,000 parts. */
const tokensPerImage = 16_384;

/** Upper bounds of the tokens of one image, by model name. The first name that matches counts. */
const imageBounds: readonly (readonly [name: RegExp, tokens: number])[] = [
  // 2,833 tokens, and 5,667 for each of at most eight tiles.
  [/gpt-4o-mini/u, 49_152],
  [/claude|gemini/u, 8_192],
];

/** Context window of a model that states none, in tokens. Few models have a larger one. */
const largestWindow = 1_048_576;

/** B1: upper bound of the tokens of one image of any size, apart from its bytes. */
export function boundImage(modelId: string): number {
  const name = modelId.toLowerCase();
  return imageBounds.find(([pattern]) => pattern.test(name))?.[1] ?? tokensPerImage;
}

/**
 * B1: upper bound of the input tokens of a request with a document that is no text. A short file may have many pages, so only
 * the context window bounds it: no provider reads more. A header gives Claude a window of a million tokens.
 */
export function boundDocuments(modelId: string, contextWindow: number | undefined): number {
  const isClaude = modelId.toLowerCase().includes("claude");
  return isClaude ? Math.max(contextWindow ?? 0, 1_000_000) : (contextWindow ?? largestWindow);
}

/** Whether a document of this media type is text, of which each byte is at most one token. */
export function isTextDocument(mediaType: string): boolean {
  return /^text\/|[/+](?:json|xml|yaml|csv) *(?:;|$)/u.test(mediaType.toLowerCase());
}
