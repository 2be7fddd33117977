import { afterEach, expect, test } from "vitest";
import type { Runtime } from "../../../src/kernel/index.ts";
import { createRuntime } from "../../../src/runtime/local-runtime.ts";
import { agent } from "../runtime-setup.ts";
import { removeStoresAfterEach, twoStores } from "../two-stores.ts";

removeStoresAfterEach();

/** Hooks run in reverse order: the runtimes close before their stores are removed. */
const runtimes: Runtime[] = [];
afterEach(async () => {
  for (const runtime of runtimes.splice(0)) await runtime.close();
});

test.each(twoStores)(
  "%s: a worker without free slots leaves further runs in the store, and a second worker executes them",
  async (_name, prepare) => {
    const open = await prepare();
    const working: string[] = [];
    const busy = Promise.withResolvers<void>();
    const end = Promise.withResolvers<string>();
    const openWorker = async (workerId: string) => {
      const runtime = await createRuntime({ store: await open(), workerId, concurrency: 2, pollMs: 10 });
      runtimes.push(runtime);
      const hosted = agent("busy", (ctx) =>
        ctx.step("work", () => {
          if (working.push(workerId) === 4) busy.resolve();
          return end.promise;
        }),
      );
      runtime.register(hosted);
      return { runtime, hosted };
    };
    const { runtime, hosted } = await openWorker("one");
    const runs = await Promise.all([1, 2, 3, 4].map(() => runtime.submit(hosted, null)));
    await openWorker("other");
    await busy.promise;
    expect(working.toSorted()).toEqual(["one", "one", "other", "other"]);
    end.resolve("done");
    for (const run of runs) expect(await run.result()).toMatchObject({ output: "done" });
  },
);
