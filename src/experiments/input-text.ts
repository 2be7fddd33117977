import type { UserPart } from "../kernel/index.ts";

/** Returns the input of a case as one text. For images and files, it contains only their names. */
export function inputText(input: string | readonly UserPart[]): string {
  if (typeof input === "string") return input;
  return input
    .map((part) => (part.type === "text" ? part.text : `(${part.type} ${part.mediaType})`))
    .join("\n");
}
