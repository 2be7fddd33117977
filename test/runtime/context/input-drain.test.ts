import { describe, expect, it } from "vitest";
import { Transcript, userMessage, type JsonValue, type RunContext } from "../../../src/kernel/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { agent, setUp, settle, simpleTool, text, until } from "../runtime-setup.ts";

/** An agent that reads its inputs as the test requests, after the test has reported that all input has arrived. */
function listener(drain: (ctx: RunContext) => Promise<JsonValue>) {
  return agent("listener", async (ctx) => {
    await ctx.waitForSignal("go");
    return drain(ctx);
  });
}

describe("an input to a run in progress", () => {
  it("J4: the inputs to a run in progress are read in order of arrival, one or all at a time, each of them once", async () => {
    const { runtime } = await setUp();
    const worker = listener(async (ctx) => [
      await ctx.steering(),
      await ctx.followUps({ mode: "all" }),
      await ctx.steering({ mode: "all" }),
      await ctx.steering({ mode: "all" }),
    ]);
    const run = await runtime.submit(worker, null);
    for (const input of ["a", { b: 1 }, "c"]) await run.steer(input);
    for (const input of ["later", "last"]) await run.followUp(input);
    await run.signal("go");
    expect((await run.result()).output).toEqual([["a"], ["later", "last"], [{ b: 1 }, "c"], []]);
  });

  it("an input to a run in progress is returned to one of two branches that read input at the same time", async () => {
    const { runtime } = await setUp();
    const worker = listener(async (ctx) => {
      const drain = (branch: RunContext) => branch.steering({ mode: "all" });
      const both = await ctx.parallel({ left: drain, right: drain });
      return [...both.left, ...both.right];
    });
    const run = await runtime.submit(worker, null);
    await run.steer("a");
    await run.signal("go");
    expect((await run.result()).output).toEqual(["a"]);
  });

  it("J4: input to a run in progress does not reach a model call that was in flight when its owner died", async () => {
    const { runtime, open, store, clock } = await setUp({ closeGraceMs: 0 });
    const asked: string[][] = [];
    const model = scriptedModel([{ text: "never comes", delayMs: 1_000_000 }, "fine", "done"], { clock });
    const worker = agent(
      "worker",
      async (ctx) => {
        const said: string[] = ["begin"];
        for (let turn = 0; turn < 2; turn++) {
          for (const each of await ctx.steering({ mode: "all" })) said.push(JSON.stringify(each));
          asked.push([...said]);
          await ctx.llm({ transcript: Transcript.of(said.map((each) => userMessage(each))) });
        }
        return said;
      },
      { models: { main: model } },
    );
    const { runId } = await runtime.submit(worker, null);
    await until(() => model.calls.length === 1);
    await runtime.close();
    for await (const { steps } of store.journal.read(runId)) expect(steps ?? []).toEqual([]);
    const other = await open();
    const run = await other.find(runId);
    await run?.steer("now");
    other.register(worker);
    expect((await run?.result())?.output).toEqual(["begin", '"now"']);
    expect(asked).toEqual([["begin"], ["begin"], ["begin", '"now"']]);
    await other.close();
  });

  it("J4: on replay, a task reads the same inputs at the same places, and later inputs at the next reading", async () => {
    const { runtime, clock } = await setUp({ suspendAfterMs: 100 });
    const lives: JsonValue[][] = [];
    const worker = agent("worker", async (ctx) => {
      const heard: JsonValue[] = [];
      lives.push(heard);
      heard.push(await ctx.steering({ mode: "all" }));
      await ctx.step("one", async () => 1);
      await ctx.waitForSignal("first");
      heard.push(await ctx.steering({ mode: "all" }));
      await ctx.waitForSignal("second");
      heard.push(await ctx.steering({ mode: "all" }));
      return heard;
    });
    const run = await runtime.submit(worker, null);
    await settle();
    await run.steer("a");
    await run.signal("first");
    await settle();
    await clock.advance(101);
    await run.steer("b");
    await settle();
    await clock.advance(101);
    await run.signal("second");
    expect((await run.result()).output).toEqual([[], ["a"], ["b"]]);
    expect(lives.length).toBeGreaterThan(1);
    for (const heard of lives) expect([[], ["a"], ["b"]].slice(0, heard.length)).toEqual(heard);
  });

  it("E4: an event that is emitted before an empty reading of input is emitted once, with the step that follows", async () => {
    const { runtime, clock, events } = await setUp({ suspendAfterMs: 100 });
    const worker = agent("worker", async (ctx) => {
      ctx.emitEvent({ type: "turn_start", data: { turn: 1 } });
      await ctx.steering();
      await ctx.step("one", async () => 1);
      await ctx.waitForSignal("go");
    });
    const run = await runtime.submit(worker, null);
    await settle();
    await clock.advance(101);
    await run.signal("go");
    await run.result();
    expect((await events(run.runId)).filter(({ type }) => type === "turn_start")).toHaveLength(1);
  });

  it("input to a run in progress does not end a wait; a waiting task receives it when it next reads input", async () => {
    const { runtime, clock } = await setUp({ suspendAfterMs: 100 });
    let woken = false;
    const worker = agent("worker", async (ctx) => {
      await ctx.waitForSignal("go");
      woken = true;
      return ctx.steering();
    });
    const run = await runtime.submit(worker, null);
    await settle();
    await clock.advance(101);
    await run.steer("hurry");
    await clock.advance(1_000);
    expect(woken).toBe(false);
    await run.signal("go");
    expect((await run.result()).output).toEqual(["hurry"]);
  });

  it("J5: input to a run in progress reaches a failed run when it is resumed", async () => {
    const { runtime } = await setUp();
    let healthy = false;
    const worker = agent("worker", async (ctx) => {
      await ctx.step("weak", async () => healthy || Promise.reject(new Error("down")));
      return ctx.steering();
    });
    const run = await runtime.submit(worker, null);
    expect((await run.result()).status).toBe("failed");
    await run.steer("try the other door");
    healthy = true;
    await run.resume();
    expect((await run.result()).output).toEqual(["try the other door"]);
  });

  it("input to a run in progress is delivered only to the root task", async () => {
    const { runtime } = await setUp();
    const child = agent("child", async (ctx) => ctx.steering());
    const parent = agent(
      "parent",
      async (ctx) => {
        await ctx.waitForSignal("go");
        const spawned = await ctx.spawn(child.id, null);
        if (spawned.kind === "refused") return null;
        return [(await ctx.join(spawned.handle)).output, await ctx.steering()];
      },
      { subAgents: [child] },
    );
    const run = await runtime.submit(parent, null);
    await run.steer("a");
    await run.signal("go");
    expect((await run.result()).output).toEqual([[], ["a"]]);
  });

  it("J8: input to a run in progress is kept when the task calls continueAsNew", async () => {
    const { runtime } = await setUp();
    const worker = agent("worker", async (ctx) => {
      if (ctx.input !== null) return [ctx.input, ...(await ctx.steering({ mode: "all" }))];
      await ctx.waitForSignal("go");
      const [first = null] = await ctx.steering();
      return ctx.continueAsNew(first);
    });
    const run = await runtime.submit(worker, null);
    await run.steer("a");
    await run.steer("b");
    await run.signal("go");
    expect((await run.result()).output).toEqual(["a", "b"]);
  });
});

it("C2: ctx.check() does not throw after a recorded tool call while a recorded model call remains", async () => {
  const { runtime, clock } = await setUp({ suspendAfterMs: 100 });
  const seen: string[] = [];
  const look = simpleTool({ name: "look", execute: async () => text("seen") });
  const worker = agent(
    "worker",
    async (ctx) => {
      for (const name of ["a", "b", "c"]) {
        ctx.check();
        await ctx.llm({ transcript: Transcript.of([userMessage(name)]) });
        await ctx.tool({ callId: "1", toolName: "look", input: {} });
        seen.push(name);
      }
      await ctx.waitForSignal("go");
    },
    { tools: [look], models: { main: scriptedModel(["one", "two", "three"]) } },
  );
  const run = await runtime.submit(worker, null);
  await until(() => seen.length === 3);
  await settle();
  await clock.advance(101);
  await run.cancel("enough");
  expect((await run.result()).status).toBe("cancelled");
  expect(seen).toEqual(["a", "b", "c", "a", "b", "c"]);
});
