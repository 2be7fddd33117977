import fc from "fast-check";
import { describe, expect, it, onTestFinished } from "vitest";
import {
  Fault,
  formatRunId,
  formatSessionId,
  HistoryRetention,
  type HostedAgent,
  type Event,
  type JsonValue,
  type Model,
  type Runtime,
} from "../../../src/kernel/index.ts";
import { Agent } from "../../../src/entries/index.ts";
import { createRuntime } from "../../../src/runtime/local-runtime.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { all } from "../../../src/testing/contracts/store-fixtures.ts";
import { agent, gate, setUp, settle, typesOf, until, type Bench } from "../runtime-setup.ts";
import { findRun } from "../find-run.ts";
import { connect, newPath } from "../stores/sqlite/store-files.ts";
import { removeStoresAfterEach, twoStores } from "../two-stores.ts";

const sessionId = formatSessionId("talk");

/** Reads its input queues only at its end. With the input `one`, it first waits for the signal `go`. */
function lateReader(): HostedAgent {
  return agent("late-reader", async (ctx) => {
    if (ctx.input === "one") await ctx.waitForSignal("go");
    return [ctx.input, await ctx.steering({ mode: "all" }), await ctx.followUps({ mode: "all" })];
  });
}

/** Reads its steering input once, then works until `work` resolves, and so misses input that arrives meanwhile. */
function earlyReader(work: { readonly promise: Promise<void> }): HostedAgent {
  return agent("early-reader", async (ctx) => {
    const steering = await ctx.steering({ mode: "all" });
    if (ctx.input === "one") await ctx.step("work", () => work.promise.then(() => null));
    return [ctx.input, steering];
  });
}

async function outputs({ runtime }: Bench): Promise<JsonValue[]> {
  const { runs } = await runtime.list({ sessionId });
  const handles = await Promise.all(runs.toReversed().map(({ runId }) => runtime.find(runId)));
  return Promise.all(handles.map(async (run) => (await run?.result())?.output ?? null));
}

describe("input to a child", () => {
  async function withChild(work: { readonly promise: Promise<void> }) {
    const bench = await setUp();
    const child = earlyReader(work);
    const parent = agent(
      "parent",
      async (ctx) => {
        const spawned = await ctx.spawn(child.id, "one");
        if (spawned.kind === "refused") return null;
        return (await ctx.join(spawned.handle)).output;
      },
      { subAgents: [child] },
    );
    const run = await bench.runtime.submit(parent, null);
    await settle();
    return { bench, run };
  }

  it("input to a child that completes without reading it is reported, and starts no run", async () => {
    const work = gate();
    const { bench, run } = await withChild(work);
    await run.steer("faster", "t1");
    work.resolve();
    expect((await run.result()).output).toEqual(["one", []]);
    const events = (await bench.events(run.runId)).filter(({ taskId }) => taskId === "t1");
    const unread = { type: "input_unread", data: { kind: "steer", input: "faster" } };
    expect(events.filter(({ type }) => type === "input_unread")).toMatchObject([unread]);
    expect((await bench.runtime.list({})).runs).toHaveLength(1);
    expect(await run.receivedInput()).toMatchObject([{ taskId: "t1", input: "faster", kind: "steer" }]);
  });

  it("J9: a child that an earlier version started replays without reading steering, and steer() refuses input for it", async () => {
    const path = await newPath();
    /**
     * `drains` is absent from the code of the first worker, because earlier versions did not record that a child reads
     * input.
     */
    const team = (drains: boolean): HostedAgent => {
      const child = agent("child", async (ctx) => {
        const inputs = drains ? await ctx.steering() : [];
        const done = await ctx.step("work", async () => "worked");
        return [inputs, done, (await ctx.waitForSignal("go")) ?? null];
      });
      const run: HostedAgent["run"] = async (ctx) => {
        const spawned = await ctx.spawn(child.id, null);
        return spawned.kind === "refused" ? null : (await ctx.join(spawned.handle)).output;
      };
      return agent("parent", run, { subAgents: [child] });
    };
    const before = await createRuntime({ store: `sqlite:${path}`, suspendAfterMs: 0 });
    const { runId } = await before.submit(team(false), null);
    await until(async () => (await before.list({})).runs.every(({ status }) => status === "waiting"));
    await before.close();
    connect(path).exec("UPDATE commits SET body = replace(body, '\"takesInput\":true,', '')");
    const after = await createRuntime({ store: `sqlite:${path}` });
    onTestFinished(() => after.close());
    after.register(team(true));
    const run = await findRun(after, { runId });
    await expect(run.steer("faster", "t1")).rejects.toThrow(/an earlier version of reeve started it/);
    await run.signal("go", 5, "t1");
    expect((await run.result()).output).toEqual([[], "worked", 5]);
  });

  it("input to a child that has ended or does not exist is refused", async () => {
    const work = gate();
    work.resolve();
    const { run } = await withChild(work);
    await run.result();
    await expect(run.steer("late", "t1")).rejects.toThrow(/task t1 .* has ended \(completed\)/);
    await expect(run.followUp("lost", "t9")).rejects.toThrow(/task t9 .* does not exist/);
    await expect(run.steer("odd", "child")).rejects.toThrow(/child/);
  });
});

describe("S5: input that a run has not read when it ends", () => {
  it("S5: input that a run has not read starts a run with the metadata of its own submission, and the first run lists it", async () => {
    const bench = await setUp();
    const work = gate();
    const reader = earlyReader(work);
    const run = await bench.runtime.submit(reader, "one", { sessionId, metadata: { id: "a" } });
    await settle();
    const own = { sessionId, runId: formatRunId("second"), metadata: { id: "b" } };
    const taker = await bench.runtime.submit(reader, "two", { ...own, whenBusy: "steer" });
    expect(taker.runId).toBe(run.runId);
    const sent = { kind: "steer", input: "two", submittedAs: own.runId, metadata: { id: "b" } };
    expect(await run.receivedInput()).toMatchObject([sent]);
    work.resolve();
    await run.result();
    const next = await findRun(bench.runtime, own);
    expect((await next.summary()).metadata).toEqual({ id: "b" });
    expect(await run.receivedInput()).toMatchObject([{ ...sent, seq: expect.any(Number) }]);
  });

  it("S5: input that a run has not read starts a new run in the session, in the commit that completes the first run", async () => {
    const bench = await setUp();
    const work = gate();
    const run = await bench.runtime.submit(earlyReader(work), "one", { sessionId, userId: "ann" });
    await settle();
    await run.steer("two");
    await run.followUp("three");
    work.resolve();
    expect((await run.result()).output).toEqual(["one", []]);
    await until(async () => (await bench.runtime.list({ sessionId })).runs.every((each) => each.endedAt));
    // The first input starts the next run. The second input steers that run, which reads it or leaves it to a third run.
    expect((await outputs(bench)).flat(3)).toEqual(expect.arrayContaining(["one", "two", "three"]));
    const events = await bench.events(run.runId);
    const carryOvers = events.filter(
      (event): event is Event<"run_carry_over"> => event.type === "run_carry_over",
    );
    expect(carryOvers.map(({ data }) => data.kind)).toEqual(["steer", "follow_up"]);
    expect(typesOf(events).at(-1)).toBe("run_end");
    const next = await bench.runtime.list({ sessionId });
    expect(next.runs.at(-2)).toMatchObject({ runId: carryOvers[0]?.data.runId, userId: "ann" });
  });

  it("S5: input that a run has not read starts a run with the run id that the caller of submit() chose for it", async () => {
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

  it("S5: input that arrives after the end of a run starts a new run, and run_end stays the last event of the ended run", async () => {
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

  it("S5: input that a run has not read becomes steering of the run that is then active in the session", async () => {
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

  it("S5: input that a run has not read when it ends stays with a cancelled run, which reads it after a resume", async () => {
    const { runtime } = await setUp();
    const run = await runtime.submit(lateReader(), "one", { sessionId });
    await settle();
    await run.steer("two");
    await run.cancel("enough");
    expect((await run.result()).status).toBe("cancelled");
    expect((await runtime.list({ sessionId })).runs).toHaveLength(1);
    await run.resume();
    await run.signal("go");
    expect((await run.result()).output).toEqual(["one", ["two"], []]);
  });

  it("S5: unread input that starts another run is erased from the journals of both runs with retention NONE", async () => {
    const { runtime, store } = await setUp();
    const work = gate();
    const options = { sessionId, retention: HistoryRetention.NONE };
    const run = await runtime.submit(earlyReader(work), "one", options);
    await settle();
    await run.steer("a secret");
    work.resolve();
    await run.result();
    await until(async () => (await runtime.list({ sessionId })).runs.length === 2);
    const [next] = (await runtime.list({ sessionId })).runs;
    if (next === undefined) throw new Error("no input was carried over");
    await (await runtime.find(next.runId))?.result();
    for (const runId of [run.runId, next.runId]) {
      expect((await store.events.verify(runId)).ok).toBe(true);
      // Retention keeps the outcome, because it is the answer to the caller.
      const commits = (await all(store.journal.read(runId))).map(({ tasks, events, ...commit }) => ({
        ...commit,
        tasks: tasks?.filter(({ type }) => type !== "end"),
        events: events?.filter(({ type }) => type !== "task_end"),
      }));
      expect(JSON.stringify(commits)).not.toContain("a secret");
    }
  });

  it("S5: input that arrives during the last model call of an agent is answered in a separate run", async () => {
    const bench = await setUp();
    const isAsked = gate();
    const mayAnswer = gate();
    const script = scriptedModel(["first", "second", "third"]);
    let calls = 0;
    const model: Model = {
      provider: "slow",
      modelId: "script",
      stream: (request) => script.stream(request),
      generate: async (request) => {
        if (++calls === 2) await (isAsked.resolve(), mayAnswer.promise);
        return script.generate(request);
      },
    };
    const solo = new Agent({ name: "solo", model, maxTurns: 1 });
    const one = await bench.runtime.submit(solo, "hello", { sessionId });
    await one.result();
    const two = await bench.runtime.submit(solo, "again", { sessionId });
    await isAsked.promise;
    await bench.runtime.submit(solo, "and again", { sessionId, whenBusy: "steer" });
    mayAnswer.resolve();
    await two.result();
    await until(async () => (await bench.runtime.list({ sessionId })).runs.length === 3);
    expect(await outputs(bench)).toEqual(["first", "second", "third"]);
    const entries = await bench.store.sessions.read(sessionId);
    const roles = entries.map(({ entry }) => (entry.type === "message" ? entry.message.role : entry.type));
    expect(roles).toEqual(["user", "assistant", "user", "assistant", "user", "assistant"]);
  });
});

describe("a mailbox message to a run that has ended", () => {
  it("a mailbox message to a run that has ended is consumed without an effect, and the run is released again", async () => {
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

  it("a mailbox message between the last commit and the release of a completed run does not prevent the release", async () => {
    const { runtime, store } = await setUp();
    const quick = agent("quick", async () => "done");
    const endCommitted = gate();
    const append = store.journal.append.bind(store.journal);
    let runId: Event["runId"] | undefined;
    store.journal.append = async (lease, commit, submissions) => {
      const stored = await append(lease, commit, submissions);
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
        endCommitted.resolve();
      }
      return stored;
    };
    const run = await runtime.submit(quick, null);
    await endCommitted.promise;
    await until(async () => (await store.mailbox.read(run.runId)).length === 0);
    await settle();
    expect((await runtime.list()).runs[0]?.status).toBe("completed");
    expect(await runtime.collect({ endedBefore: 1e15 })).toBe(1);
  });
});

it("S5: every input of a session is read by exactly one run, at whatever time it arrives and however often workers restart", async () => {
  const anyAction = fc.constantFrom(
    "submit",
    "steer",
    "followUp",
    "steer first run",
    "restart",
    "signal",
    "wait",
  );
  await fc.assert(
    fc.asyncProperty(
      fc.array(anyAction, { maxLength: 14 }),
      fc.integer({ min: 0, max: 2 }),
      async (actions, drains) => {
        const bench = await setUp({ suspendAfterMs: 100, closeGraceMs: 0 });
        const talker = (): HostedAgent =>
          agent("talker", async (ctx) => {
            const inputs: JsonValue[] = [ctx.input];
            for (let turn = 0; turn < drains; turn++) {
              await ctx.waitForSignal("go");
              inputs.push(...(await ctx.steering()), ...(await ctx.followUps({ mode: "all" })));
            }
            await ctx.step("work", async () => null);
            return inputs;
          });
        /** One agent object per worker, as in separate processes. */
        const agents = new Map<Runtime, HostedAgent>();
        const hosted = (by: Runtime): HostedAgent => {
          const known = agents.get(by) ?? talker();
          agents.set(by, known);
          return known;
        };
        let { runtime } = bench;
        let workers = 1;
        const sent: string[] = [];
        const nextInput = (): string => {
          const next = String(sent.length);
          sent.push(next);
          return next;
        };
        const first = await runtime.submit(hosted(runtime), nextInput(), { sessionId });
        const newest = async () =>
          (await runtime.find((await runtime.list({ sessionId })).runs[0]?.runId ?? first.runId)) ?? first;
        for (const action of actions) {
          if (action === "submit")
            await runtime.submit(hosted(runtime), nextInput(), { sessionId, whenBusy: "steer" });
          if (action === "steer") await (await newest()).steer(nextInput());
          if (action === "followUp") await (await newest()).followUp(nextInput());
          if (action === "steer first run") await (await findRun(runtime, first)).steer(nextInput());
          if (action === "signal")
            await (await newest()).signal("go").catch((error: unknown) => {
              // The newest run has ended.
              if (Fault.from(error).code !== "not_found") throw error;
            });
          if (action === "wait") await bench.clock.advance(150);
          if (action === "restart") {
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
          const mail = await Promise.all(runs.map(async ({ runId }) => bench.store.mailbox.read(runId)));
          return runs.every(({ endedAt }) => endedAt !== null) && mail.flat().length === 0;
        });
        const { runs } = await runtime.list({ sessionId, limit: 100 });
        const results = await Promise.all(
          runs.map(async ({ runId }) => (await runtime.find(runId))?.result()),
        );
        const read = results.flatMap((result) => (result?.output ?? []) as string[]);
        expect(read.toSorted()).toEqual(sent.toSorted());
        expect(bench.errors).toEqual([]);
        await runtime.close();
      },
    ),
    { numRuns: 200 },
  );
});

removeStoresAfterEach();

describe.each(twoStores)("S5: input that a run in a %s store reads too late", (_name, prepare) => {
  it.each(["steer", "submit"] as const)(
    "S5: input that a run reads too late starts a second run, and both complete (sent by %s)",
    async (how) => {
      const runtime = await createRuntime({ store: await (await prepare())() });
      onTestFinished(() => runtime.close());
      const listener = agent("listener", async (ctx) => {
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
});
