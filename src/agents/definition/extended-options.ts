import type { Registrations } from "../interception/extensions/registrations.ts";
import type { Guardrail } from "../../kernel/index.ts";
import type { AgentDefinition } from "./agent-definition.ts";

/** The options of an agent with what its extensions registered. The agent's own parts take precedence by name. */
export function extendedOptions(options: AgentDefinition, registered: Registrations): AgentDefinition {
  const own = new Set((options.guardrails ?? []).map(({ name }) => name));
  const added = [...registered.all("guardrail").values()].filter(({ name }) => !own.has(name));
  const guardrails: readonly Guardrail[] = [...(options.guardrails ?? []), ...added];
  const ephemeral = [...(options.ephemeral ?? []), ...registered.ephemeral];
  const memory = options.memory ?? registered.memory;
  return { ...options, guardrails, ephemeral, ...(memory && { memory }) };
}
