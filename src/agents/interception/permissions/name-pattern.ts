import { Fault, visibleLine } from "../../../kernel/index.ts";

/** Compiles a pattern of tool names: a name, or a name in which `*` stands for any characters (`mcp__*`). */
export function namePattern(pattern: string): (name: string) => boolean {
  if (typeof pattern !== "string" || pattern.trim() === "") {
    throw new Fault(
      "invalid_argument",
      "invalid tool name pattern: it is empty; write a tool name, or * for all tools",
    );
  }
  // Such a pattern matches nothing, so a rule that denies would have no effect.
  if (!/^[\p{L}\p{N}_.:/*-]+$/u.test(pattern))
    throw new Fault(
      "invalid_argument",
      `invalid tool name pattern ${JSON.stringify(visibleLine(pattern))}: the name of a tool contains only letters, digits and _ . : / -; write a name with * for any characters, and check arguments with the function "when" of a rule`,
    );
  if (!pattern.includes("*")) return (name) => name === pattern;
  const source = pattern.split("*").map(escaped).join(".*");
  const expression = new RegExp(`^${source}$`, "su");
  return (name) => expression.test(name);
}

function escaped(text: string): string {
  return text.replaceAll(
    /[\\^$.*+?()[\]{}|/-]/gu,
    (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`,
  );
}
