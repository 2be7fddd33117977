import { Fault, type HostedAgent } from "../../kernel/index.ts";

/**
 * Throws for two different agents with the same id. Agents are found by id, so that one would do the work of the
 * other.
 */
export function refuseDuplicateNames(where: string, agents: readonly HostedAgent[]): void {
  const known = new Map<string, HostedAgent>();
  for (const agent of agents) {
    const { id } = agent;
    if ((known.get(id) ?? agent) !== agent)
      throw new Fault("invalid_argument", `${where} has two agents named ${id}; rename one of them`);
    known.set(id, agent);
  }
}

/**
 * Throws for two different agents with the same id among an agent and all its descendants. It is called at
 * construction, so that the error does not appear only when a run starts.
 */
export function refuseDuplicateNamesBelow(agent: HostedAgent): void {
  const known = new Set<HostedAgent>();
  const look = (at: HostedAgent): void => {
    if (known.has(at)) return;
    known.add(at);
    for (const subAgent of at.subAgents ?? []) look(subAgent);
  };
  look(agent);
  refuseDuplicateNames(`agent ${agent.id}, with its sub-agents,`, [...known]);
}
