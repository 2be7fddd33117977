import type { Runtime } from "./kernel/index.ts";
import { openRuntime } from "./open-runtime.ts";

let runtime: Promise<Runtime> | undefined;

/**
 * Returns the runtime of agents that are invoked without one. It is opened on first use, stores everything in memory
 * and lasts until the process ends. It does not keep the process alive, and therefore never drops a waiting run from
 * memory: the poll that would find the run again does not keep the process alive either. So that a server does not run
 * out of memory, an ended run is deleted after a minute, and an unnamed session an hour after its last message.
 */
export function defaultRuntime(): Promise<Runtime> {
  return (runtime ??= openRuntime({
    keepAlive: false,
    sameName: "replace",
    keepEndedRunsMs: 60_000,
    keepUnnamedSessionsMs: 3_600_000,
    suspendAfterMs: Number.MAX_SAFE_INTEGER,
  }));
}
