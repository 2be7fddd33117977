import { takesRun, type ReadyOptions, type RunId, type RunRecord } from "../../../kernel/index.ts";

/** A row in the result of the statement that finds ready runs. */
export interface ReadyRun extends Pick<RunRecord, "agentId" | "agentVersion"> {
  readonly id: number;
  readonly runId: RunId;
}

/** L16: adds the runs of a page that the agents execute, up to the limit. Returns whether the limit is reached. */
export function addReady(
  found: RunId[],
  page: readonly ReadyRun[],
  { agents, limit }: Pick<ReadyOptions, "agents" | "limit">,
): boolean {
  for (const run of page) {
    if (found.length === limit) return true;
    if (agents === undefined || takesRun(agents, run)) found.push(run.runId);
  }
  return found.length === limit;
}
