import type { hash as hashOf } from "node:crypto";

/**
 * The hash function of `node:crypto`, loaded when it is first used. Importing that module takes a tenth of the time
 * that importing the whole package takes.
 */
let hash: typeof hashOf | undefined;

/** Computes SHA-256 in base64url. It is the default `Hash` of runtimes and stores. */
export function sha256(content: string | Uint8Array): string {
  hash ??= process.getBuiltinModule("node:crypto").hash;
  return hash("sha256", content, "base64url");
}

/** Computes SHA-256 in hexadecimal digits, for names of files and for stored secrets. */
export function sha256Hex(content: string | Uint8Array): string {
  return Buffer.from(sha256(content), "base64url").toString("hex");
}
