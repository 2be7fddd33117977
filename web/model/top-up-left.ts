import { signal } from "@preact/signals";
import { get, type Result } from "../api/client.ts";
import { connected } from "../api/runs-feed.ts";
import { useRead } from "../api/use-read.ts";
import { capUsd } from "../base/format.ts";

/** What the person at the page may do. `null` until the server has said it. */
const access = signal<Result<"GET", "/api/access"> | null>(null);

/** Asks the server what the person may do, at the start and when it answers again. Until then, the page offers no top-ups. */
export function followAccess(): void {
  connected.subscribe(() => void readAccess());
}

async function readAccess(): Promise<void> {
  try {
    access.value = await get("/api/access", {});
  } catch {
    // The page says that the server does not answer, or needs a token, and asks again when it does.
  }
}

/**
 * The dollars that the person may add to the allowance of a run: `Infinity` without a limit, and `undefined` until the server
 * has said it. It is read again when `allowance`, the allowance of the run, changes.
 */
export function useTopUpLeft(runId: string, allowance: number | null | undefined): number | undefined {
  const scope = access.value?.scope;
  const isLimited = scope !== undefined && scope !== "admin";
  const { value } = useRead(
    async (stop) => (isLimited ? get("/api/runs/{runId}/top-up", { params: { runId }, signal: stop }) : null),
    [runId, isLimited, allowance],
  );
  if (scope === "admin") return Infinity;
  return value === null ? undefined : (value.maxCostUsd ?? Infinity);
}

/** Says who may raise the allowance of a run. Empty if the person may do so without a limit. */
export function topUpWords(left: number | undefined): string {
  if (left === undefined || left === Infinity) return "";
  return left > 0
    ? `You may add ${capUsd(left)} in all. A person with the scope admin may add more.`
    : "Only a person with the scope admin may raise the allowance of this run.";
}
