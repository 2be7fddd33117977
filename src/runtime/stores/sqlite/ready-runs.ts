import {
  type AgentsOfName,
  type AgentVersion,
  type ClaimOptions,
  type ReadyOptions,
  type RunId,
} from "../../../kernel/index.ts";
import type { Database } from "./db/database.ts";
import { RunState } from "../codec/stored-run.ts";
import { addReady, type ReadyRun } from "../sql/ready-page.ts";
import { ReadyAgent } from "./ready-turns.ts";
import { isChangedHere } from "./db/dialect.ts";

/**
 * Maximum number of runs that become ready in one claim: runs of a dead worker, and runs whose wake-up time has
 * passed.
 */
export const mostWoken = 256;

/** The ready runs of the wanted agents. */
export interface ReadyRuns {
  /** Agents that have ready runs. */
  readonly agents: readonly ReadyAgent[];
  /** Number of ready runs, at most the limit of the claim. */
  readonly count: number;
}

const nextReadyAgent = `SELECT agent_id AS agentId FROM runs WHERE state = ${RunState.READY} AND agent_id > ? AND agent_id < ?
  ORDER BY agent_id LIMIT 1`;
/** L21: SQL that checks whether ready runs are bound to other machines. */
const boundElsewhere = `SELECT 1 FROM runs INDEXED BY runs_of_host WHERE host IS NOT NULL AND state = ${RunState.READY} AND host <> ? LIMIT 1`;
/** Sorts after all agent ids. */
const afterAllAgents = "\u{10ffff}";

/** Finds the ready runs that the claim wants. */
export function findReadyRuns(
  database: Database,
  { agents, limit, except = [], host }: ClaimOptions,
): ReadyRuns {
  const isAnyElsewhere = host !== undefined && database.get(boundElsewhere, host) !== undefined;
  const others = except.length === 0 && !isAnyElsewhere ? undefined : JSON.stringify(except);
  const only = isAnyElsewhere ? host : undefined;
  const ready: ReadyAgent[] = [];
  let count = 0;
  for (const hosted of agents === undefined ? readyAgents(database) : withReadyNames(database, agents)) {
    const agent = new ReadyAgent(hosted, others, only);
    const some = agent.count(database, limit);
    if (some > 0) ready.push(agent);
    count += some;
  }
  return { agents: ready, count: Math.min(count, limit) };
}

/** Returns the agents with ready runs whose ids are after `from` and before `to`. */
function readyAgents(database: Database, from = "", to = afterAllAgents): readonly AgentVersion[] {
  const all: AgentVersion[] = [];
  for (;;) {
    const next = database.get<AgentVersion>(nextReadyAgent, all.at(-1)?.agentId ?? from, to);
    if (next === undefined) return all;
    all.push(next);
  }
}

/**
 * L11: replaces names of agents by the ids of those agents of these names that have ready runs. Costs one query for
 * each name.
 */
function withReadyNames(
  database: Database,
  agents: readonly (AgentVersion | AgentsOfName)[],
): readonly AgentVersion[] {
  const names = agents.filter((hosted) => "agentName" in hosted);
  const versions = agents.filter((hosted) => "agentId" in hosted);
  if (names.length === 0) return versions;
  const ofNames = new Map<string, AgentVersion>();
  for (const { agentName } of names) {
    ofNames.set(agentName, { agentId: agentName as AgentVersion["agentId"] });
    // "0" is the character after "/", so this is the range of the ids that start with the name and a slash.
    for (const found of readyAgents(database, `${agentName}/`, `${agentName}0`))
      ofNames.set(found.agentId, found);
  }
  return [...versions.filter(({ agentId }) => !ofNames.has(agentId)), ...ofNames.values()];
}

/** Whether the wake-up time of a run has passed. */
export function hasDueRun(database: Database, now: number): boolean {
  return database.get("SELECT 1 FROM runs WHERE wake_at <= ? LIMIT 1", now) !== undefined;
}

/** Makes some of the runs ready whose wake-up time has passed, the earliest first. */
export function wakeDueRuns(database: Database, now: number): void {
  database.run(
    `UPDATE runs SET state = ${RunState.READY}, ready_at = wake_at * 1000, wake_at = NULL, ${isChangedHere}
     WHERE id IN (SELECT id FROM runs WHERE wake_at <= ? AND gate IS NULL ORDER BY wake_at LIMIT ${mostWoken})`,
    now,
  );
}

const readyAfter = `SELECT id, run_id AS runId, agent_id AS agentId, agent_version AS agentVersion FROM (
    SELECT id FROM runs WHERE state = ${RunState.READY} AND agent_id > ''
    UNION SELECT id FROM runs WHERE wake_at <= ?1
    UNION SELECT id FROM runs WHERE owner IN (SELECT value FROM json_each(?2)))
  JOIN runs USING (id) WHERE id > ?3 ORDER BY id LIMIT ?4`;

/**
 * L16: reads pages of ready runs until enough of them belong to the wanted agents. `gone` is a JSON list of dead
 * workers.
 */
export function readyRunIds(database: Database, options: ReadyOptions, gone: string): readonly RunId[] {
  const { now, after } = options;
  const found: RunId[] = [];
  let last = 0;
  if (after !== undefined)
    last = database.get<{ readonly id: number }>("SELECT id FROM runs WHERE run_id = ?", after)?.id ?? 0;
  for (;;) {
    const page = database.all<ReadyRun>(readyAfter, now, gone, last, mostWoken);
    if (addReady(found, page, options)) return found;
    last = page.at(-1)?.id ?? last;
    if (page.length < mostWoken) return found;
  }
}
