import type { JSX } from "preact";
import { get, type Result } from "../../api/client.ts";
import type { ListedExperiment } from "../../api/types.ts";
import { counted, grouped } from "../../base/format.ts";
import { hasEnded, lookOf } from "../../model/status.ts";
import { Glyph } from "../../parts/glyph.tsx";

/** Number of pages of runs that are looked at for experiments. */
const mostPages = 4;

/** Reads the experiments of the newest runs of workflows. */
export async function readExperiments(name?: string): Promise<readonly ListedExperiment[]> {
  const found: ListedExperiment[] = [];
  let after: string | null = null;
  for (let page = 0; page < mostPages; page++) {
    const { experiments, next } = await readPage(name, after);
    found.push(...experiments);
    if (next === null) break;
    after = next;
  }
  return found;
}

function readPage(
  name: string | undefined,
  after: string | null,
): Promise<Result<"GET", "/api/experiments">> {
  return get("/api/experiments", {
    query: { ...(name !== undefined && { name }), ...(after !== null && { after }) },
  });
}

/** The state of the gates, or that of the run as long as trials are missing. */
export function GateState({
  experiment: { run, isPassed, expectedTrials, endedTrials },
}: {
  readonly experiment: Pick<ListedExperiment, "run" | "isPassed" | "expectedTrials" | "endedTrials">;
}): JSX.Element {
  const missing = expectedTrials - endedTrials;
  if (isPassed === null) {
    const look = lookOf(run.status);
    const words =
      missing === 0
        ? "No gates"
        : hasEnded(run.status)
          ? `${counted(missing, "trial")} missing`
          : `${grouped(endedTrials)} of ${counted(expectedTrials, "trial")}`;
    return (
      <span class={`status ${look}`}>
        <Glyph look={look} status={run.status} />
        <span>{words}</span>
      </span>
    );
  }
  return (
    <span class={`status ${isPassed ? "completed" : "failed"}`}>
      <Glyph look={isPassed ? "completed" : "failed"} />
      <span>{isPassed ? "Passed" : "Failed"}</span>
    </span>
  );
}
