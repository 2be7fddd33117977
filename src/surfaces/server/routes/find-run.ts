import { Fault, type RunHandle, type RunQuery } from "../../../kernel/index.ts";
import type { RouteRequest } from "../../http/route.ts";

/**
 * Returns the run of a request, if the caller may see it. Throws `not_found` otherwise. Commands to the run are
 * recorded with the caller's name.
 */
export async function findRun({
  runtime,
  access,
  params: { runId },
}: Pick<RouteRequest<{ readonly runId: string }>, "runtime" | "access" | "params">): Promise<RunHandle> {
  const run = await runtime.find(runId);
  if (run === undefined) throw new Fault("not_found", `run ${runId} does not exist`, { details: { runId } });
  return run.as(access.userId ?? access.name);
}

/** The filters of a request, as declared by `runFilter`. */
type RequestedRuns = Omit<RunQuery, "agentName" | "metadata" | "score"> & {
  readonly agent?: string;
  readonly metadata?: readonly string[];
  readonly score?: string;
  readonly scoreAbove?: number;
  readonly scoreBelow?: number;
};

/** Returns the query for the filters of a request. */
export function wantedRuns(requested: RequestedRuns): RunQuery {
  const { agent, metadata, score, scoreAbove, scoreBelow, ...query } = requested;
  if (score === undefined && (scoreAbove !== undefined || scoreBelow !== undefined))
    throw new Fault(
      "invalid_argument",
      `invalid ${scoreAbove === undefined ? "scoreBelow" : "scoreAbove"}: it has no score to compare; add score=NAME`,
    );
  const pairs = metadata?.map((pair) => [
    pair.slice(0, pair.indexOf("=")),
    pair.slice(pair.indexOf("=") + 1),
  ]);
  return {
    ...query,
    ...(agent !== undefined && (agent.includes("/") ? { agentId: agent } : { agentName: agent })),
    ...(pairs !== undefined && { metadata: Object.fromEntries(pairs) as Record<string, string> }),
    ...(score !== undefined && {
      score: {
        name: score,
        ...(scoreAbove !== undefined && { above: scoreAbove }),
        ...(scoreBelow !== undefined && { below: scoreBelow }),
      },
    }),
  };
}
