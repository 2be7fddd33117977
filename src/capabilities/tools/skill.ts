import {
  checkSkill,
  Fault,
  type JsonObject,
  type Skill,
  type Tool,
  is,
  optionTable,
  type OptionKinds,
} from "../../kernel/index.ts";
import { errorResult, textResult } from "./tool-result.ts";
import { tool } from "./tool.ts";

/** Options of `skillTool()`. */
export interface SkillToolOptions {
  /** Skills, in the order in which the model sees them. */
  readonly skills: readonly Skill[];
  /** Maximum length of a skill's body in characters. A longer body is cut, and the result says so. Default: 100_000. */
  readonly maxChars?: number;
  /** Name of the tool. Default: `skill`. */
  readonly name?: string;
}

const input = {
  type: "object",
  properties: { name: { type: "string", description: "The name of a skill from the list" } },
  required: ["name"],
  additionalProperties: false,
} as const;

const knownOptions = optionTable({
  skills: is.list(),
  maxChars: is.number({ from: 0, default: 100_000 }),
  name: is.text({ default: "skill" }),
} satisfies OptionKinds<SkillToolOptions>);

/**
 * Creates the tool `skill`. Its description lists the skills and stays the same during a run; the body of a skill is
 * returned as a tool result when the model loads it.
 */
export function skillTool(options: SkillToolOptions): Tool {
  const { skills, maxChars, name } = knownOptions.read("skillTool()", options);
  const known = new Map<string, Skill>();
  for (const skill of skills.map(checkSkill)) {
    if (known.has(skill.name))
      throw new Fault("already_exists", `two skills are named ${skill.name}: remove or rename one of them`);
    known.set(skill.name, skill);
  }
  // SK3: the model does not see hidden skills.
  const shown = [...known.values()].filter(({ hidden = false }) => !hidden);
  if (shown.length === 0)
    throw new Fault(
      "invalid_argument",
      "every skill is hidden from the model: add a skill that is not hidden, or leave out the skill tool",
    );
  const names = shown.map((skill) => skill.name);
  const list = shown.map((skill) => `- ${skill.name}: ${skill.description.trim().replaceAll(/\s+/g, " ")}`);
  return tool({
    name,
    description: `Explain how a task is done. If a skill of the list fits the task, load it by its name before you start, and follow it:\n${list.join("\n")}`,
    inputSchema: input,
    execute: async ({ name: wanted }) => {
      const skill = shown.find((each) => each.name === wanted);
      const facts: JsonObject = { skill: wanted };
      if (skill === undefined)
        return errorResult(`there is no skill named ${wanted}; use one of: ${names.join(", ")}`, facts);
      let body: string;
      try {
        body = await skill.read();
      } catch (error) {
        return errorResult(
          `the skill ${wanted} could not be read: ${Fault.from(error).message}. Continue without it, and say so`,
          facts,
        );
      }
      const metadata: JsonObject = { ...facts, chars: body.length, cut: body.length > maxChars };
      if (body.trim() === "")
        return errorResult(`the skill ${wanted} is empty: continue without it`, metadata);
      if (body.length <= maxChars) return textResult(body, metadata);
      const rest = body.length - maxChars;
      return textResult(`${body.slice(0, maxChars).toWellFormed()}\n[... ${rest} more characters]`, metadata);
    },
  });
}
