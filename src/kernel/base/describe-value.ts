const longest = 80;

/** A value as an error message shows it: short, never throwing, a string in quotes. */
export function describeValue(value: unknown): string {
  if (typeof value === "string")
    return JSON.stringify(value.length > longest ? `${value.slice(0, longest)}…` : value);
  if (typeof value === "object" && value !== null) return isArray(value) ? "an array" : "an object";
  return typeof value === "function" ? "a function" : String(value);
}

/** `Array.isArray` throws on a revoked proxy. */
function isArray(value: object): boolean {
  try {
    return Array.isArray(value);
  } catch {
    return false;
  }
}
