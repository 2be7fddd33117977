import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { get, RequestError } from "../api/client.ts";
import type { Run, RunFigures } from "../api/types.ts";

/** The figures of the runs that a list has shown, by the id of the run. */
export const figures = signal<ReadonlyMap<string, RunFigures>>(new Map());

/** When the summary of a run changed for which the figures were read last. */
const readFor = new Map<string, number>();
const mostPerRequest = 100;
const settleMs = 300;
let wanted = new Map<string, number>();
let timer: ReturnType<typeof setTimeout> | undefined;

/** Reads the figures of runs that are new or have changed. */
export function useFigures(runs: readonly Run[]): void {
  useEffect(() => {
    for (const { runId, updatedAt } of runs)
      if (readFor.get(runId) !== updatedAt) wanted.set(runId, updatedAt);
    if (wanted.size > 0)
      timer ??= setTimeout(() => void readWanted(), figures.peek().size === 0 ? 0 : settleMs);
  });
}

async function readWanted(): Promise<void> {
  const asked = [...wanted];
  wanted = new Map();
  for (const [runId, updatedAt] of asked) readFor.set(runId, updatedAt);
  try {
    for (let at = 0; at < asked.length; at += mostPerRequest) {
      const runId = asked.slice(at, at + mostPerRequest).map(([id]) => id);
      const read = await get("/api/figures", { query: { runId } });
      figures.value = new Map([...figures.value, ...read.figures.map((each) => [each.runId, each] as const)]);
    }
  } catch (error) {
    // The next drawing asks again for what could not be read.
    for (const [runId] of asked) readFor.delete(runId);
    if (!(error instanceof RequestError)) throw error;
  } finally {
    timer = undefined;
  }
}
