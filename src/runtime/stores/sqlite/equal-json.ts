/** Whether two values are the same as JSON: the order of members does not count, an absent one is `undefined`. */
export function equalJson(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  if (typeof one !== "object" || typeof other !== "object" || one === null || other === null) return false;
  if (Array.isArray(one) || Array.isArray(other)) {
    if (!Array.isArray(one) || !Array.isArray(other) || one.length !== other.length) return false;
    return one.every((item, index) => equalJson(item, other[index]));
  }
  const [ones, others] = [one as Record<string, unknown>, other as Record<string, unknown>];
  for (const key in ones) if (!equalJson(ones[key], others[key])) return false;
  for (const key in others) if (others[key] !== undefined && !Object.hasOwn(ones, key)) return false;
  return true;
}
