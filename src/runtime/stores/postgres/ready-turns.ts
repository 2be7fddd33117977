import type { AgentVersion, RunId } from "../../../kernel/index.ts";
import { RunState } from "../codec/stored-run.ts";
import { TurnOrder, type ReadyRun as NextRun } from "../sql/ready-turn.ts";
import type { Queries, Value } from "./db/queries.ts";
import { turnUser } from "./db/schema.ts";

export interface ReadyRun extends NextRun {
  readonly runId: RunId;
}

const columns = `id, run_id AS "runId", agent_id AS "agentId", tenant, priority, ${turnUser} AS "user"`;
/**
 * SQL for the hosted agents. Parameters $2 to $4 are the agents, whether any version matches, and the version. $5
 * are the runs to leave out, and $6 is the machine of the worker (L21).
 */
const hosted = `unnest($2::text[], $3::boolean[], $4::text[]) AS hosted (agent, is_any, version)`;
const ready = `FROM {runs} WHERE state = ${RunState.READY} AND agent_id = hosted.agent
  AND (hosted.is_any OR agent_version IS NOT DISTINCT FROM hosted.version) AND run_id <> ALL($5::text[])
  AND ($6::text IS NULL OR host IS NULL OR host = $6)`;

const firstOf = (again: number, after: string): string =>
  `(SELECT ${columns}, ${again} AS again ${ready} ${after} ORDER BY tenant, priority DESC, ${turnUser}, ready_at LIMIT 1)`;
/**
 * L5: SQL for the next run of each agent in the turns of the tenants: that of the first tenant after $1, or
 * otherwise of the first of all.
 */
const nextOfEach = `SELECT next.* FROM ${hosted} CROSS JOIN LATERAL (
    ${firstOf(0, "AND tenant > $1")} UNION ALL ${firstOf(1, "")} ORDER BY again LIMIT 1) AS next`;
/**
 * L5: SQL for the next run of an agent, a tenant and a priority, in the turns of the users: that of the first user
 * after $1.
 */
const nextOfUser = `SELECT next.* FROM ${hosted} CROSS JOIN LATERAL (
    SELECT ${columns}, 0 AS again ${ready} AND tenant = $7 AND priority = $8 AND ${turnUser} > $1
    ORDER BY ${turnUser}, ready_at LIMIT 1) AS next`;

/** Which ready runs a worker takes. */
interface ReadyScope {
  readonly except: readonly RunId[];
  /** L21: the machine of the worker. */
  readonly host: string | undefined;
}

/** L5: finds the next run. Each process keeps its own position in the turns. */
export class Turns {
  readonly #order = new TurnOrder();

  /** Notes that the run was claimed. */
  note(run: ReadyRun): void {
    this.#order.note(run);
  }

  /** Returns the next run of these agents that is in the scope. Costs one or two queries. */
  async next(
    queries: Queries,
    agents: readonly AgentVersion[],
    { except, host }: ReadyScope,
  ): Promise<ReadyRun | undefined> {
    const values = valuesOf(agents, except, host);
    const choice = this.#order.choose(
      await queries.all<ReadyRun>(nextOfEach, this.#order.lastTenant, ...values),
    );
    if (choice === undefined) return undefined;
    const { first, last, hasSameAgent, nextAgent } = choice;
    if (last === undefined || !hasSameAgent) return nextAgent();
    const same = valuesOf(
      agents.filter(({ agentId }) => agentId === last.agentId),
      except,
      host,
    );
    const next = await queries.get<ReadyRun>(nextOfUser, last.user, ...same, first.tenant, first.priority);
    return next ?? nextAgent();
  }
}

function valuesOf(
  agents: readonly AgentVersion[],
  except: readonly RunId[],
  host: string | undefined,
): readonly Value[] {
  return [
    agents.map(({ agentId }) => agentId),
    agents.map(({ version }) => (version === undefined ? "true" : "false")),
    agents.map(({ version }) => version ?? null) as readonly string[],
    except,
    host ?? null,
  ];
}
