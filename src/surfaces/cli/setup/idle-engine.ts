import { openRuntime } from "../../../assembly/open-runtime.ts";
import type { EngineFactory, Runtime, Store } from "../../../kernel/index.ts";
import type { ExitKind } from "../terminal/exit-code.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { withStore, type StoreOptions } from "./stored-runs.ts";

/**
 * An engine that executes no run and sends no wake-ups, for a process that only serves or changes runs. The workers
 * of the store notice the changes of this process, regardless of their engine. A run that this process submits
 * stays pending until a worker executes it.
 */
export const idleEngine: EngineFactory = () => ({
  kind: null,
  start: async () => undefined,
  wake: () => undefined,
  agentsChanged: () => undefined,
  stop: async () => undefined,
});

/** Opens a store with a runtime that executes no runs, for a command that only reads or changes stored data. */
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
