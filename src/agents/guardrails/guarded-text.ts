import { textOf, type JsonValue, type ToolOutput } from "../../kernel/index.ts";

/**
 * All that can be read in a value, one piece per line: strings as they are and not as JSON would escape them, numbers, and the names of
 * members.
 */
export function textOfValue(value: JsonValue): string {
  if (typeof value === "string") return value;
  const pieces: string[] = [];
  collect(value, pieces);
  return pieces.join("\n");
}

/** What a model reads of a tool's output; pictures and files left out. */
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

/** Characters that are not seen: they hide a word from whoever looks for it. */
const unseen = /\p{Default_Ignorable_Code_Point}/gu;

/** The same text as a reader takes it: compatible forms made one, unseen characters gone, white space single. */
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
