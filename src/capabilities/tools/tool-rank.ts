import type { Tool } from "../../kernel/index.ts";

/** Weight of a word by the part of the tool in which it occurs. */
const weights = { name: 4, description: 2, schema: 1 } as const;

/**
 * Returns the tools that match the words of a query, best first. A word that few tools contain weighs more. The result
 * is deterministic: tools with equal scores keep the order of the list.
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

/**
 * Returns the weight of a word. A word that only shares a prefix with a word of the tool weighs half: `invoice` and
 * `invoices`.
 */
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

/** Splits a text into lower-case words. For example, `getUserName` and `get_user-name` both give three words. */
function split(text: string): readonly string[] {
  return (
    text
      .replaceAll(/(\p{Ll})(\p{Lu})/gu, "$1 $2")
      .toLowerCase()
      .match(/[\p{L}\p{N}]+/gu) ?? []
  );
}
