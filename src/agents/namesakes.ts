import { Fault, type HostedAgent } from "../kernel/index.ts";

/** Agents are found by their id, so two that share one could not be told apart: the work of one would be done by the other. */
export function refuseNamesakes(where: string, agents: readonly HostedAgent[]): void {
  const known = new Map<string, HostedAgent>();
  for (const agent of agents) {
    const { id } = agent;
    if ((known.get(id) ?? agent) !== agent)
      throw new Fault(
        "invalid_argument",
        `${where} has two agents named ${id}: give one of them another name`,
      );
    known.set(id, agent);
  }
}

/** The same of an agent, all it may hire, and all they may: a run of it is refused for that, so it is when it is made. */
export function refuseNamesakesBelow(agent: HostedAgent): void {
  const known = new Set<HostedAgent>();
  const look = (at: HostedAgent): void => {
    if (known.has(at)) return;
    known.add(at);
    for (const colleague of at.subAgents ?? []) look(colleague);
  };
  look(agent);
  refuseNamesakes(`agent ${agent.id}, with all it may hire,`, [...known]);
}
