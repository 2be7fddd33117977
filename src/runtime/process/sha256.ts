import type { hash as hashOf } from "node:crypto";

/** Loaded with the first use: to import the module takes a tenth of what the whole package does. */
let hash: typeof hashOf | undefined;

/** The production `Hash`. */
export function sha256(content: string | Uint8Array): string {
  hash ??= process.getBuiltinModule("node:crypto").hash;
  return hash("sha256", content, "base64url");
}
