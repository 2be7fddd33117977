import { escapeMarkup } from "../../../kernel/index.ts";
import type { FileSkill } from "./read-skills.ts";

/** Returns the text that lists skills for a model, in the format of the reference library of the specification. */
export function skillBlock(skills: readonly Pick<FileSkill, "name" | "description" | "file">[]): string {
  const lines = skills.flatMap(({ name, description, file }) => [
    "<skill>",
    "<name>",
    escapeMarkup(name),
    "</name>",
    "<description>",
    escapeMarkup(description),
    "</description>",
    "<location>",
    file,
    "</location>",
    "</skill>",
  ]);
  return ["<available_skills>", ...lines, "</available_skills>"].join("\n");
}
