import { Fault, type Store } from "../kernel/index.ts";
import { EndedRuns, type EndedRunsOptions } from "./ended-runs.ts";

/** Collects sessions that nobody named and nobody came back to for so long, from time to time. */
export function unnamedSessions({ sessions }: Store, options: Omit<EndedRunsOptions, "collect">): EndedRuns {
  const { keepMs } = options;
  if (!Number.isFinite(keepMs) || keepMs < 0)
    throw new Fault("invalid_argument", `keepUnnamedSessionsMs is ${keepMs}: it must be a number from 0`);
  if (sessions.collect === undefined)
    throw new Fault(
      "unsupported",
      "keepUnnamedSessionsMs is for a store in memory: this one keeps a session until runtime.deleteSession",
    );
  const collect = sessions.collect.bind(sessions);
  return new EndedRuns({
    ...options,
    collect: ({ endedBefore }) => collect({ unnamedBefore: endedBefore }),
  });
}
