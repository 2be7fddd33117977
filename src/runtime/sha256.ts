import { createHash } from "node:crypto";

/** The production `Hash`. */
export function sha256(content: string | Uint8Array): string {
  return createHash("sha256").update(content).digest("base64url");
}
