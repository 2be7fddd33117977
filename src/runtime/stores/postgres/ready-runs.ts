import {
  agentNameOf,
  type AgentId,
  type AgentsOfName,
  type AgentVersion,
  type ReadyOptions,
  type RunId,
} from "../../../kernel/index.ts";
import { RunState } from "../codec/stored-run.ts";
import { addReady, type ReadyRun } from "../sql/ready-page.ts";
import type { Queries } from "./db/queries.ts";
import { isBeating } from "./db/beat-table.ts";
import { isChanged } from "../sql/run-row.ts";

/**
 * Maximum number of runs that become ready in one claim: runs of a dead worker, and runs whose wake-up time has
 * passed.
 */
export const mostWoken = 256;

/** SQL for the agents that have ready runs. It costs one index lookup per agent. */
export const readyAgents = `WITH RECURSIVE agents AS (
    (SELECT agent_id FROM {runs} WHERE state = ${RunState.READY} ORDER BY agent_id LIMIT 1)
    UNION ALL
    SELECT (SELECT runs.agent_id FROM {runs} AS runs WHERE runs.state = ${RunState.READY} AND runs.agent_id > agents.agent_id
      ORDER BY runs.agent_id LIMIT 1)
    FROM agents WHERE agents.agent_id IS NOT NULL
  ) SELECT agent_id FROM agents WHERE agent_id IS NOT NULL`;

/** SQL condition that the wake-up time of a run has passed. $1 is the current time. */
export const hasDueRun = "EXISTS (SELECT 1 FROM {runs} WHERE wake_at <= $1)";

/** Returns which of the agents with ready runs a worker executes, with the version that it executes. */
export function wantedAgents(
  ready: readonly AgentId[],
  agents: readonly (AgentVersion | AgentsOfName)[] | undefined,
): readonly AgentVersion[] {
  return ready.flatMap((agentId): readonly AgentVersion[] => {
    if (agents === undefined) return [{ agentId }];
    const isNamed = agents.some(
      (hosted) => "agentName" in hosted && hosted.agentName === agentNameOf(agentId),
    );
    if (isNamed) return [{ agentId }];
    return agents.filter(
      (hosted): hosted is AgentVersion => "agentId" in hosted && hosted.agentId === agentId,
    );
  });
}

/** Makes some of the runs ready whose wake-up time has passed, the earliest first. */
export async function wakeDueRuns(queries: Queries, now: number): Promise<void> {
  await queries.run(
    `UPDATE {runs} SET state = ${RunState.READY}, ready_at = wake_at * 1000, wake_at = NULL, ${isChanged}
     WHERE id IN (SELECT id FROM {runs} WHERE wake_at <= $1 AND gate IS NULL ORDER BY wake_at LIMIT ${mostWoken} FOR UPDATE SKIP LOCKED)`,
    now,
  );
}

const readyAfter = `SELECT id, run_id AS "runId", agent_id AS "agentId", agent_version AS "agentVersion" FROM {runs}
  WHERE id IN (SELECT id FROM {runs} WHERE state = ${RunState.READY}
      UNION ALL SELECT id FROM {runs} WHERE wake_at <= $1
      UNION ALL SELECT id FROM {runs} WHERE owner IS NOT NULL AND NOT EXISTS (SELECT 1 FROM {workers}
        WHERE worker_id = owner AND ${isBeating}))
    AND id > $2 ORDER BY id LIMIT ${mostWoken}`;

/** L16: reads pages of ready runs until enough of them belong to the wanted agents. */
export async function readyRunIds(queries: Queries, options: ReadyOptions): Promise<readonly RunId[]> {
  const { now, after } = options;
  const found: RunId[] = [];
  let last = 0;
  if (after !== undefined)
    last =
      (await queries.get<{ readonly id: number }>("SELECT id FROM {runs} WHERE run_id = $1", after))?.id ?? 0;
  for (;;) {
    const page = await queries.all<ReadyRun>(readyAfter, now, last);
    if (addReady(found, page, options)) return found;
    last = page.at(-1)?.id ?? last;
    if (page.length < mostWoken) return found;
  }
}
