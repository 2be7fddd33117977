import { describeValue } from "../base/describe-value.ts";
import { Fault } from "../base/fault.ts";

/**
 * Instructions that an agent loads on demand. The model always sees the name and the description; it reads the body
 * when it needs it.
 *
 * - SK1: a name has 1 to 64 characters of a-z, 0-9 and `-`. A skill from a folder has the name of the folder.
 * - SK2: a description is required and has at most 1,024 characters. The model selects a skill by its description.
 * - SK3: the model neither sees nor loads a `hidden` skill. People and code can load it.
 */
export interface Skill {
  /** Name of the skill (SK1). */
  readonly name: string;
  /** What the skill is for, in a line or two (SK2). */
  readonly description: string;
  /** Whether the skill is hidden from the model (SK3). Default: `false`. */
  readonly hidden?: boolean;
  /** Returns the current body. A file may have changed since the last call. */
  read(): Promise<string>;
}

const longestName = 64;
const longestDescription = 1_024;

/** Returns the skill if its name and description are valid (SK1, SK2). Otherwise throws `invalid_argument`. */
export function checkSkill(skill: Skill): Skill {
  const { name, description } = skill;
  if (typeof name !== "string" || !/^[a-z0-9-]+$/.test(name) || name.length > longestName)
    throw new Fault(
      "invalid_argument",
      `invalid skill name ${describeValue(name)}: use 1 to ${longestName} characters of a-z, 0-9 and -`,
    );
  if (typeof description !== "string" || description.trim() === "")
    throw new Fault(
      "invalid_argument",
      `skill ${name} has no description: describe in a line or two what it is for; the model selects a skill by its description`,
    );
  if (description.length > longestDescription)
    throw new Fault(
      "invalid_argument",
      `the description of skill ${name} has ${description.length} characters: use at most ${longestDescription} and move the rest to its body`,
    );
  return skill;
}
