import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { join } from "node:path";
import {
  fileChangeStep,
  maxKeptBytes,
  type FileChange,
  type JsonObject,
  type KeptFile,
  type ToolContext,
} from "../../kernel/index.ts";
import { codeOf } from "./error-code.ts";
import { readBytes } from "./file-lines.ts";
import { openRegular, type Place } from "./file-root.ts";
import { replaceFile, type FileState } from "./replace-file.ts";

/**
 * Replaces a file, after the journal has recorded the file's previous content. J6: a repeated call finds the
 * record, and keeps the content from before the first attempt. The file is written in a separate step, because a
 * record is stored before the next step starts, but not before its caller continues.
 */
export async function replaceKept(
  { ctx, callId }: Pick<ToolContext, "ctx" | "callId">,
  place: Place,
  { before, after }: { readonly before: FileState | null; readonly after: Uint8Array },
): Promise<void> {
  await ctx.step(fileChangeStep, async () => {
    const bytes = before === null ? null : await contentOf(place, before);
    const change: FileChange = {
      callId,
      path: join(place.folder.path, place.name),
      before: bytes === null ? { kind: "absent" } : keptFile(bytes),
      beforeHash: bytes instanceof Uint8Array ? sha256(bytes) : null,
      afterHash: sha256(after),
    };
    return change as unknown as JsonObject;
  });
  await ctx.step("new content", async () => {
    await replaceFile(place, after, before);
    return null;
  });
}

/** Returns the bytes of the file, or why they are not kept. A file that may be written is not always readable. */
async function contentOf(
  place: Place,
  { size }: FileState,
): Promise<Uint8Array | "too_large" | "unreadable"> {
  if (size > maxKeptBytes) return "too_large";
  try {
    const file = await openRegular(place, place.shown, constants.O_RDONLY);
    try {
      return await readBytes(file, 0, Number(size));
    } finally {
      await file.close();
    }
  } catch (error) {
    if (codeOf(error) === "EACCES") return "unreadable";
    throw error;
  }
}

function keptFile(bytes: Uint8Array | "too_large" | "unreadable"): KeptFile {
  if (typeof bytes === "string") return { kind: "not_kept", reason: bytes };
  const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
  if (Buffer.from(text).equals(bytes)) return { kind: "text", text };
  return { kind: "binary", base64: Buffer.from(bytes).toString("base64") };
}

/** SHA-256 in hexadecimal. */
export function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
