/** Longer names are compared exactly only, because the comparison takes quadratic time. */
const longestCompared = 64;

/**
 * Returns the name that a misspelt name probably means, or `undefined` if none is similar. Letter case, `_` and `-` do
 * not count, so `max_agents` means `maxAgents`. A part or some words of a name are similar to it, so `timeout` means
 * `timeoutMs`, and `maxTokens` means `maxOutputTokens`.
 */
export function nearestName(wrong: string, names: Iterable<string>): string | undefined {
  const sought = plain(wrong);
  if (sought === "" || sought.length > longestCompared) return undefined;
  let nearest: string | undefined;
  let least = Infinity;
  for (const name of names) {
    const other = plain(name);
    const distance = editDistance(sought, other);
    if (
      distance < least &&
      (distance <= Math.ceil(sought.length / 3) || isPart(sought, other) || areWords(wrong, name))
    )
      [nearest, least] = [name, distance];
  }
  return nearest;
}

/** Whether two names differ only in letter case, `_` and `-`. */
export function isOtherSpelling(one: string, other: string): boolean {
  return one !== other && plain(one) === plain(other);
}

function plain(name: string): string {
  return name.toLowerCase().replaceAll(/[_\-\s]/gu, "");
}

function isPart(one: string, other: string): boolean {
  const [short, long] = one.length < other.length ? [one, other] : [other, one];
  return short.length >= 3 && long.includes(short);
}

/** Whether each word of the first name is a word of the other. */
function areWords(one: string, other: string): boolean {
  const words = wordsOf(one);
  return words.length > 1 && words.every((word) => wordsOf(other).includes(word));
}

function wordsOf(name: string): readonly string[] {
  return name.split(/[_\-\s]|(?=[A-Z])/u).map((word) => word.toLowerCase());
}

/** The number of characters to insert, remove or replace to turn one text into the other. */
function editDistance(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (let at = 0; at < one.length; at++) {
    const next = [at + 1];
    for (let to = 0; to < other.length; to++) {
      const replaced = (row[to] ?? 0) + (one[at] === other[to] ? 0 : 1);
      next.push(Math.min(replaced, (row[to + 1] ?? 0) + 1, (next[to] ?? 0) + 1));
    }
    row = next;
  }
  return row[other.length] ?? 0;
}
