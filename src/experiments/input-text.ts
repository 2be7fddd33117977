import type { UserPart } from "../kernel/index.ts";

/** The input of a case as one text. Images and files are named, and their content is left out. */
export function inputText(input: string | readonly UserPart[]): string {
  if (typeof input === "string") return input;
  return input
    .map((part) => (part.type === "text" ? part.text : `(${part.type} ${part.mediaType})`))
    .join("\n");
}
