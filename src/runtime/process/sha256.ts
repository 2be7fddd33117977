import type { hash as hashOf } from "node:crypto";

/** Loaded on first use: importing `node:crypto` takes a tenth of the time that importing the whole package takes. */
let hash: typeof hashOf | undefined;

/** SHA-256 in base64url: the default `Hash` of runtimes and stores. */
export function sha256(content: string | Uint8Array): string {
  hash ??= process.getBuiltinModule("node:crypto").hash;
  return hash("sha256", content, "base64url");
}

/** SHA-256 in hexadecimal digits, for names of files and for stored secrets. */
export function sha256Hex(content: string | Uint8Array): string {
  return Buffer.from(sha256(content), "base64url").toString("hex");
}
