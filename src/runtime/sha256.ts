import { hash } from "node:crypto";

/** The production `Hash`. */
export function sha256(content: string | Uint8Array): string {
  return hash("sha256", content, "base64url");
}
