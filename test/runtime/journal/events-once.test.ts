import { describe, expect, it } from "vitest";
import {
  formatRunId,
  type Event,
  type EventType,
  type Message,
  type RunId,
} from "../../../src/kernel/index.ts";
import { agent, gate, setUp, settle, until } from "../runtime-setup.ts";

function ofTypes<Type extends EventType>(events: readonly Event[], ...types: readonly Type[]) {
  return events.flatMap((event) =>
    (types as readonly string[]).includes(event.type) ? [event as Event<Type>] : [],
  );
}

describe("R13: the event log of a task that is replayed several times", () => {
  it("R13: a task that is replayed has one task_suspend and one task_wake per wait, with the names and what ended the wait", async () => {
    const { runtime, clock, events } = await setUp({ suspendAfterMs: 100 });
    const worker = agent("worker", async (ctx) => {
      await ctx.waitForSignal("go");
      await ctx.waitForSignal("never", { timeoutMs: 5_000 });
    });
    const run = await runtime.submit(worker, null);
    for (let round = 0; round < 3; round++) {
      await settle();
      await clock.advance(200);
      // No task waits for this signal: the run is claimed, replayed and released again.
      await run.signal("other");
    }
    await run.signal("go");
    const at = clock.now();
    await settle();
    await clock.advance(10_000);
    await run.result();
    const waits = ofTypes(await events(run.runId), "task_suspend", "task_wake").map(({ data }) => data);
    expect(waits).toEqual([
      { waitsFor: ["signal go"], until: null },
      { by: "signal go" },
      { waitsFor: ["signal never"], until: at + 5_000 },
      { by: "time" },
    ]);
  });

  it("R13: a task that is replayed has each event once, and the events before parallel() before those of its branches", async () => {
    const { runtime, clock, events } = await setUp({ suspendAfterMs: 100 });
    const turn = (number: number) => ({ type: "turn_start", data: { turn: number } }) as const;
    const worker = agent("worker", async (ctx) => {
      ctx.emitEvent(turn(1));
      await ctx.parallel({
        idle: async () => "no step",
        left: async (branch) => {
          branch.emitEvent(turn(2));
          await branch.waitForSignal("a");
          branch.emitEvent(turn(3));
        },
        right: (branch) => branch.waitForSignal("b"),
      });
      ctx.emitEvent(turn(4));
      await ctx.parallel({ only: (branch) => branch.waitForSignal("c") });
    });
    const run = await runtime.submit(worker, null);
    for (const name of ["b", "a", "c"]) {
      await settle();
      await clock.advance(200);
      await run.signal(name);
    }
    await run.result();
    const turns = ofTypes(await events(run.runId), "turn_start").map(({ data }) => data.turn);
    expect(turns).toEqual([1, 2, 3, 4]);
  });

  it("R13: a replayed task has one task_suspend for all branches that wait, and a second one after a branch has continued", async () => {
    const { runtime, clock, events, store } = await setUp({ suspendAfterMs: 100 });
    const worker = agent("worker", async (ctx) => {
      await ctx.parallel({ left: (b) => b.waitForSignal("a"), right: (b) => b.waitForSignal("b") });
    });
    const run = await runtime.submit(worker, null);
    await settle();
    await run.signal("a");
    await settle();
    await clock.advance(101);
    // The run is suspended, so no worker can claim it.
    expect(await store.leases.claim({ workerId: "other", limit: 1, now: clock.now() })).toEqual([]);
    await run.signal("b");
    await run.result();
    const waits = ofTypes(await events(run.runId), "task_suspend", "task_wake").map(({ data }) => data);
    expect(waits).toEqual([
      { waitsFor: ["signal a", "signal b"], until: null },
      { by: "signal a" },
      { waitsFor: ["signal b"], until: null },
      { by: "signal b" },
    ]);
  });

  it("R13: the event log of a replayed task names the cancellation as the end of a wait", async () => {
    const { runtime, events } = await setUp();
    const run = await runtime.submit(
      agent("worker", async (ctx) => void (await ctx.waitForSignal("go"))),
      null,
    );
    await settle();
    await run.cancel();
    await run.result();
    expect(ofTypes(await events(run.runId), "task_wake").map(({ data }) => data)).toEqual([{ by: "cancel" }]);
  });

  it("R13: a replayed task has one mail_receive per message, at the start of the task and whenever it reads messages", async () => {
    const { runtime, store, clock, events } = await setUp({ suspendAfterMs: 100 });
    const runs: RunId[] = [];
    const worker = agent("worker", async (ctx, inbox) => {
      runs.push(ctx.facts.runId);
      await ctx.waitForSignal("go");
      await inbox.drain();
      await ctx.waitForSignal("again");
      await inbox.drain();
    });
    const message = (id: string): Message => ({ id, from: null, to: worker.id, body: null, sentAt: 0 });
    await store.inbox.deliver(message("m1"));
    runtime.register(worker);
    await settle();
    await store.inbox.deliver(message("m2"));
    const [runId = formatRunId("missing")] = runs;
    const run = await runtime.find(runId);
    await run?.signal("go");
    await settle();
    await clock.advance(200);
    await run?.signal("again");
    await run?.result();
    expect(ofTypes(await events(runId), "mail_receive").map(({ data }) => data)).toEqual([
      { messageId: "m1", from: null },
      { messageId: "m2", from: null },
    ]);
    expect(await store.inbox.waiting([worker.id])).toEqual([]);
  });

  it("R13: the event log has a mail_dead_letter in the run whose failure was the last allowed delivery", async () => {
    const { runtime, store, clock, events } = await setUp({ runRetry: { maxRetries: 0 } });
    const runs: RunId[] = [];
    const worker = agent("worker", async (ctx) => {
      runs.push(ctx.facts.runId);
      throw new Error("cannot read it");
    });
    await store.inbox.deliver({ id: "m1", from: null, to: worker.id, body: null, sentAt: 0 });
    runtime.register(worker);
    await settle();
    await clock.advance(5_000);
    await until(async () => (await store.inbox.deadLetters(worker.id)).length === 1);
    await clock.advance(1_000);
    expect(runs).toHaveLength(3);
    const deadLetters = [];
    for (const runId of runs)
      deadLetters.push(ofTypes(await events(runId), "mail_dead_letter").map(({ data }) => data));
    expect(deadLetters).toEqual([[], [], [{ messageId: "m1", deliveries: 3 }]]);
  });

  it("R13, O8: a failed task has one agent_error before its task_end, and a cancelled task has none", async () => {
    const { runtime, events, clock } = await setUp({ runRetry: { maxRetries: 1, baseDelayMs: 10 } });
    const broken = agent("broken", async () => {
      throw new Error("a bug");
    });
    const failed = await runtime.submit(broken, null);
    await settle();
    await clock.advance(1_000);
    expect((await failed.result()).status).toBe("failed");
    const types = (await events(failed.runId)).map(({ type }) => type);
    expect(types.slice(-3)).toEqual(["agent_error", "task_end", "run_end"]);
    expect(types.filter((type) => type === "agent_error")).toHaveLength(1);
    const never = gate();
    const stopped = await runtime.submit(
      agent("stopped", async (ctx) => ctx.step("hangs", async () => (await never.promise, null))),
      null,
    );
    await settle();
    await stopped.cancel();
    never.resolve();
    await stopped.result();
    expect(ofTypes(await events(stopped.runId), "agent_error")).toEqual([]);
  });
});
