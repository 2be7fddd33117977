import type { AgentId } from "../../../kernel/index.ts";

/** A run that may be claimed next. */
export interface ReadyRun {
  readonly id: number;
  readonly agentId: AgentId;
  readonly tenant: string;
  readonly priority: number;
  /** Empty for a run without a user. */
  readonly user: string;
  /** 1 if the tenant was served before in this round, otherwise 0. */
  readonly again: number;
}

/** The user and the agent that were served last. */
type LastTurn = Pick<ReadyRun, "agentId" | "user">;

/** The choice among ready runs. */
export interface Choice<Run extends ReadyRun> {
  /** The first run by tenant and priority. */
  readonly first: Run;
  /** The user and agent that were served last in the tenant. If absent, `first` is next. */
  readonly last?: LastTurn;
  /**
   * Whether the agent that was served last has another run of this tenant and priority. If so, its next user comes
   * first.
   */
  readonly hasSameAgent: boolean;
  /** Returns the run of the next agent. */
  readonly nextAgent: () => Run | undefined;
}

/** L5: maximum number of tenants for which a process remembers who was served last. */
const mostTurns = 1_024;

/** L5: which tenant, user and agent was served last. Each process remembers this for itself. */
export class TurnOrder {
  /** The tenant that was served last. The next tenant in order comes next. */
  #lastTenant = "";
  /** The user and the agent that were served last, by tenant. */
  readonly #lastTurns = new Map<string, LastTurn>();

  get lastTenant(): string {
    return this.#lastTenant;
  }

  /** Notes that the run was claimed. */
  note({ tenant, agentId, user }: ReadyRun): void {
    this.#lastTenant = tenant;
    if (this.#lastTurns.size >= mostTurns && !this.#lastTurns.has(tenant)) this.#lastTurns.clear();
    this.#lastTurns.set(tenant, { agentId, user });
  }

  /** Chooses among one run of each agent, which is the run of the agent's first user. */
  choose<Run extends ReadyRun>(runs: readonly Run[]): Choice<Run> | undefined {
    const [first] = runs.toSorted(byTenantAndPriority);
    if (first === undefined) return undefined;
    const last = this.#lastTurns.get(first.tenant);
    if (last === undefined) return { first, hasSameAgent: false, nextAgent: () => first };
    const equal = runs.filter((run) => byTenantAndPriority(run, first) === 0);
    const hasSameAgent = equal.some(({ agentId }) => agentId === last.agentId);
    return { first, last, hasSameAgent, nextAgent: () => agentAfter(equal, last.agentId) };
  }
}

/** L5: compares two runs by tenant and priority. Returns 0 if these are equal, so that user, agent and age decide. */
function byTenantAndPriority(one: ReadyRun, other: ReadyRun): number {
  if (one.again !== other.again) return one.again - other.again;
  if (one.tenant !== other.tenant) return isBefore(one.tenant, other.tenant) ? -1 : 1;
  return other.priority - one.priority;
}

/** Returns the run of the first agent after `last`, or else of the first agent, in the order of their ids. */
function agentAfter<Run extends ReadyRun>(runs: readonly Run[], last: AgentId): Run | undefined {
  const inOrder = runs.toSorted((one, other) => (isBefore(one.agentId, other.agentId) ? -1 : 1));
  return inOrder.find(({ agentId }) => isBefore(last, agentId)) ?? inOrder[0];
}

/** Compares texts as the databases do: by UTF-8 bytes and not by UTF-16 code units. */
function isBefore(one: string, other: string): boolean {
  return Buffer.compare(Buffer.from(one), Buffer.from(other)) < 0;
}
