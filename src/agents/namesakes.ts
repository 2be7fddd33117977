import { Fault, type Agent } from "../kernel/index.ts";

/** Agents are found by their id, so two that share one could not be told apart: the work of one would be done by the other. */
export function refuseNamesakes(where: string, agents: readonly Agent[]): void {
  const known = new Map<string, Agent>();
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
export function refuseNamesakesBelow(agent: Agent): void {
  const known = new Set<Agent>();
  const look = (at: Agent): void => {
    if (known.has(at)) return;
    known.add(at);
    for (const colleague of at.colleagues ?? []) look(colleague);
  };
  look(agent);
  refuseNamesakes(`agent ${agent.id}, with all it may hire,`, [...known]);
}
