import { Agent } from "../assembly/agent.ts";
import { describeValue, Fault, readProperty, type HostedAgent } from "../kernel/index.ts";
import { StoredRuns } from "./forks.ts";

/** The options of an experiment that define who answers its cases. */
interface GivenVariants {
  readonly agent?: HostedAgent;
  readonly variants?: { readonly [variant: string]: HostedAgent };
  readonly cases?: unknown;
  readonly from?: StoredRuns;
}

/** Returns the stored runs of an experiment. Throws if the experiment has both stored runs and cases, or neither. */
export function storedRunsOf(owner: string, { agent, cases, from }: GivenVariants): StoredRuns | undefined {
  if (from === undefined) return undefined;
  if (!(from instanceof StoredRuns))
    throw new Fault(
      "invalid_argument",
      `invalid from of ${owner}: expected runs({ runtime, runs, forks }), not ${describeValue(from)}`,
    );
  if (cases !== undefined || agent === undefined)
    throw new Fault(
      "invalid_argument",
      `${owner} has from, which has the cases and the variants: pass the agent of the runs, and omit cases and variants`,
    );
  return from;
}

/** Returns the agents of an experiment by the names of its variants. */
export function variantsOf(
  owner: string,
  { agent, variants, from }: GivenVariants,
): ReadonlyMap<string, HostedAgent> {
  if (from !== undefined && agent !== undefined && variants === undefined) {
    const own = requireAgent(`agent of ${owner}`, agent);
    return new Map(from.variants.map((name) => [name, own]));
  }
  if ((agent === undefined) === (variants === undefined))
    throw new Fault(
      "invalid_argument",
      `${owner} needs either agent or variants: use agent: triage, or variants: { base: triage, cheap: triage.with({ model }) }`,
    );
  if (agent !== undefined) return new Map([[requireAgent(`agent of ${owner}`, agent).id, agent]]);
  const given = Object.entries(variants ?? {});
  if (given.length === 0)
    throw new Fault(
      "invalid_argument",
      `invalid variants of ${owner}: expected at least one agent with a name; use variants: { base: triage }`,
    );
  const agents = new Map<string, HostedAgent>();
  for (const [name, each] of given) {
    const own = requireAgent(`variant ${name} of ${owner}`, each);
    const isTaken = [...agents.values()].some((other) => other.id === own.id && other !== own);
    agents.set(name, isTaken ? withKey(owner, name, own) : own);
  }
  return agents;
}

function requireAgent(place: string, agent: HostedAgent): HostedAgent {
  if (typeof readProperty(agent, "id") === "string" && typeof readProperty(agent, "run") === "function")
    return agent;
  throw new Fault(
    "invalid_argument",
    `invalid ${place}: expected an agent, not ${describeValue(agent)}; use new Agent({ ... })`,
  );
}

/**
 * Gives an agent the variant's name as key. A run finds its agents by id, so two variants of one agent need
 * different ids.
 */
function withKey(owner: string, variant: string, agent: HostedAgent): HostedAgent {
  if (agent instanceof Agent) return agent.with({ key: variant });
  throw new Fault(
    "invalid_argument",
    `two variants of ${owner} are both ${agent.id}: give variant ${variant} another name or a key`,
  );
}

/** Returns the ids of agents that are both used to answer cases and called by scorers. */
export function sharedIds(
  variants: readonly HostedAgent[],
  judges: readonly HostedAgent[],
): readonly string[] {
  const answering = new Set(variants.flatMap((each) => [...idsBelow(each)]));
  return judges.flatMap((each) => [...idsBelow(each)]).filter((id) => answering.has(id));
}

/** Returns the ids of an agent and of the agents that work for it. */
function idsBelow(agent: HostedAgent, ids = new Set<string>()): ReadonlySet<string> {
  if (ids.has(agent.id)) return ids;
  ids.add(agent.id);
  for (const each of agent.subAgents ?? []) idsBelow(each, ids);
  return ids;
}
