import type { EngineFactory } from "../../../kernel/index.ts";

/**
 * An engine that drives no run and sends no wake-ups, for a process that only serves or changes runs. The workers of the store notice
 * what it writes, whatever their engine: runs that it submits stay pending until one of them drives them.
 */
export const idleEngine: EngineFactory = () => ({
  kind: null,
  start: async () => undefined,
  wake: () => undefined,
  agentsChanged: () => undefined,
  stop: async () => undefined,
});
