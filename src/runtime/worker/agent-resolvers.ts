import {
  agentIdOf,
  agentNameOf,
  describeValue,
  Fault,
  type AgentId,
  type AgentResolver,
  type AgentsOfName,
  type HostedAgent,
  type RunId,
  type RunRecord,
  is,
  optionTable,
  type OptionKinds,
} from "../../kernel/index.ts";

const resolverTable = optionTable({ name: is.any, resolve: is.any } satisfies OptionKinds<AgentResolver>);

/** Maximum number of runs that a worker remembers as left to other workers. */
export const mostLeftAlone = 10_000;

/** Whether the caller of `register` passed a resolver instead of an agent. */
export function isResolver(agent: HostedAgent | AgentResolver): agent is AgentResolver {
  return typeof agent === "object" && agent !== null && "resolve" in agent;
}

/** The resolvers of a worker, by the name of the agents that they create. */
export class AgentResolvers {
  readonly #byName = new Map<string, AgentResolver>();
  /**
   * The latest runs that a resolver leaves to other workers, oldest first. For older ones, the resolver is asked
   * again.
   */
  readonly #leftAlone = new Set<RunId>();

  get size(): number {
    return this.#byName.size;
  }

  get names(): readonly AgentsOfName[] {
    return [...this.#byName.keys()].map((agentName) => ({ agentName }));
  }

  /** Returns whether the resolvers have changed. */
  register(resolver: AgentResolver, replaces: boolean): boolean {
    const name = checkedName(resolver);
    const known = this.#byName.get(name);
    if (known === resolver) return false;
    if (known !== undefined && !replaces)
      throw new Fault(
        "already_exists",
        `another resolver is registered for agents named ${name}: use one resolver for them, or open the runtime with sameName: "replace"`,
      );
    this.#byName.set(name, resolver);
    return true;
  }

  /** Whether there is a resolver for agents of this name. */
  has(agentId: AgentId): boolean {
    return this.#byName.has(agentNameOf(agentId));
  }

  /** Whether a resolver may create the root agent of the run. */
  takes({ runId, agentId }: Pick<RunRecord, "runId" | "agentId">): boolean {
    return this.#byName.has(agentNameOf(agentId)) && !this.#leftAlone.has(runId);
  }

  /**
   * Returns the root agent of the run, or `undefined` if no resolver has its name. Throws `version_mismatch` if the
   * resolver leaves the run to other workers, so that the engine does not claim it again.
   */
  async resolve(run: RunRecord): Promise<HostedAgent | undefined> {
    const { runId, agentId } = run;
    const resolver = this.#byName.get(agentNameOf(agentId));
    if (resolver === undefined) return undefined;
    const agent = await resolver.resolve(run);
    if (agent !== undefined) {
      requireRoot(agent, agentId, runId);
      this.#leftAlone.delete(runId);
      return agent;
    }
    this.#leaveAlone(runId);
    throw new Fault("version_mismatch", `the resolver of ${resolver.name} leaves ${runId} to other workers`);
  }

  #leaveAlone(runId: RunId): void {
    this.#leftAlone.add(runId);
    const [oldest] = this.#leftAlone;
    if (this.#leftAlone.size > mostLeftAlone && oldest !== undefined) this.#leftAlone.delete(oldest);
  }

  /**
   * Called when the agents have changed. Resolvers are then asked again about runs that they have left to other
   * workers.
   */
  forgetLeftAlone(): void {
    this.#leftAlone.clear();
  }
}

function checkedName(resolver: AgentResolver): string {
  const { name } = resolverTable.read("register()", resolver);
  if (typeof resolver.resolve !== "function")
    throw new Fault(
      "invalid_argument",
      `invalid resolve of register(): expected a function that returns the agent of a run`,
    );
  if (typeof name === "string" && agentNameOf(agentIdOf(name)) === name) return name;
  throw new Fault(
    "invalid_argument",
    `invalid name ${describeValue(name)} of register(): expected the name of an agent, without a key`,
  );
}

function requireRoot(agent: HostedAgent, agentId: AgentId, runId: RunId): void {
  if (agent?.id === agentId) return;
  throw new Fault(
    "invalid_argument",
    `invalid agent ${describeValue(agent?.id ?? agent)} of resolve() for ${runId}: expected the agent ${agentId}; give it the name and the key of the run's agent, or return undefined to leave the run to other workers`,
  );
}
