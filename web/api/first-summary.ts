import type { Run } from "./types.ts";

/** The summary that the server puts into the page of a run. Later views of the page read it from the server. */
export function firstSummary(runId: string): Run | null {
  const element = document.querySelector("#run-summary");
  element?.remove();
  const run = JSON.parse(element?.textContent ?? "null") as Run | null;
  return run?.runId === runId ? run : null;
}
