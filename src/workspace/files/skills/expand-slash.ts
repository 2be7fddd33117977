import { Fault } from "../../../kernel/index.ts";
import { fillTemplate, nearestSlash, parseSlash, type PromptTemplate } from "./prompt-templates.ts";
import type { FileSkill } from "./read-skills.ts";

/** The names that an input may use after a slash. */
export interface SlashNames {
  readonly templates: readonly PromptTemplate[];
  readonly skills: readonly FileSkill[];
  /** Receives a skill that the input names. */
  readonly onSkill: (skill: FileSkill) => void;
}

/**
 * Replaces an input `/name arguments` by the template of that name, and `/skill:name` by the instructions of the skill.
 * Returns any other input unchanged. Throws `not_found` for a name that does not exist.
 */
export async function expandSlash(input: string, names: SlashNames): Promise<string> {
  const slash = parseSlash(input);
  if (slash === undefined) return input;
  const { name, argumentText } = slash;
  if (name.startsWith("skill:")) return expandSkill(name.slice("skill:".length), argumentText, names);
  const { templates, skills } = names;
  const template = templates.find((each) => each.name === name);
  if (template !== undefined) return fillTemplate(template.body, argumentText);
  const known = [...templates.map((each) => each.name), ...skills.map((each) => `skill:${each.name}`)];
  throw new Fault("not_found", `there is no prompt template /${name}${nearestSlash(name, known)}`);
}

async function expandSkill(
  name: string,
  argumentText: string,
  { skills, onSkill }: SlashNames,
): Promise<string> {
  const skill = skills.find((each) => each.name === name);
  if (skill === undefined) {
    const known = skills.map((each) => `skill:${each.name}`);
    throw new Fault("not_found", `there is no skill ${name}${nearestSlash(`skill:${name}`, known)}`);
  }
  onSkill(skill);
  const body = `<skill name="${name}" location="${skill.file}">\n${await skill.read()}\n</skill>`;
  return argumentText.trim() === "" ? `Follow this skill.\n\n${body}` : `${argumentText.trim()}\n\n${body}`;
}
