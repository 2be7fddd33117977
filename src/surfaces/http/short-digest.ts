import { sha256 } from "../../runtime/index.ts";

/** Returns a short text that identifies values of any length: 132 bits of their SHA-256. */
export function shortDigest(...values: readonly (string | number | null)[]): string {
  return sha256(JSON.stringify(values)).slice(0, 22);
}
