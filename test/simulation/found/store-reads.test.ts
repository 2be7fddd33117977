import { expect, test } from "vitest";
import { Agent } from "../../../src/entries/index.ts";
import { scriptedModel } from "../../../src/entries/testing.ts";
import { update, workflow } from "../../../src/entries/workflow.ts";
import { Fault, formatRunId, type EventLog, type Store } from "../../../src/kernel/index.ts";
import { createRuntime } from "../../../src/runtime/local-runtime.ts";
import { memoryStore, sha256 } from "../../../src/runtime/index.ts";
import { FakeClock } from "../../../src/testing/index.ts";

/** The event log of a store, with another `read`. */
function withRead({ events }: Store, read: EventLog["read"]): EventLog {
  return {
    read,
    keep: (runId) => events.keep(runId),
    tail: (runId, options) => events.tail(runId, options),
    lastSeq: (runId) => events.lastSeq(runId),
    putDelta: (lease, delta) => events.putDelta(lease, delta),
    verify: (runId, head) => events.verify(runId, head),
  };
}

// Workload programs, seed 31.
test("update() with the id of an earlier update returns the reply of that update if the run ends between two reads of its log", async () => {
  const store = memoryStore({ hash: sha256 });
  let staleReads = 0;
  const events = withRead(store, async function* (runId, from) {
    if (staleReads-- <= 0) yield* store.events.read(runId, from);
  });
  const runtime = await createRuntime({ store: { ...store, events } });
  const double = update("double", { input: { type: "integer" }, output: { type: "integer" } } as const);
  runtime.register(
    workflow("doubler", async (ctx) => {
      await ctx.handleUpdate(double, async (value) => 2 * value);
      return null;
    }),
  );
  const run = await runtime.start("doubler", null);
  expect(await run.update("double", 4, { id: "one" })).toBe(8);
  await run.result();
  staleReads = 1;
  expect(await run.update("double", 4, { id: "one" })).toBe(8);
  await runtime.close();
});

// Workload programs, seed 9.
test("a run continues if its store could not be used while its code sent a signal", async () => {
  const clock = new FakeClock();
  const store = memoryStore({ hash: sha256 });
  const listener = formatRunId("listener");
  let faults = 0;
  const journal = Object.assign(Object.create(null) as object, {
    create: store.journal.create.bind(store.journal),
    find: store.journal.find.bind(store.journal),
    list: store.journal.list.bind(store.journal),
    count: store.journal.count.bind(store.journal),
    changes: store.journal.changes.bind(store.journal),
    approvals: store.journal.approvals.bind(store.journal),
    append: store.journal.append.bind(store.journal),
    read: store.journal.read.bind(store.journal),
    replay: store.journal.replay.bind(store.journal),
    delete: store.journal.delete.bind(store.journal),
    collect: store.journal.collect.bind(store.journal),
    summary: async (runId: typeof listener) => {
      if (runId !== listener || faults++ > 0) return store.journal.summary(runId);
      throw new Fault("store_unavailable", "the store cannot be reached");
    },
  }) as Store["journal"];
  const runtime = await createRuntime({ store: { ...store, journal }, clock, onError: () => undefined });
  runtime.register(workflow("listener", async (ctx) => (await ctx.waitForSignal("word")) as string));
  runtime.register(
    workflow("speaker", async (ctx) => {
      await ctx.sendSignal(listener, "word", "hello");
      return "said";
    }),
  );
  const heard = await runtime.start("listener", null, { runId: listener });
  const said = await runtime.start("speaker", null);
  await clock.advance(5_000);
  expect(faults).toBeGreaterThan(1);
  expect((await said.result()).output).toBe("said");
  expect((await heard.result()).output).toBe("hello");
  await runtime.close();
});

// Workload composed, seed 47.
test("a child continues if the store could not be used while the child read the request that it shares", async () => {
  const clock = new FakeClock();
  const store = memoryStore({ hash: sha256 });
  const first = formatRunId("first");
  const read: string[] = [];
  let isFailing = false;
  const journal = Object.assign(Object.create(store.journal) as Store["journal"], {
    replay: (runId: typeof first, visit: Parameters<Store["journal"]["replay"]>[1]) => {
      if (!isFailing || runId !== first || read.length > 0) return store.journal.replay(runId, visit);
      read.push(runId);
      return Promise.reject(new Fault("store_unavailable", "the store cannot be reached"));
    },
  });
  for (const name of methodsOf(store.journal))
    if (name !== "replay")
      Object.defineProperty(journal, name, {
        value: (store.journal[name] as () => unknown).bind(store.journal),
      });
  const runtime = await createRuntime({
    store: { ...store, journal },
    clock,
    unknownPrice: "ignore",
    onError: () => undefined,
  });
  const model = scriptedModel(["It is sorted.", "The largest one."]);
  const clerk = new Agent({ name: "clerk", model });
  runtime.register(clerk);
  const run = await runtime.submit(clerk, "Sort the invoices.", { runId: first, sessionId: "invoices" });
  await run.result();
  isFailing = true;
  const child = await clerk.spawnChild({ runtime, sessionId: "invoices", prompt: "Name the largest." });
  await clock.advance(5_000);
  expect(read).toEqual([first]);
  expect((await child.result()).output).toBe("The largest one.");
  await runtime.close();
});

function methodsOf(journal: Store["journal"]): readonly (keyof Store["journal"])[] {
  return Object.getOwnPropertyNames(Object.getPrototypeOf(journal)).filter(
    (name) => name !== "constructor",
  ) as (keyof Store["journal"])[];
}
