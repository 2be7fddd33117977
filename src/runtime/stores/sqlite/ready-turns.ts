import type { AgentId, AgentVersion } from "../../../kernel/index.ts";
import type { Database } from "./db/database.ts";
import { RunState } from "../codec/stored-run.ts";
import { turnUser } from "./db/run-row.ts";

/** A run that may be claimed next. */
interface ReadyRun {
  readonly id: number;
  readonly agentId: AgentId;
  readonly tenant: string;
  readonly priority: number;
  /** Empty for a run without a user. */
  readonly user: string;
  /** 1 if the tenant was served before in this round, otherwise 0. */
  readonly again: number;
}

/** The queries for ready runs of one agent. */
class ReadyQueries {
  /** Counts the ready runs, up to a limit. */
  readonly count: string;
  /** L5: SQL that selects the next run by tenant: of the first tenant after a given one, otherwise of the first of all. */
  readonly next: string;
  /** L5: SQL that selects the next run of a tenant and a priority, of the first user after a given one. */
  readonly nextUser: string;

  constructor(but: string) {
    const ready = `FROM runs WHERE state = ${RunState.READY} AND agent_id = ?2 AND (?3 OR agent_version IS ?4) ${but}`;
    const columns = `id, agent_id AS agentId, tenant, priority, ${turnUser} AS user`;
    const first = (again: number, after: string): string =>
      `SELECT * FROM (SELECT ${columns}, ${again} AS again ${ready} ${after}
         ORDER BY tenant, priority DESC, ${turnUser}, ready_at LIMIT 1)`;
    this.nextUser = `SELECT ${columns}, 0 AS again ${ready} AND tenant = ?6 AND priority = ?7 AND ${turnUser} > ?1
      ORDER BY ${turnUser}, ready_at LIMIT 1`;
    this.count = `SELECT count(*) AS count FROM (SELECT 1 ${ready} LIMIT ?1 + 0)`;
    this.next = `${first(0, "AND tenant > ?1")} UNION ALL ${first(1, "")} LIMIT 1`;
  }
}

const allReady = new ReadyQueries("");
/**
 * A separate query, because searching the list takes longer than the rest of the query, and most often the list is
 * empty.
 */
const allReadyBut = new ReadyQueries("AND run_id NOT IN (SELECT value FROM json_each(?5))");

/** An agent whose ready runs are wanted, except for some. */
export class ReadyAgent {
  readonly agentId: AgentVersion["agentId"];
  readonly #queries: ReadyQueries;
  /** Parameters of the queries. */
  readonly #values: readonly (string | number | null)[];

  /** `others` is a JSON array of the runs that are not wanted, if there are any. */
  constructor({ agentId, version }: AgentVersion, others: string | undefined) {
    this.agentId = agentId;
    this.#queries = others === undefined ? allReady : allReadyBut;
    const values = [agentId, version === undefined ? 1 : 0, version ?? null];
    this.#values = others === undefined ? values : [...values, others];
  }

  /** Counts the agent's ready runs, up to a limit. */
  count(database: Database, limit: number): number {
    const row = database.get<{ readonly count: number }>(this.#queries.count, limit, ...this.#values);
    return row?.count ?? 0;
  }

  next(database: Database, tenant: string): ReadyRun | undefined {
    return database.get<ReadyRun>(this.#queries.next, tenant, ...this.#values);
  }

  /** Returns the next run of the same tenant and priority as `run`, of the first user after `user`. */
  nextUser(database: Database, user: string, { tenant, priority }: ReadyRun): ReadyRun | undefined {
    const values = [...this.#values, ...(this.#values.length === 3 ? [null] : [])];
    return database.get<ReadyRun>(this.#queries.nextUser, user, ...values, tenant, priority);
  }
}

/** L5: the maximum number of tenants of which a process remembers whose turn it was. */
const mostTurns = 1_024;

/** L5: which tenant, user and agent is served next. Each process that has the file open keeps its own order. */
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

  /** Returns the next run of these agents. Costs one or two queries for each agent. */
  next(database: Database, agents: readonly ReadyAgent[]): ReadyRun | undefined {
    const runs = agents.flatMap((agent) => agent.next(database, this.#lastTenant) ?? []);
    const [first] = runs.toSorted(byTenantAndPriority);
    const last = first && this.#lastTurns.get(first.tenant);
    if (first === undefined || last === undefined) return first;
    // One run of each agent, that of its first user.
    const equal = runs.filter((run) => byTenantAndPriority(run, first) === 0);
    const hasSameAgent = equal.some(({ agentId }) => agentId === last.agentId);
    const agent = hasSameAgent ? agents.find(({ agentId }) => agentId === last.agentId) : undefined;
    return agent?.nextUser(database, last.user, first) ?? nextAgent(equal, last.agentId);
  }
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

/** Compares texts like SQLite does: by UTF-8 bytes, not by UTF-16 code units. */
function isBefore(one: string, other: string): boolean {
  return Buffer.compare(Buffer.from(one), Buffer.from(other)) < 0;
}
