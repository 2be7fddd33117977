import { z } from "zod";
import { Agent, tool } from "../../src/entries/index.ts";
import { scriptedModel, type ScriptStep } from "../../src/testing/index.ts";

export const look = tool({
  name: "look",
  description: "The weather in a town",
  inputSchema: z.object({ town: z.string() }),
  execute: ({ town }) => `rain in ${town}`,
});
export const looks = { toolCalls: [{ name: "look", input: { town: "Sens" } }] };

/** Builds an agent with the weather tool `look` and a scripted model. */
export function scout(
  script: readonly ScriptStep[],
  options: Partial<ConstructorParameters<typeof Agent>[0]> = {},
) {
  const model = scriptedModel(script);
  return { model, agent: new Agent({ name: "scout", model, tools: [look], ...options }) };
}
