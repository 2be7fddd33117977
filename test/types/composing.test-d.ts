/** Type tests, checked by the compiler and never run. Each `@ts-expect-error` precedes a line that must not compile. */
import { Agent, type AgentOptions } from "../../src/index.ts";

declare const agent: Agent;

/** `asTool` accepts its own options only. */
export function asTool(): Agent {
  const lead: AgentOptions = {
    name: "lead",
    tools: [agent.asTool(), agent.asTool({ name: "ask", budget: { maxTurns: 2 } })],
  };
  // @ts-expect-error: the option is `name`
  agent.asTool({ toolName: "ask" });
  // @ts-expect-error: `needsApproval` is a boolean
  agent.asTool({ needsApproval: "yes" });
  return new Agent(lead);
}
