import { expect, test } from "vitest";
import { Agent, memoryStore, openRuntime, sha256 } from "../../../src/entries/index.ts";
import { eventDraft, type Architecture, type RunHandle } from "../../../src/kernel/index.ts";
import { findRun } from "../../runtime/find-run.ts";

function note(name: string) {
  return eventDraft("architecture_event", { architecture: "slow", name, data: {} });
}

/** Creates an agent whose architecture yields events around work that is not journaled. */
function slowAgent(work: () => Promise<unknown>): Agent {
  const architecture: Architecture = {
    name: "slow",
    requiresModel: false,
    async *run(session, { ctx }) {
      yield note("first");
      await ctx.step("prepare", async () => 1);
      yield note("before");
      await work();
      yield note("after");
      await ctx.waitForSignal("go");
      session.output = "done";
      yield note("last");
    },
    declaredWorkers: () => ({}),
  };
  return new Agent({ name: "slow", architecture });
}

/** Reads the names of the architecture events of a run until one has this name, or until the run ends. */
async function namesUntil(run: RunHandle, name?: string): Promise<readonly string[]> {
  const names: string[] = [];
  for await (const event of run.events()) {
    if (event.type !== "architecture_event") continue;
    names.push(event.data.name);
    if (names.at(-1) === name) break;
  }
  return names;
}

test("E4: an event that an architecture yields arrives while the architecture works on without a step", async () => {
  const gate = Promise.withResolvers<void>();
  const runtime = await openRuntime({ unknownPrice: "ignore" });
  const run = await runtime.submit(
    slowAgent(() => gate.promise),
    "Go",
  );
  // The architecture waits for the gate, which opens only when the reader has received the event.
  expect(await namesUntil(run, "before")).toEqual(["first", "before"]);
  gate.resolve();
  expect(await namesUntil(run, "after")).toEqual(["first", "before", "after"]);
  await run.signal("go");
  await run.result();
  expect(await namesUntil(run)).toEqual(["first", "before", "after", "last"]);
  await runtime.close();
});

test("E4: events that arrived before their step are not repeated when another runtime resumes the run", async () => {
  const store = memoryStore({ hash: sha256 });
  const first = await openRuntime({ store, unknownPrice: "ignore" });
  const started = await first.submit(
    slowAgent(() => new Promise(() => {})),
    "Go",
  );
  await namesUntil(started, "before");
  await first.close();
  const second = await openRuntime({ store, unknownPrice: "ignore" });
  const gate = Promise.withResolvers<void>();
  second.register(slowAgent(() => gate.promise));
  const run = await findRun(second, started);
  gate.resolve();
  await namesUntil(run, "after");
  await run.signal("go");
  expect((await run.result()).output).toBe("done");
  expect(await namesUntil(run)).toEqual(["first", "before", "after", "last"]);
  await second.close();
});
