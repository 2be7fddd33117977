import { Fault, type HostedAgent, type AgentId, type Journal, type RunId } from "../../kernel/index.ts";

/** An agent and all it may hire, by name. */
export type Cast = ReadonlyMap<AgentId, HostedAgent>;

/** Where names may be taken again: the agents that runs were submitted with, for as long as those may go on. */
export class RunAgents {
  readonly #casts = new Map<RunId, Cast>();
  /** Runs that have ended and may be gone on with. */
  readonly #stopped = new Set<RunId>();

  get(runId: RunId): Cast | undefined {
    return this.#casts.get(runId);
  }

  set(runId: RunId, cast: Cast): void {
    this.#casts.set(runId, cast);
  }

  delete(runId: RunId): void {
    this.#casts.delete(runId);
    this.#stopped.delete(runId);
  }

  /** It may be resumed until it is collected. */
  noteStopped(runId: RunId): void {
    if (this.#casts.has(runId)) this.#stopped.add(runId);
  }

  /** Runs were collected. Costs O(those that may be gone on with). */
  async sweep(journal: Pick<Journal, "find">): Promise<void> {
    for (const runId of this.#stopped) if ((await journal.find(runId)) === undefined) this.delete(runId);
  }
}

/** Who is hired is hired by name: two of one name in one run would be one of them, twice. */
export function castOf(agent: HostedAgent, cast = new Map<AgentId, HostedAgent>()): Cast {
  const known = cast.get(agent.id);
  if (known === agent) return cast;
  if (known !== undefined)
    throw new Fault(
      "already_exists",
      `two agents of one run are both ${agent.id}: give one of them another name, or a key`,
    );
  cast.set(agent.id, agent);
  for (const colleague of agent.subAgents ?? []) castOf(colleague, cast);
  return cast;
}
