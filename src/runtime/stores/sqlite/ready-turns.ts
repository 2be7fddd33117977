import type { AgentVersion } from "../../../kernel/index.ts";
import type { Database } from "./db/database.ts";
import { RunState } from "../codec/stored-run.ts";
import { TurnOrder, type ReadyRun } from "../sql/ready-turn.ts";
import { turnUser } from "./db/schema.ts";

/** The queries for ready runs of one agent. */
class ReadyQueries {
  /** Counts the ready runs, up to a limit. */
  readonly count: string;
  /**
   * L5: SQL for the next run in the turns of the tenants: that of the first tenant after a given one, or otherwise
   * of the first of all.
   */
  readonly next: string;
  /**
   * L5: SQL for the next run of a tenant and a priority in the turns of the users: that of the first user after a
   * given one.
   */
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
 * Queries that leave out some runs. They are separate, because searching the list takes longer than the rest of the
 * query, and in most cases the list is empty.
 */
const allReadyBut = new ReadyQueries("AND run_id NOT IN (SELECT value FROM json_each(?5))");
/** L21: queries that also leave out runs which are bound to other machines. */
const allReadyHere = new ReadyQueries(
  "AND run_id NOT IN (SELECT value FROM json_each(?5)) AND (host IS NULL OR host = ?8)",
);

/** An agent whose ready runs are wanted, except for some. */
export class ReadyAgent {
  readonly agentId: AgentVersion["agentId"];
  readonly #queries: ReadyQueries;
  /** Parameters of the queries. */
  readonly #values: readonly (string | number | null)[];
  readonly #host: string | undefined;

  /**
   * `others` is a JSON array of the unwanted runs, if there are any. `host` is the machine of the worker, if ready
   * runs are bound to other machines; `others` is then given too.
   */
  constructor({ agentId, version }: AgentVersion, others: string | undefined, host?: string) {
    this.agentId = agentId;
    this.#queries = host !== undefined ? allReadyHere : others === undefined ? allReady : allReadyBut;
    const values = [agentId, version === undefined ? 1 : 0, version ?? null];
    this.#values = others === undefined ? values : [...values, others];
    this.#host = host;
  }

  /** Counts the agent's ready runs, up to a limit. */
  count(database: Database, limit: number): number {
    const row = database.get<{ readonly count: number }>(this.#queries.count, limit, ...this.#withHost());
    return row?.count ?? 0;
  }

  next(database: Database, tenant: string): ReadyRun | undefined {
    return database.get<ReadyRun>(this.#queries.next, tenant, ...this.#withHost());
  }

  /** Returns the next run with the same tenant and priority as `run`, of the first user after `user`. */
  nextUser(database: Database, user: string, { tenant, priority }: ReadyRun): ReadyRun | undefined {
    const values = [...this.#values, ...(this.#values.length === 3 ? [null] : [])];
    const more = this.#host === undefined ? [] : [this.#host];
    return database.get<ReadyRun>(this.#queries.nextUser, user, ...values, tenant, priority, ...more);
  }

  /**
   * Returns the parameters. Only the query by user has the parameters 6 and 7, which come between the list of
   * unwanted runs and the machine.
   */
  #withHost(): readonly (string | number | null)[] {
    return this.#host === undefined ? this.#values : [...this.#values, null, null, this.#host];
  }
}

/** L5: finds the next run. Each process that has the file open keeps its own position in the turns. */
export class Turns {
  readonly #order = new TurnOrder();

  /** Notes that the run was claimed. */
  note(run: ReadyRun): void {
    this.#order.note(run);
  }

  /** Returns the next run of these agents. Costs one or two queries for each agent. */
  next(database: Database, agents: readonly ReadyAgent[]): ReadyRun | undefined {
    const choice = this.#order.choose(
      agents.flatMap((agent) => agent.next(database, this.#order.lastTenant) ?? []),
    );
    if (choice === undefined) return undefined;
    const { first, last, hasSameAgent, nextAgent } = choice;
    const agent = hasSameAgent ? agents.find(({ agentId }) => agentId === last?.agentId) : undefined;
    return agent?.nextUser(database, last?.user ?? "", first) ?? nextAgent();
  }
}
