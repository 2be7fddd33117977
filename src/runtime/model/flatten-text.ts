import type { AssistantMessage } from "../../kernel/index.ts";

/**
 * Makes one piece of each text of an answer. One that grew piece by piece stays a list of its pieces until somebody looks into it, and
 * whoever keeps it keeps them all: many times its size, for the collector to walk along.
 */
export function flattenText({ content }: AssistantMessage): void {
  // Asking for a character does it. For the first, or for its code, the compiler knows better and does not look.
  for (const part of content) if (part.type === "text" || part.type === "reasoning") part.text.at(-1);
}
