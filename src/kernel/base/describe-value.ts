const longest = 80;

/** Describes a value for an error message: short, with strings in quotes. Never throws. */
export function describeValue(value: unknown): string {
  if (typeof value === "string")
    return JSON.stringify(value.length > longest ? `${value.slice(0, longest)}…` : value);
  if (typeof value === "object" && value !== null) return isArray(value) ? "an array" : "an object";
  return typeof value === "function" ? "a function" : String(value);
}

/** Returns the result of `Array.isArray`, but `false` for a revoked proxy instead of an exception. */
function isArray(value: object): boolean {
  try {
    return Array.isArray(value);
  } catch {
    return false;
  }
}
