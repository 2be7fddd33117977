import type { AgentId, AgentVersion, RunId } from "../../../kernel/index.ts";
import { RunState } from "../codec/stored-run.ts";
import type { Queries, Value } from "./db/queries.ts";
import { turnUser } from "./db/run-row.ts";

/** A run that may be claimed next. */
export interface ReadyRun {
  readonly id: number;
  readonly runId: RunId;
  readonly agentId: AgentId;
  readonly tenant: string;
  readonly priority: number;
  /** Empty for a run without a user. */
  readonly user: string;
  /** 1 if the tenant was served before in this round, otherwise 0. */
  readonly again: number;
}

const columns = `id, run_id AS "runId", agent_id AS "agentId", tenant, priority, ${turnUser} AS "user"`;
/** The parameters $2 to $4 are the hosted agents, whether any version matches, and the version. $5 are the runs to leave out. */
const hosted = `unnest($2::text[], $3::boolean[], $4::text[]) AS hosted (agent, is_any, version)`;
const ready = `FROM {runs} WHERE state = ${RunState.READY} AND agent_id = hosted.agent
  AND (hosted.is_any OR agent_version IS NOT DISTINCT FROM hosted.version) AND run_id <> ALL($5::text[])`;

const firstOf = (again: number, after: string): string =>
  `(SELECT ${columns}, ${again} AS again ${ready} ${after} ORDER BY tenant, priority DESC, ${turnUser}, ready_at LIMIT 1)`;
/** L5: of each agent the next run by tenant: of the first tenant after $1, otherwise of the first of all. */
const nextOfEach = `SELECT next.* FROM ${hosted} CROSS JOIN LATERAL (
    ${firstOf(0, "AND tenant > $1")} UNION ALL ${firstOf(1, "")} ORDER BY again LIMIT 1) AS next`;
/** L5: the next run of an agent, a tenant and a priority, of the first user after $1. */
const nextOfUser = `SELECT next.* FROM ${hosted} CROSS JOIN LATERAL (
    SELECT ${columns}, 0 AS again ${ready} AND tenant = $6 AND priority = $7 AND ${turnUser} > $1
    ORDER BY ${turnUser}, ready_at LIMIT 1) AS next`;

/** L5: the maximum number of tenants of which a process remembers whose turn it was. */
const mostTurns = 1_024;

/** L5: which tenant, user and agent is served next. Each process keeps its own order. */
export class Turns {
  /** The tenant that was served last. The next tenant in order comes next. */
  #lastTenant = "";
  /** The user and the agent that were served last, by tenant. */
  readonly #lastTurns = new Map<string, Pick<ReadyRun, "agentId" | "user">>();

  /** Notes that the run was claimed. */
  note({ tenant, agentId, user }: ReadyRun): void {
    this.#lastTenant = tenant;
    if (this.#lastTurns.size >= mostTurns && !this.#lastTurns.has(tenant)) this.#lastTurns.clear();
    this.#lastTurns.set(tenant, { agentId, user });
  }

  /** Returns the next run of these agents that is not in `except`. Costs one or two queries. */
  async next(
    queries: Queries,
    agents: readonly AgentVersion[],
    except: readonly RunId[],
  ): Promise<ReadyRun | undefined> {
    const values = valuesOf(agents, except);
    const runs = await queries.all<ReadyRun>(nextOfEach, this.#lastTenant, ...values);
    const [first] = runs.toSorted(byTenantAndPriority);
    const last = first && this.#lastTurns.get(first.tenant);
    if (first === undefined || last === undefined) return first;
    // One run of each agent, that of its first user.
    const equal = runs.filter((run) => byTenantAndPriority(run, first) === 0);
    const same = equal.some(({ agentId }) => agentId === last.agentId)
      ? agents.filter(({ agentId }) => agentId === last.agentId)
      : [];
    const next =
      same.length === 0
        ? undefined
        : await queries.get<ReadyRun>(
            nextOfUser,
            last.user,
            ...valuesOf(same, except),
            first.tenant,
            first.priority,
          );
    return next ?? nextAgent(equal, last.agentId);
  }
}

function valuesOf(agents: readonly AgentVersion[], except: readonly RunId[]): readonly Value[] {
  return [
    agents.map(({ agentId }) => agentId),
    agents.map(({ version }) => (version === undefined ? "true" : "false")),
    agents.map(({ version }) => version ?? null) as readonly string[],
    except,
  ];
}

/** L5: compares two runs by tenant and priority. Returns 0 if only user, agent and age decide. */
function byTenantAndPriority(one: ReadyRun, other: ReadyRun): number {
  if (one.again !== other.again) return one.again - other.again;
  if (one.tenant !== other.tenant) return isBefore(one.tenant, other.tenant) ? -1 : 1;
  return other.priority - one.priority;
}

/** Returns the run of the first agent after `last`, or else of the first agent, in the order of their ids. */
function nextAgent(runs: readonly ReadyRun[], last: AgentId): ReadyRun | undefined {
  const inOrder = runs.toSorted((one, other) => (isBefore(one.agentId, other.agentId) ? -1 : 1));
  return inOrder.find(({ agentId }) => isBefore(last, agentId)) ?? inOrder[0];
}

/** Compares texts like the collation "C" does: by UTF-8 bytes, not by UTF-16 code units. */
function isBefore(one: string, other: string): boolean {
  return Buffer.compare(Buffer.from(one), Buffer.from(other)) < 0;
}
