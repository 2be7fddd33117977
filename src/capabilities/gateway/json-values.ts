/** A JSON object of a request or an answer, as the other side sent it. */
export type Json = Readonly<Record<string, unknown>>;

export function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Returns a count of tokens, or `undefined` if the value is not a valid count. */
export function countIn(value: unknown): number | undefined {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

/** A value as a refusal names it. */
export function nameIn(value: unknown): string {
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "nothing");
  return text.slice(0, 100);
}

export function textIn(value: unknown): string {
  return typeof value === "string" ? value : "";
}
