import { plain } from "../../base/format.ts";
import type { JsonValue } from "../../../src/kernel/index.ts";

/** The text of an input: a text, messages or content parts. */
export function inputText(input: JsonValue): string {
  if (typeof input === "string") return input;
  if (Array.isArray(input)) return input.map((each) => partText(each as JsonValue)).join("\n");
  return partText(input);
}

function partText(part: JsonValue): string {
  if (typeof part !== "object" || part === null || Array.isArray(part)) return plain(part);
  const { text, content, type, filename, messages } = part as Readonly<Record<string, JsonValue | undefined>>;
  if (typeof text === "string") return text;
  if (messages !== undefined) return inputText(messages);
  if (content !== undefined) return inputText(content);
  if (type === "image" || type === "file") return `[${typeof filename === "string" ? filename : type}]`;
  return plain(part);
}
