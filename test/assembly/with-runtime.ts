import { openRuntime, type Runtime } from "../../src/entries/index.ts";

/** Calls the body with a runtime in memory, and closes the runtime. */
export async function withRuntime(body: (runtime: Runtime) => Promise<void>): Promise<void> {
  const runtime = await openRuntime({ store: "memory:", unknownPrice: "ignore" });
  try {
    await body(runtime);
  } finally {
    await runtime.close();
  }
}
