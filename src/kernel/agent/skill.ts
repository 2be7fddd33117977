import { describeValue } from "../base/describe-value.ts";
import { Fault } from "../base/fault.ts";

/**
 * Something an agent can be told how to do when it needs it: a name and a description that it always sees, and a body that is read on demand.
 *
 * - SK1 A name is 1 to 64 of a-z, 0-9 and `-`, and is that of the folder where the skill comes from one.
 * - SK2 A description is required, up to 1,024 characters: the model chooses by it.
 * - SK3 What is `hidden` the model neither sees nor loads; people and code may.
 */
export interface Skill {
  readonly name: string;
  readonly description: string;
  /** False unless told. */
  readonly hidden?: boolean;
  /** The body, as it is now: a file may have changed since the last time. */
  read(): Promise<string>;
}

const longestName = 64;
const longestDescription = 1_024;

/** The same skill, or a fault that says what is wrong with it (SK1, SK2). */
export function checkSkill(skill: Skill): Skill {
  const { name, description } = skill;
  if (typeof name !== "string" || !/^[a-z0-9-]+$/.test(name) || name.length > longestName)
    throw new Fault(
      "invalid_argument",
      `a skill is named ${describeValue(name)}: a name is 1 to ${longestName} of a-z, 0-9 and -`,
    );
  if (typeof description !== "string" || description.trim() === "")
    throw new Fault(
      "invalid_argument",
      `the skill ${name} has no description: say in a line or two what it is for, since it is chosen by that`,
    );
  if (description.length > longestDescription)
    throw new Fault(
      "invalid_argument",
      `the description of the skill ${name} has ${description.length} characters: ${longestDescription} at most; the rest belongs into its body`,
    );
  return skill;
}
