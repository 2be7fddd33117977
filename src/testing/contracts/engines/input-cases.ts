import type { Event, HostedAgent, RunHandle } from "../../../kernel/index.ts";
import {
  agentOf,
  casesOf,
  eventOf,
  eventsOf,
  runIn,
  spawnChild,
  suspended,
  type EngineHarness,
} from "./engine-world.ts";

/** Returns an agent that waits for a signal, and then returns the content of its queues. */
function lateReader(): HostedAgent {
  return agentOf("reader", async (ctx) => {
    await ctx.waitForSignal("go");
    return [await ctx.steering({ mode: "all" }), await ctx.followUps({ mode: "all" })];
  });
}

async function withdrawals(run: RunHandle): Promise<readonly Event<"input_withdraw">["data"][]> {
  const events = await eventsOf(run);
  return events.flatMap((event) => (event.type === "input_withdraw" ? [event.data] : []));
}

/** Cases about input that a caller withdraws. */
export function inputCases(harness: EngineHarness): void {
  const { expect } = harness;
  const declare = casesOf(harness);

  declare("withdraw: a task never reads an input that was withdrawn in time", async (world) => {
    const runtime = await world.open();
    const run = await runtime.submit(lateReader(), null);
    await eventOf(run, "task_suspend");
    const [first, second] = [await run.steer("faster"), await run.steer("slower")];
    const later = await run.followUp("then rest");
    await eventOf(run, "run_steer", 3);
    const queued = await run.queuedInput();
    expect(queued.map(({ inputId, kind, input }) => [inputId, kind, input])).toEqual([
      [first, "steer", "faster"],
      [second, "steer", "slower"],
      [later, "follow_up", "then rest"],
    ]);
    expect(await run.as("ada").withdrawInput(first)).toBe(true);
    expect(await run.withdrawInput(later)).toBe(true);
    expect((await run.queuedInput()).map(({ inputId }) => inputId)).toEqual([second]);
    await run.signal("go");
    expect((await run.result()).output).toEqual([["slower"], []]);
    const gone = await withdrawals(run);
    expect(gone.map(({ inputId }) => inputId)).toEqual([first, later]);
    expect(gone[0]?.by).toBe("ada");
  });

  declare(
    "P1: an input that is sent twice under one id is read once, also if the second one arrives after the end",
    async (world) => {
      const runtime = await world.open();
      const run = await runtime.submit(lateReader(), null);
      await eventOf(run, "task_suspend");
      const first = await run.steer("faster", { id: "first" });
      expect(await run.steer("faster", { id: "first" })).toBe(first);
      await eventOf(run, "run_steer");
      expect(await run.steer("faster", { id: "first" })).toBe(first);
      const refused = { code: "already_exists" };
      await expect(run.steer("slower", { id: "first" })).rejects.toMatchObject(refused);
      await expect(run.followUp("faster", { id: "first" })).rejects.toMatchObject(refused);
      await run.followUp("then rest", { id: "second" });
      expect((await run.queuedInput()).map(({ input }) => input)).toEqual(["faster", "then rest"]);
      await run.signal("go");
      expect((await run.result()).output).toEqual([["faster"], ["then rest"]]);
      expect(await run.steer("faster", { id: "first" })).toBe(first);
      expect((await run.receivedInput()).map(({ input }) => input)).toEqual(["faster", "then rest"]);
    },
  );

  declare(
    "withdraw: withdrawInput() returns false for an input that the task has read, also after the end of the run",
    async (world) => {
      const runtime = await world.open();
      const worker = agentOf("worker", async (ctx) => {
        await ctx.waitForSignal("go");
        const read = await ctx.steering({ mode: "all" });
        await ctx.waitForSignal("end");
        return [...read];
      });
      const run = await runtime.submit(worker, null);
      await eventOf(run, "task_suspend");
      const inputId = await run.steer("faster");
      await run.signal("go");
      await eventOf(run, "task_suspend", 2);
      expect(await run.withdrawInput(inputId)).toBe(false);
      await run.signal("end");
      expect((await run.result()).output).toEqual(["faster"]);
      expect(await run.withdrawInput(inputId)).toBe(false);
      expect(await withdrawals(run)).toEqual([]);
      await expect(run.withdrawInput("unknown")).rejects.toMatchObject({ code: "not_found" });
    },
  );

  declare(
    "withdraw: two processes that withdraw the same input get the same answer, and one event records it",
    async (world) => {
      const runtimes = [await world.open("one"), await world.open("two")] as const;
      const reader = lateReader();
      for (const runtime of runtimes) runtime.register(reader);
      const run = await runtimes[0].submit(reader, null);
      await eventOf(run, "task_suspend");
      const inputId = await run.steer("faster");
      const handles = await Promise.all(runtimes.map((runtime) => runIn(runtime, run)));
      expect(await Promise.all(handles.map((handle) => handle.withdrawInput(inputId)))).toEqual([true, true]);
      await run.signal("go");
      expect((await run.result()).output).toEqual([[], []]);
      expect((await withdrawals(run)).map((each) => each.inputId)).toEqual([inputId]);
    },
  );

  declare(
    "withdraw: an input of a child stays withdrawn when the next worker resumes the child, and the answer stays the same",
    async (world) => {
      const team = (): HostedAgent => {
        const child = lateReader();
        return agentOf("parent", async (ctx) => (await ctx.join(await spawnChild(ctx, child))).output, {
          subAgents: [child],
        });
      };
      const one = await world.open("one");
      const run = await one.submit(team(), null);
      await suspended(run, "t0", "t1");
      const inputId = await run.steer("faster", "t1");
      await run.steer("slower", "t1");
      expect(await run.withdrawInput(inputId)).toBe(true);
      await one.close();
      const two = await world.open("two");
      two.register(team());
      const resumed = await runIn(two, run);
      expect(await resumed.withdrawInput(inputId)).toBe(true);
      await resumed.signal("go", null, "t1");
      expect((await resumed.result()).output).toEqual([["slower"], []]);
    },
  );
}
