import { checkSkill, Fault, type JsonObject, type Skill, type Tool } from "../../kernel/index.ts";
import { errorResult, textResult } from "./tool-result.ts";
import { tool } from "./tool.ts";

export interface SkillToolOptions {
  /** In the order the model is to see. */
  readonly skills: readonly Skill[];
  /** Of a body; the rest is cut, and the model is told. 100,000 unless told. */
  readonly maxChars?: number;
  readonly name?: string;
}

const input = {
  type: "object",
  properties: { name: { type: "string", description: "A skill of the list" } },
  required: ["name"],
  additionalProperties: false,
} as const;

/** Skills by name and description, which stay the same through a run; the body of one comes as a result, where the conversation is. */
export function skillTool({ skills, maxChars = 100_000, name = "skill" }: SkillToolOptions): Tool {
  const known = new Map<string, Skill>();
  for (const skill of skills.map(checkSkill)) {
    if (known.has(skill.name))
      throw new Fault("already_exists", `two skills are named ${skill.name}: leave one out, or rename it`);
    known.set(skill.name, skill);
  }
  // SK3
  const shown = [...known.values()].filter(({ hidden = false }) => !hidden);
  if (shown.length === 0)
    throw new Fault(
      "invalid_argument",
      "skills has none that the model may see: give one that is not hidden, or leave the tool out",
    );
  const names = shown.map((skill) => skill.name);
  const list = shown.map((skill) => `- ${skill.name}: ${skill.description.trim().replaceAll(/\s+/g, " ")}`);
  return tool({
    name,
    description: `Tells how something is done. When a skill of the list fits what is asked, load it by its name before you begin, and do as it says:\n${list.join("\n")}`,
    inputSchema: input,
    execute: async ({ name: wanted }) => {
      const skill = shown.find((each) => each.name === wanted);
      const facts: JsonObject = { skill: wanted };
      if (skill === undefined)
        return errorResult(`there is no skill ${wanted}; there are: ${names.join(", ")}`, facts);
      let body: string;
      try {
        body = await skill.read();
      } catch (error) {
        return errorResult(
          `the skill ${wanted} could not be read: ${Fault.from(error).message}. Go on without it, and say so`,
          facts,
        );
      }
      const told: JsonObject = { ...facts, chars: body.length, cut: body.length > maxChars };
      if (body.trim() === "") return errorResult(`the skill ${wanted} says nothing: go on without it`, told);
      if (body.length <= maxChars) return textResult(body, told);
      const rest = body.length - maxChars;
      return textResult(`${body.slice(0, maxChars).toWellFormed()}\n[... ${rest} characters more]`, told);
    },
  });
}
