import {
  type Architecture,
  Fault,
  type PromptPart,
  type RunFacts,
  type Skill,
  type Tool,
  describeValue,
} from "../../../kernel/index.ts";
import { ownTool, refusal, said } from "../../base/own-tool.ts";
import type { Registrations } from "./registrations.ts";

/** Name of the tool that returns the body of a skill. */
const skillTool = "skill";

/** Returns the tools that extensions add. Tools whose name the agent already uses are left out. */
export function extensionTools(registered: Registrations): readonly Tool[] {
  const tools = [...registered.all("tool").values()];
  const skills = visibleSkills(registered);
  return skills.length === 0 ? tools : [...tools, toolOfSkills(skills)];
}

/** Returns the tools of an agent with those tools of its extensions whose names are free. */
export function withExtensionTools(own: readonly Tool[], added: readonly Tool[]): readonly Tool[] {
  const names = new Set(own.map(({ name }) => name));
  return [...own, ...added.filter(({ name }) => !names.has(name))];
}

/**
 * Returns a placeholder for an architecture that an extension will register under the name in the agent's option.
 * The placeholder accepts every option; the registered architecture is checked before the first invocation.
 */
export function deferredArchitecture(name: string): Architecture {
  return {
    name,
    requiresModel: false,
    supportsContinue: true,
    supportsTurnControl: true,
    declaredWorkers: () => ({}),
    run: () => ({
      [Symbol.asyncIterator]: () => ({
        next: () =>
          Promise.reject(
            new Fault(
              "not_found",
              `there is no architecture ${name}: no extension has registered it; see runtime.extensionErrors()`,
            ),
          ),
      }),
    }),
  };
}

/** Builds one part of the system prompt. Throws `invalid_argument` if the part's function returns no text. */
export async function builtPart({ name, text }: PromptPart, facts: RunFacts): Promise<string> {
  const built: unknown = typeof text === "string" ? text : await text(facts);
  if (typeof built === "string") return built;
  throw new Fault(
    "invalid_argument",
    `invalid prompt ${name}: the function returned ${describeValue(built)}; expected a text`,
  );
}

/** Returns the list of skills for the system prompt. Empty if there are no skills. */
export function skillPrompt(registered: Registrations): string {
  const skills = visibleSkills(registered);
  return skills.length === 0 ? "" : skillList(skills);
}

function visibleSkills(registered: Registrations): readonly Skill[] {
  return [...registered.all("skill").values()].filter(({ hidden = false }) => !hidden);
}

function skillList(skills: readonly Skill[]): string {
  const lines = skills.map(({ name, description }) => `- ${name}: ${description}`);
  return `Skills are instructions for particular tasks. If one fits the task, read it with the tool ${skillTool} before you start.\n${lines.join("\n")}`;
}

function toolOfSkills(skills: readonly Skill[]): Tool {
  const byName = new Map(skills.map((skill) => [skill.name, skill]));
  return ownTool({
    name: skillTool,
    description: "Returns the instructions of a skill.",
    input: { name: { description: "Name of the skill", choices: [...byName.keys()] } },
    execute: async ({ name }) => {
      const skill = byName.get(name);
      return skill === undefined ? refusal(`There is no skill ${name}.`) : said(await skill.read());
    },
  });
}
