import { Fault, type RunHandle } from "../../../kernel/index.ts";
import type { RouteRequest } from "../../http/route.ts";

/** Returns the run of a request, as the caller may see it. Throws `not_found`. Commands carry the caller's name. */
export async function findRun({
  runtime,
  access,
  params: { runId },
}: Pick<RouteRequest<{ readonly runId: string }>, "runtime" | "access" | "params">): Promise<RunHandle> {
  const run = await runtime.find(runId);
  if (run === undefined) throw new Fault("not_found", `run ${runId} does not exist`, { details: { runId } });
  return run.as(access.userId ?? access.name);
}
