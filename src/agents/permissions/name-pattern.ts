import { Fault } from "../../kernel/index.ts";

/** Whether a tool's name fits `pattern`: the name itself, or one in which `*` stands for any characters (`mcp.*`). */
export function namePattern(pattern: string): (name: string) => boolean {
  if (typeof pattern !== "string" || pattern.trim() === "") {
    throw new Fault("invalid_argument", "a pattern of tool names is empty: name a tool, or write * for all");
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
