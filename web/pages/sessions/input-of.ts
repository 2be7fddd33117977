import type { JsonValue } from "../../../src/kernel/index.ts";
import type { Attached } from "./composer.tsx";

/** The input of a message: a text, or a text with files. */
export function inputOf(text: string, attached: readonly Attached[]): JsonValue {
  if (attached.length === 0) return text;
  return [{ type: "text", text }, ...attached.map(({ part }) => part)];
}
