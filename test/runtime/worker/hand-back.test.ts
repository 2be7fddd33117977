import { expect, it } from "vitest";
import { Fault, userMessage, type Store } from "../../../src/kernel/index.ts";
import { createRuntime } from "../../../src/runtime/local-runtime.ts";
import { memoryStore, sha256 } from "../../../src/runtime/index.ts";
import { FakeClock, sequentialIds } from "../../../src/testing/index.ts";
import { agent, settle, until } from "../runtime-setup.ts";
import { removeStoresAfterEach, twoStores } from "../two-stores.ts";

removeStoresAfterEach();

it("G2: a run whose store fails is released, and then resumed from its stored state", async () => {
  const clock = new FakeClock();
  const real = memoryStore({ hash: sha256 });
  let failures = 1;
  const store: Store = {
    ...real,
    journal: {
      create: (run, first) => real.journal.create(run, first),
      find: (runId) => real.journal.find(runId),
      summary: (runId) => real.journal.summary(runId),
      list: (query) => real.journal.list(query),
      count: (query) => real.journal.count(query),
      changes: (after) => real.journal.changes(after),
      approvals: (query) => real.journal.approvals(query),
      read: (runId, from) => real.journal.read(runId, from),
      replay: (runId, visit) => real.journal.replay(runId, visit),
      delete: (runId) => real.journal.delete(runId),
      collect: (options) => real.journal.collect(options),
      append: async (lease, commit) => {
        if (commit.number === 3 && failures-- > 0) throw new Fault("store_unavailable", "locked");
        return real.journal.append(lease, commit);
      },
    },
  };
  const errors: string[] = [];
  const runtime = await createRuntime({
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

const visibleAppend = { type: "append", visibility: "visible" } as const;

it.each(twoStores)(
  "%s: a run fails when the store refuses the content of its commit, and is not retried forever",
  async (_name, prepare) => {
    const clock = new FakeClock();
    const open = await prepare();
    const errors: string[] = [];
    const runtime = await createRuntime({
      store: await open(),
      clock,
      onError: ({ code }) => errors.push(code),
    });
    let isFixed = false;
    let starts = 0;
    const writer = agent("writer", async (ctx) => {
      starts++;
      const { facts, taskId, agentId } = ctx;
      const { runId, sessionId } = facts;
      const base = { id: "e1", parentId: isFixed ? null : "nowhere", at: 1, runId, taskId };
      const entry = { type: "message", ...base, message: userMessage("hi") } as const;
      ctx.report({ sessions: [{ ...visibleAppend, sessionId, agentId, entry }] });
      return "done";
    });
    const run = await runtime.submit(writer, null);
    await until(async () => {
      await clock.advance(100);
      return (await runtime.list()).runs.every(({ endedAt }) => endedAt !== null);
    });
    const { status, error: failure } = await run.result();
    expect({ status, code: failure?.code }).toEqual({ status: "failed", code: "not_found" });
    expect({ starts, errors }).toEqual({ starts: 1, errors: ["not_found"] });
    isFixed = true;
    await run.resume();
    expect((await run.result()).output).toBe("done");
    await runtime.close();
  },
);
