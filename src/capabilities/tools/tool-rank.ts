import type { Tool } from "../../kernel/index.ts";

/** How much a word counts by where it stands. */
const weights = { name: 4, description: 2, schema: 1 } as const;

/**
 * The tools that a few words mean, best first; words that few tools have count more. The same words give the same tools, in the order of
 * the list where they are equal.
 */
export function rankTools(tools: readonly Tool[], query: string, limit: number): readonly Tool[] {
  const entries = tools.map((tool) => ({ tool, words: wordsOf(tool) }));
  const asked = [...new Set(split(query))];
  const scored = entries.map(({ tool }) => ({ tool, score: 0 }));
  for (const word of asked) {
    const hits = entries.map(({ words }) => weightOf(words, word));
    const count = hits.filter((weight) => weight > 0).length;
    const rarity = Math.log(1 + tools.length / Math.max(1, count));
    for (const [index, weight] of hits.entries()) {
      const entry = scored[index];
      if (entry !== undefined) entry.score += weight * rarity;
    }
  }
  return scored
    .filter(({ score }) => score > 0)
    .toSorted((one, other) => other.score - one.score)
    .slice(0, limit)
    .map(({ tool }) => tool);
}

function wordsOf({ name, description, inputSchema }: Tool): ReadonlyMap<string, number> {
  const words = new Map<string, number>();
  const add = (text: string, weight: number): void => {
    for (const word of split(text)) words.set(word, Math.max(weight, words.get(word) ?? 0));
  };
  add(JSON.stringify(inputSchema), weights.schema);
  add(description, weights.description);
  add(name, weights.name);
  return words;
}

/** A word counts for half where it only begins one: `invoice` for `invoices`. */
function weightOf(words: ReadonlyMap<string, number>, asked: string): number {
  const exact = words.get(asked);
  if (exact !== undefined) return exact;
  let best = 0;
  if (asked.length < 3) return 0;
  for (const [word, weight] of words)
    if (word.length >= 3 && (word.startsWith(asked) || asked.startsWith(word)))
      best = Math.max(best, weight / 2);
  return best;
}

/** `getUserName` and `get_user-name` are three words. */
function split(text: string): readonly string[] {
  return (
    text
      .replaceAll(/(\p{Ll})(\p{Lu})/gu, "$1 $2")
      .toLowerCase()
      .match(/[\p{L}\p{N}]+/gu) ?? []
  );
}
