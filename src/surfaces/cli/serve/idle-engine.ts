import type { EngineFactory } from "../../../kernel/index.ts";

/**
 * An engine that drives no run, for a process that only serves: runs that it submits stay pending until a worker claims
 * them. Its kind is that of the local engine, because it leaves all runs of the store to workers with that engine.
 */
export const idleEngine: EngineFactory = () => ({
  kind: "local",
  start: async () => undefined,
  wake: () => undefined,
  agentsChanged: () => undefined,
  stop: async () => undefined,
});
