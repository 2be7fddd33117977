import type { EventData } from "../../../src/kernel/index.ts";

/**
 * Describes the changes of a fork: "with other instructions, and an edited result of look". Empty if there are
 * none.
 */
export function forkChangeWords(data: EventData["run_fork"]): string {
  const { instructions, model, tools, toolResults = [], replacesInput, input } = data;
  const parts = [
    replacesInput === true ? "another message" : input === undefined ? "" : "a further message",
    instructions === undefined ? "" : "other instructions",
    model === undefined ? "" : `the model ${model.modelId}`,
    tools === undefined ? "" : `the tools ${tools.join(", ") || "none"}`,
    ...toolResults.map(({ toolName }) => `an edited result of ${toolName}`),
  ].filter((part) => part !== "");
  return parts.length === 0 ? "" : `, with ${parts.join(", and ")}`;
}
