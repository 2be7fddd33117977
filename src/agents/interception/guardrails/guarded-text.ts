import { textOf, type JsonValue, type ToolOutput } from "../../../kernel/index.ts";

/**
 * Returns all readable text in a value, one part per line: strings without JSON escapes, numbers, and property
 * names.
 */
export function textOfValue(value: JsonValue): string {
  if (typeof value === "string") return value;
  const pieces: string[] = [];
  collect(value, pieces);
  return pieces.join("\n");
}

/** Returns the text of a tool's output that a model reads, without images and files. */
export function textOfOutput(output: ToolOutput): string {
  switch (output.type) {
    case "text":
      return output.text;
    case "json":
      return textOfValue(output.value);
    case "content":
      return textOf(output.parts);
  }
}

/** Matches invisible characters, which can hide a word from a search. */
const unseen = /\p{Default_Ignorable_Code_Point}/gu;

/**
 * Normalises a text to how a reader sees it: equivalent characters are unified, invisible characters removed, and
 * sequences of white space replaced by one space.
 */
export function plainText(text: string): string {
  return text.normalize("NFKC").replaceAll(unseen, "").replaceAll(/\s+/gu, " ");
}

function collect(value: JsonValue, pieces: string[]): void {
  if (typeof value === "object" && value !== null) {
    if (Array.isArray(value)) for (const item of value) collect(item as JsonValue, pieces);
    else {
      for (const [key, member] of Object.entries(value)) {
        pieces.push(key);
        if (member !== undefined) collect(member, pieces);
      }
    }
  } else if (value !== null) pieces.push(String(value));
}
