import { expect, it } from "vitest";
import { Fault, type Store } from "../../src/kernel/index.ts";
import { memoryStore, openRuntime, sha256 } from "../../src/runtime/index.ts";
import { FakeClock, sequentialIds } from "../../src/testing/index.ts";
import { agent, settle } from "./bench-runtime.ts";

it("hands a run back after its store failed, and goes on with it from what is stored (G2)", async () => {
  const clock = new FakeClock();
  const real = memoryStore({ hash: sha256 });
  let failures = 1;
  const store: Store = {
    ...real,
    journal: {
      create: (run, first) => real.journal.create(run, first),
      find: (runId) => real.journal.find(runId),
      list: (query) => real.journal.list(query),
      read: (runId, from) => real.journal.read(runId, from),
      delete: (runId) => real.journal.delete(runId),
      collect: (options) => real.journal.collect(options),
      append: async (lease, commit) => {
        if (commit.number === 3 && failures-- > 0) throw new Fault("store_unavailable", "locked");
        return real.journal.append(lease, commit);
      },
    },
  };
  const errors: string[] = [];
  const runtime = await openRuntime({
    store,
    clock,
    ids: sequentialIds(),
    onError: ({ code }) => errors.push(code),
  });
  const done: string[] = [];
  const worker = agent("worker", async (ctx) => {
    for (const name of ["a", "b", "c"]) await ctx.step(name, async () => done.push(name));
    return "done";
  });
  const run = await runtime.submit(worker, null);
  await settle();
  expect(errors).toEqual(["store_unavailable"]);
  await clock.advance(2_000);
  expect((await run.result()).output).toBe("done");
  expect(done.filter((name) => name === "a")).toHaveLength(1);
});
