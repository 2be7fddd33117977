import { describeValue, Fault, isUserPart } from "../../kernel/index.ts";
import { foreignParts, partForms } from "./foreign-parts.ts";
import { isConversation, readConversation } from "./input-messages.ts";

/** Options of other APIs that an input cannot contain, each with what to use instead. */
const foreignKeys: Readonly<Record<string, string>> = {
  messages: "pass the list itself: agent.invoke(messages)",
  system: "use `instructions` of the agent",
  maxSteps: "use `maxTurns` of the agent",
  model: "use `model` of the agent",
  tools: "use `tools` of the agent",
  schema: "use `output`",
};

/**
 * Creates the fault for a value that is not an input of an agent. It names the wrong part, and what to use instead.
 */
export function refusedInput(name: string, input: unknown): Fault {
  const prompt = isRecord(input) ? input["prompt"] : input;
  const read = isConversation(prompt) ? readConversation(prompt) : undefined;
  if (typeof read === "string")
    return new Fault("invalid_argument", `invalid messages of agent ${name}: ${read}`);
  const problem = partProblem(prompt);
  return problem === undefined
    ? new Fault(
        "invalid_argument",
        `invalid input of agent ${name}: expected a text, a list of text, image and file parts, a list of messages, or { prompt, output } with one of these as the prompt`,
      )
    : new Fault("invalid_argument", `agent ${name}: ${problem}`);
}

/** Describes the first part of a list that an input cannot contain. `undefined` if all parts are valid. */
function partProblem(parts: unknown): string | undefined {
  if (!Array.isArray(parts)) return undefined;
  const index = parts.findIndex((part) => !isUserPart(part));
  if (index === -1) return undefined;
  const part: unknown = parts[index];
  const type = isRecord(part) ? part["type"] : undefined;
  const shown = isRecord(part) ? `{ type: ${describeValue(type)} }` : describeValue(part);
  const form = typeof type === "string" ? partForms[type] : undefined;
  if (form !== undefined) return `part ${index + 1} (${shown}) is incomplete; use ${form}`;
  const use =
    (typeof type === "string" ? foreignParts[type] : undefined) ?? Object.values(partForms).join(", or ");
  return `part ${index + 1} (${shown}) is not supported; use ${use}`;
}

/** Throws for a member of an input that belongs to the agent, such as `system`, because it would be ignored. */
export function checkInputKeys(name: string, input: unknown): void {
  if (!isRecord(input)) return;
  const foreign = Object.keys(foreignKeys).find((key) => key in input);
  if (foreign === undefined) return;
  throw new Fault(
    "invalid_argument",
    `invalid input of agent ${name}: ${JSON.stringify(foreign)} is no part of an input; ${foreignKeys[foreign]}`,
  );
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
