import fc from "fast-check";
import { describe, expect, it, onTestFinished } from "vitest";
import {
  formatRunId,
  formatSessionId,
  HistoryRetention,
  type HostedAgent,
  type Event,
  type JsonValue,
  type Model,
  type Runtime,
} from "../../../src/kernel/index.ts";
import { Agent } from "../../../src/index.ts";
import { createRuntime } from "../../../src/runtime/create-runtime.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { all } from "../../../src/testing/store-fixtures.ts";
import { agent, gate, setUp, settle, typesOf, until, type Bench } from "../runtime-setup.ts";
import { foundRun } from "../find-run.ts";
import { removeStoresAfterEach, twoStores } from "../two-stores.ts";

const sessionId = formatSessionId("talk");

/** Never listens; its first run ends when told, the others with what they were given. */
function deaf(): HostedAgent {
  return agent("deaf", async (ctx) => {
    if (ctx.input === "one") await ctx.waitForSignal("go");
    return [ctx.input, await ctx.steering({ mode: "all" }), await ctx.followUps({ mode: "all" })];
  });
}

/** Says something between the last drain and the end. */
function hasty(last: { readonly promise: Promise<void> }): HostedAgent {
  return agent("hasty", async (ctx) => {
    const heard = await ctx.steering({ mode: "all" });
    if (ctx.input === "one") await ctx.step("last words", () => last.promise.then(() => null));
    return [ctx.input, heard];
  });
}

async function outputs({ runtime }: Bench): Promise<JsonValue[]> {
  const { runs } = await runtime.list({ sessionId });
  const handles = await Promise.all(runs.toReversed().map(({ runId }) => runtime.find(runId)));
  return Promise.all(handles.map(async (run) => (await run?.result())?.output ?? null));
}

describe("what is said to a run that hears no more (S5)", () => {
  it("starts a run of its own in the session when the run completes, in the commit that ends it", async () => {
    const bench = await setUp();
    const last = gate();
    const run = await bench.runtime.submit(hasty(last), "one", { sessionId, userId: "ann" });
    await settle();
    await run.steer("two");
    await run.followUp("three");
    last.resolve();
    expect((await run.result()).output).toEqual(["one", []]);
    await until(async () => (await bench.runtime.list({ sessionId })).runs.every((each) => each.endedAt));
    // The first starts it; what else there is was said to that one, and it was heard or started the next.
    expect((await outputs(bench)).flat(3)).toEqual(expect.arrayContaining(["one", "two", "three"]));
    const events = await bench.events(run.runId);
    const carried = events.filter(
      (event): event is Event<"run_carry_over"> => event.type === "run_carry_over",
    );
    expect(carried.map(({ data }) => data.kind)).toEqual(["steer", "follow_up"]);
    expect(typesOf(events).at(-1)).toBe("run_end");
    const next = await bench.runtime.list({ sessionId });
    expect(next.runs.at(-2)).toMatchObject({ runId: carried[0]?.data.runId, userId: "ann" });
  });

  it("keeps the id under which it was submitted, when it was", async () => {
    const { runtime } = await setUp();
    const listener = agent("listener", async (ctx) => {
      if (ctx.input === "one") await ctx.waitForSignal("go");
      return ctx.input;
    });
    const first = await runtime.submit(listener, "one", { sessionId });
    await settle();
    const runId = formatRunId("mine");
    expect((await runtime.submit(listener, "two", { sessionId, runId })).runId).toBe(first.runId);
    await first.signal("go");
    expect((await first.result()).output).toBe("one");
    expect((await (await runtime.find(runId))?.result())?.output).toBe("two");
  });

  it("is not lost when it comes after the end: a completed run wakes for it, and its log ends as before", async () => {
    const bench = await setUp();
    const echo = agent("echo", async (ctx) => ctx.input);
    const run = await bench.runtime.submit(echo, "one", { sessionId });
    await run.result();
    await settle();
    await run.followUp("two");
    await until(async () => (await bench.runtime.list({ sessionId })).runs.length === 2);
    expect(await outputs(bench)).toEqual(["one", "two"]);
    expect(typesOf(await bench.events(run.runId)).at(-1)).toBe("run_end");
  });

  it("goes to the run that is under way in the session by then", async () => {
    const bench = await setUp();
    const work = gate();
    const clerk = agent("clerk", async (ctx) => {
      if (ctx.input === "two") await ctx.step("work", () => work.promise.then(() => null));
      return [ctx.input, await ctx.steering()];
    });
    const first = await bench.runtime.submit(clerk, "one", { sessionId });
    await first.result();
    const second = await bench.runtime.submit(clerk, "two", { sessionId });
    await settle();
    await first.steer("three");
    await settle();
    work.resolve();
    expect((await second.result()).output).toEqual(["two", ["three"]]);
    expect((await bench.runtime.list({ sessionId })).runs).toHaveLength(2);
  });

  it("stays with a run that did not complete, which hears it when it is resumed", async () => {
    const { runtime } = await setUp();
    const run = await runtime.submit(deaf(), "one", { sessionId });
    await settle();
    await run.steer("two");
    await run.cancel("enough");
    expect((await run.result()).status).toBe("cancelled");
    expect((await runtime.list({ sessionId })).runs).toHaveLength(1);
    await run.signal("go");
    await run.resume();
    expect((await run.result()).output).toEqual(["one", ["two"], []]);
  });

  it("keeps no more of it than the run kept (retention NONE)", async () => {
    const { runtime, store } = await setUp();
    const last = gate();
    const options = { sessionId, retention: HistoryRetention.NONE };
    const run = await runtime.submit(hasty(last), "one", options);
    await settle();
    await run.steer("a secret");
    last.resolve();
    await run.result();
    await until(async () => (await runtime.list({ sessionId })).runs.length === 2);
    const [next] = (await runtime.list({ sessionId })).runs;
    if (next === undefined) throw new Error("nothing was carried over");
    await (await runtime.find(next.runId))?.result();
    for (const runId of [run.runId, next.runId]) {
      expect((await store.events.verify(runId)).ok).toBe(true);
      // The outcome is the answer of whoever asked, and stays.
      const commits = (await all(store.journal.read(runId))).map(({ tasks, events, ...commit }) => ({
        ...commit,
        tasks: tasks?.filter(({ type }) => type !== "end"),
        events: events?.filter(({ type }) => type !== "task_end"),
      }));
      expect(JSON.stringify(commits)).not.toContain("a secret");
    }
  });

  it("is answered by ReAct after all, also when it comes while the last answer is being written", async () => {
    const bench = await setUp();
    const asked = gate();
    const answer = gate();
    const script = scriptedModel(["first", "second", "third"]);
    let calls = 0;
    const model: Model = {
      provider: "slow",
      modelId: "script",
      stream: (request) => script.stream(request),
      generate: async (request) => {
        if (++calls === 2) await (asked.resolve(), answer.promise);
        return script.generate(request);
      },
    };
    const solo = new Agent({ name: "solo", model, maxTurns: 1 });
    const one = await bench.runtime.submit(solo, "hello", { sessionId });
    await one.result();
    const two = await bench.runtime.submit(solo, "again", { sessionId });
    await asked.promise;
    await bench.runtime.submit(solo, "and again", { sessionId, whenBusy: "steer" });
    answer.resolve();
    await two.result();
    await until(async () => (await bench.runtime.list({ sessionId })).runs.length === 3);
    expect(await outputs(bench)).toEqual(["first", "second", "third"]);
    const entries = await bench.store.sessions.read(sessionId);
    const said = entries.map(({ entry }) => (entry.type === "message" ? entry.message.role : entry.type));
    expect(said).toEqual(["user", "assistant", "user", "assistant", "user", "assistant"]);
  });
});

describe("an order to a run that has ended", () => {
  it("does not keep the run with its worker, and changes nothing", async () => {
    const { runtime, store, errors, events } = await setUp();
    const quick = agent("quick", async () => "done");
    const run = await runtime.submit(quick, null);
    await run.result();
    const before = await events(run.runId);
    await run.cancel("too late");
    await run.pause();
    await run.resume();
    await run.topUp({ maxTokens: 1 });
    await run.signal("go");
    await until(async () => (await store.mailbox.read(run.runId)).length === 0);
    await settle();
    expect((await run.result()).status).toBe("completed");
    expect(await events(run.runId)).toEqual(before);
    expect(await runtime.collect({ endedBefore: 1e15 })).toBe(1);
    expect(errors).toEqual([]);
  });

  it("lets go of a run that is cancelled between its end and its being let go of", async () => {
    const { runtime, store } = await setUp();
    const quick = agent("quick", async () => "done");
    const ended = gate();
    const append = store.journal.append.bind(store.journal);
    let runId: Event["runId"] | undefined;
    store.journal.appendNow = () => undefined;
    store.journal.append = async (lease, commit, submissions) => {
      const standing = await append(lease, commit, submissions);
      if (commit.events?.at(-1)?.type === "run_end" && runId === undefined) {
        ({ runId } = lease);
        await store.mailbox.put({
          id: "late",
          runId,
          from: "ann",
          at: 0,
          body: { type: "cancel", taskId: "t0" as never, reason: "too late" },
        });
        await settle();
        ended.resolve();
      }
      return standing;
    };
    const run = await runtime.submit(quick, null);
    await ended.promise;
    await until(async () => (await store.mailbox.read(run.runId)).length === 0);
    await settle();
    expect((await runtime.list()).runs[0]?.status).toBe("completed");
    expect(await runtime.collect({ endedBefore: 1e15 })).toBe(1);
  });
});

it("S5: of all that is said in a session, whenever and however, each is heard once, also when workers come and go", async () => {
  const act = fc.constantFrom("submit", "steer", "followUp", "say late", "restart", "go on", "wait");
  await fc.assert(
    fc.asyncProperty(
      fc.array(act, { maxLength: 14 }),
      fc.integer({ min: 0, max: 2 }),
      async (acts, drains) => {
        const bench = await setUp({ suspendAfterMs: 100, closeGraceMs: 0 });
        const talker = (): HostedAgent =>
          agent("talker", async (ctx) => {
            const own: JsonValue[] = [ctx.input];
            for (let turn = 0; turn < drains; turn++) {
              await ctx.waitForSignal("go");
              own.push(...(await ctx.steering()), ...(await ctx.followUps({ mode: "all" })));
            }
            await ctx.step("work", async () => null);
            return own;
          });
        /** One for each worker, as another process would have. */
        const agents = new Map<Runtime, HostedAgent>();
        const hosted = (by: Runtime): HostedAgent => {
          const known = agents.get(by) ?? talker();
          agents.set(by, known);
          return known;
        };
        let { runtime } = bench;
        let workers = 1;
        const said: string[] = [];
        const word = (): string => {
          const next = String(said.length);
          said.push(next);
          return next;
        };
        const first = await runtime.submit(hosted(runtime), word(), { sessionId });
        const newest = async () =>
          (await runtime.find((await runtime.list({ sessionId })).runs[0]?.runId ?? first.runId)) ?? first;
        for (const each of acts) {
          if (each === "submit")
            await runtime.submit(hosted(runtime), word(), { sessionId, whenBusy: "steer" });
          if (each === "steer") await (await newest()).steer(word());
          if (each === "followUp") await (await newest()).followUp(word());
          if (each === "say late") await (await foundRun(runtime, first)).steer(word());
          if (each === "go on") await (await newest()).signal("go");
          if (each === "wait") await bench.clock.advance(150);
          if (each === "restart") {
            await runtime.close();
            await bench.store.leases.dismiss(`worker-${workers++}`);
            runtime = await bench.open();
            runtime.register(hosted(runtime));
          }
        }
        await until(async () => {
          await bench.clock.advance(150);
          const { runs } = await runtime.list({ sessionId, limit: 100 });
          for (const { runId, endedAt } of runs)
            if (endedAt === null) await (await runtime.find(runId))?.signal("go");
          const mail = await Promise.all(runs.map(({ runId }) => bench.store.mailbox.read(runId)));
          return runs.every(({ endedAt }) => endedAt !== null) && mail.flat().length === 0;
        });
        const { runs } = await runtime.list({ sessionId, limit: 100 });
        const results = await Promise.all(
          runs.map(async ({ runId }) => (await runtime.find(runId))?.result()),
        );
        const heard = results.flatMap((result) => (result?.output ?? []) as string[]);
        expect(heard.toSorted()).toEqual(said.toSorted());
        expect(bench.errors).toEqual([]);
        await runtime.close();
      },
    ),
    { numRuns: 200 },
  );
}, 60_000);

removeStoresAfterEach();

describe.each(twoStores)(
  "what is said too late to a run in a store of its own: %s (S5)",
  (_name, prepare) => {
    it.each(["steer", "submit"] as const)(
      "starts a run, and the one that ended has ended (%s)",
      async (how) => {
        const runtime = await createRuntime({ store: await (await prepare())() });
        onTestFinished(() => runtime.close());
        const listener = agent("deaf", async (ctx) => {
          if (ctx.input === "one") await ctx.waitForSignal("go");
          return ctx.input;
        });
        const run = await runtime.submit(listener, "one", { sessionId });
        if (how === "steer") await run.steer("two");
        else await runtime.submit(listener, "two", { sessionId, whenBusy: "steer" });
        await run.signal("go");
        await run.result();
        await until(async () => {
          const { runs } = await runtime.list({ sessionId });
          return runs.length === 2 && runs.every(({ status }) => status === "completed");
        });
        const { runs } = await runtime.list({ sessionId });
        expect(runs.map(({ runId }) => runId)).toContain(run.runId);
      },
    );
  },
);
