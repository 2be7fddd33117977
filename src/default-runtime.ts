import type { Runtime } from "./kernel/index.ts";
import { openRuntime } from "./open-runtime.ts";

let opened: Promise<Runtime> | undefined;

/**
 * Where agents run that are not told where: in memory, for as long as the process lives. Opened by the first that needs it. A run that
 * only waits is not dropped: it would be found again by a look round that does not keep the process alive. One that ended is let go of
 * after a minute, so that a server does not fill up. A session stays; one that nobody named and nobody came back to, for an hour.
 */
export function defaultRuntime(): Promise<Runtime> {
  return (opened ??= openRuntime({
    keepAlive: false,
    sameName: "replace",
    keepEndedRunsMs: 60_000,
    keepUnnamedSessionsMs: 3_600_000,
    suspendAfterMs: Number.MAX_SAFE_INTEGER,
  }));
}
