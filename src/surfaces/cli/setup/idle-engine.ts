import { openRuntime } from "../../../assembly/open-runtime.ts";
import type { EngineFactory, Runtime, Store } from "../../../kernel/index.ts";
import type { ExitKind } from "../terminal/exit-code.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { withStore, type StoreOptions } from "./stored-runs.ts";

/**
 * An engine that executes no run and sends no wake-ups, for a process that only serves or changes runs. The workers of the store notice
 * what it writes, whatever their engine: runs that it submits stay pending until one of them executes them.
 */
export const idleEngine: EngineFactory = () => ({
  kind: null,
  start: async () => undefined,
  wake: () => undefined,
  agentsChanged: () => undefined,
  stop: async () => undefined,
});

/** Opens a store with a runtime that executes no run, for a command that reads or changes what is stored. */
export function withRuns(
  options: StoreOptions,
  terminal: Terminal,
  use: (store: Store, runtime: Runtime) => Promise<ExitKind>,
): Promise<ExitKind> {
  return withStore(options, terminal, async (store) => {
    const runtime = await openRuntime({ store, engine: idleEngine, keepAlive: false });
    try {
      return await use(store, runtime);
    } finally {
      await runtime.close();
    }
  });
}
