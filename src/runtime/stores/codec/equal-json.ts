/**
 * Whether two values are equal as JSON, with their members in the same order. A member that is `undefined` counts as
 * absent.
 */
export function equalJson(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  if (typeof one !== "object" || typeof other !== "object" || one === null || other === null) return false;
  if (Array.isArray(one) || Array.isArray(other)) {
    if (!Array.isArray(one) || !Array.isArray(other) || one.length !== other.length) return false;
    return one.every((item, index) => equalJson(item, other[index]));
  }
  return equalMembers(one as Members, other as Members);
}

type Members = Readonly<Record<string, unknown>>;

function equalMembers(ones: Members, others: Members): boolean {
  const keys = Object.keys(others);
  let place = nextPresent(others, keys, 0);
  for (const key of Object.keys(ones)) {
    if (ones[key] === undefined) continue;
    if (keys[place] !== key || !equalJson(ones[key], others[key])) return false;
    place = nextPresent(others, keys, place + 1);
  }
  return place === keys.length;
}

function nextPresent(members: Members, keys: readonly string[], from: number): number {
  let place = from;
  while (place < keys.length && members[keys[place] ?? ""] === undefined) place++;
  return place;
}
