import type { FileSkill } from "./read-skills.ts";

/** Returns the block that lists skills for a model, in the form of the reference library of the specification. */
export function skillBlock(skills: readonly Pick<FileSkill, "name" | "description" | "file">[]): string {
  const lines = skills.flatMap(({ name, description, file }) => [
    "<skill>",
    "<name>",
    escaped(name),
    "</name>",
    "<description>",
    escaped(description),
    "</description>",
    "<location>",
    file,
    "</location>",
    "</skill>",
  ]);
  return ["<available_skills>", ...lines, "</available_skills>"].join("\n");
}

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** Replaces the characters that have a meaning in XML. */
export function escaped(text: string): string {
  return text.replaceAll(/[&<>"']/gu, (character) => entities[character] ?? character);
}
