import {
  flowControl,
  type FlowOptions,
  type HostedAgent,
  type HostedWorkflow,
  type JsonValue,
  type RunHandle,
} from "../../../kernel/index.ts";
import { agentOf, casesOf, runIn, suspended, workflowOf, type EngineHarness } from "./engine-world.ts";

/** Returns an agent with limits of concurrency and rate. Its input is used as the key. */
function limited(run: Parameters<typeof agentOf>[1], flow: FlowOptions): HostedAgent {
  return agentOf("order", run, { flowOf: flowControl("agent order", "order", flow) });
}

const key = ({ input }: { readonly input: JsonValue }): string => input as string;

/** Cases about limits of concurrency and rate (L17). */
export function flowCases(harness: EngineHarness): void {
  const { expect } = harness;
  const declare = casesOf(harness);

  declare(
    "L17: over all workers, at most as many runs of a key run at the same time as its limit, and each completes",
    async (world) => {
      const [one, two] = [await world.open("one"), await world.open("two")];
      const running: Record<string, number> = {};
      const most: Record<string, number> = {};
      const change = (name: string, by: number): null => {
        running[name] = (running[name] ?? 0) + by;
        most[name] = Math.max(most[name] ?? 0, running[name]);
        return null;
      };
      const order = limited(
        async (ctx) => {
          const name = ctx.input as string;
          await ctx.step("enter", async () => change(name, 1));
          await ctx.sleep(1);
          await ctx.step("leave", async () => change(name, -1));
        },
        { concurrency: { key, limit: 2 } },
      );
      one.register(order);
      two.register(order);
      const runs = await Promise.all(
        Array.from({ length: 10 }, (_each, index) =>
          (index % 2 === 0 ? one : two).submit(order, index < 8 ? "a" : "b"),
        ),
      );
      const ends = await Promise.all(runs.map((run) => run.result()));
      expect(ends.map(({ status }) => status)).toEqual(runs.map(() => "completed"));
      expect((most["a"] ?? 3) <= 2 && (most["b"] ?? 3) <= 2).toBe(true);
    },
  );

  declare(
    "L17: a queued run starts after the run before it ends, also if another worker takes over that earlier run",
    async (world) => {
      const one = await world.open("one");
      const started: string[] = [];
      const order = (): HostedAgent =>
        limited(
          async (ctx) => {
            await ctx.step("start", async () => (started.push(ctx.facts.runId), null));
            return (await ctx.waitForSignal("go")) ?? null;
          },
          { concurrency: { limit: 1 } },
        );
      const hosted = order();
      const first = await one.submit(hosted, null);
      await suspended(first, "t0");
      const second = await one.submit(hosted, null);
      const { status, waitsFor } = (await one.list({ status: "pending" })).runs[0] ?? {};
      expect([status, waitsFor?.every((cause) => cause === "queue" || cause === "worker")]).toEqual([
        "pending",
        true,
      ]);
      const resumed = await world.takeOver(one, first, order());
      expect(started).toEqual([first.runId]);
      await resumed.signal("go", 1);
      expect((await resumed.result()).output).toBe(1);
      const two = await world.open("three");
      two.register(order());
      const next = await runIn(two, second);
      await next.signal("go", 2);
      expect((await next.result()).output).toBe(2);
      expect(started).toEqual([first.runId, second.runId]);
    },
  );

  declare("L17: a queued run that is cancelled before its turn starts no code", async (world) => {
    const runtime = await world.open();
    let starts = 0;
    const order = limited(
      async (ctx) => {
        await ctx.step("start", async () => ++starts);
        await ctx.waitForSignal("go");
      },
      { concurrency: { limit: 1 } },
    );
    const first = await runtime.submit(order, null);
    await suspended(first, "t0");
    const queued = await runtime.submit(order, null);
    const third = await runtime.submit(order, null);
    await queued.cancel("not needed");
    const { status, interruptionReason } = await queued.result();
    expect([status, interruptionReason, starts]).toEqual(["cancelled", "not needed", 1]);
    await third.signal("go", null);
    await first.signal("go", null);
    expect([(await first.result()).status, (await third.result()).status, starts]).toEqual([
      "completed",
      "completed",
      2,
    ]);
  });

  declare(
    "L17: the runs of a workflow with a rate start one after another, and each completes",
    async (world) => {
      const [one, two] = [await world.open("one"), await world.open("two")];
      const order = limited(async (ctx) => ctx.step("work", async () => 1), {
        concurrency: { key, limit: 2 },
        rate: { limit: 2, perMs: 40 },
      });
      one.register(order);
      two.register(order);
      const runs = await Promise.all(["a", "b", "a", "b", "c"].map((name) => one.submit(order, name)));
      const ends = await Promise.all(runs.map((run) => run.result()));
      expect(ends.map(({ status }) => status)).toEqual(runs.map(() => "completed"));
    },
  );

  declare(
    "L20: starts of a debounced workflow in two workers become one run with the last input",
    async (world) => {
      const [one, two] = [await world.open("one"), await world.open("two")];
      const seen: JsonValue[] = [];
      const index = (): HostedWorkflow<JsonValue> =>
        workflowOf("index", async (ctx) => ctx.step("work", async () => (seen.push(ctx.input), ctx.input)), {
          flowOf: flowControl("workflow index", "index", { debounce: { ms: 200 } }),
        });
      const [here, there] = [index(), index()];
      one.register(here);
      two.register(there);
      const first = await one.start(here, "first", { runId: "run_first" });
      const second = await two.start(there, "second", { runId: "run_second" });
      const again = await two.start(there, "second", { runId: "run_second" });
      expect((await second.result()).output).toBe("second");
      expect(again.runId).toBe(second.runId);
      expect((await two.findSubmitted("run_second"))?.runId).toBe(second.runId);
      // A slow machine may start the first run before the second start arrives.
      expect(seen).toEqual(second.runId === first.runId ? ["second"] : ["first", "second"]);
    },
  );

  declare(
    "L20: the starts of a batched workflow become runs that contain each input once, in order",
    async (world) => {
      const one = await world.open("one");
      const load = (): HostedWorkflow<JsonValue> =>
        workflowOf("load", async (ctx) => ctx.step("work", async () => ctx.input), {
          flowOf: flowControl("workflow load", "load", {
            batch: {
              key: ({ input }: { readonly input: JsonValue }) => (input as string).slice(0, 1),
              size: 3,
              ms: 50,
            },
          }),
        });
      const hosted = load();
      const runs: RunHandle[] = [];
      for (const name of ["a1", "b1", "a2", "a3", "a4"])
        runs.push((await one.start(hosted, name)) as unknown as RunHandle);
      const ids = new Set(runs.map(({ runId }) => runId));
      const last = await world.takeOver(one, runs.at(-1) as RunHandle, load());
      await last.result();
      const two = await world.open("three");
      const outputs = await Promise.all(
        [...ids].map(async (runId) => (await (await two.find(runId))?.result())?.output as readonly string[]),
      );
      const ofKey = (start: string): readonly string[] =>
        outputs.flat().filter((name) => name.startsWith(start));
      expect([ofKey("a"), ofKey("b")]).toEqual([["a1", "a2", "a3", "a4"], ["b1"]]);
      expect(outputs.every(({ length }) => length <= 3)).toBe(true);
    },
  );
}
