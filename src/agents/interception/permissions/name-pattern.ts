import { Fault } from "../../../kernel/index.ts";

/** Compiles a pattern of tool names: a name, or a name in which `*` stands for any characters (`mcp__*`). */
export function namePattern(pattern: string): (name: string) => boolean {
  if (typeof pattern !== "string" || pattern.trim() === "") {
    throw new Fault(
      "invalid_argument",
      "invalid tool name pattern: it is empty; write a tool name, or * for all tools",
    );
  }
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
