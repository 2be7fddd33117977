import type { HostedWorkflow, JsonValue, RunContext } from "../../../kernel/index.ts";
import {
  agentOf,
  casesOf,
  eventsOf,
  runIn,
  spawnChild,
  suspended,
  workflowOf,
  type EngineHarness,
} from "./engine-world.ts";

const step = (ctx: RunContext, name: string, formerly?: string): Promise<string> =>
  ctx.step(name, async () => name, formerly === undefined ? {} : { formerly });

/** Cases about code that changes while its runs exist, and about runs that start a new history. */
export function upgradeCases(harness: EngineHarness): void {
  const { expect } = harness;
  const declare = casesOf(harness);

  declare(
    "J9, patched: a run that was past the changed code keeps the old path, and a run before it takes the new path",
    async (world) => {
      const old = workflowOf("order", async (ctx) => {
        if (ctx.input === "early") await ctx.waitForSignal("go");
        const first = await step(ctx, "old");
        if (ctx.input === "late") await ctx.waitForSignal("go");
        return [first, await step(ctx, "old end")];
      });
      const changed = workflowOf("order", async (ctx) => {
        if (ctx.input === "early") await ctx.waitForSignal("go");
        const first = await step(ctx, ctx.patched("v2") ? "new" : "old");
        if (ctx.input === "late") await ctx.waitForSignal("go");
        // The same name decides alike everywhere.
        return [first, await step(ctx, ctx.patched("v2") ? "new end" : "old end")];
      });
      const one = await world.open("one");
      const early = await runIn(one, await one.start(old, "early"));
      const late = await runIn(one, await one.start(old, "late"));
      for (const run of [early, late]) await suspended(run, "t0");
      const earlyThere = await world.takeOver(one, early, changed);
      await earlyThere.signal("go");
      expect((await earlyThere.result()).output).toEqual(["new", "new end"]);
      const two = await world.open("three");
      two.register(changed);
      const lateThere = await runIn(two, late);
      await lateThere.signal("go");
      expect((await lateThere.result()).output).toEqual(["old", "old end"]);
    },
  );

  declare(
    "J9, patched: patched() returns the recorded decision when the next worker replays the run, also in branches",
    async (world) => {
      const order = (): HostedWorkflow<JsonValue> =>
        workflowOf("order", async (ctx) => {
          const before = ctx.patched("a");
          await step(ctx, "one");
          const { left, right } = await ctx.parallel({
            left: async (branch) => [branch.patched("b"), await step(branch, "left")],
            right: async (branch) => [branch.patched("b"), await step(branch, "right")],
          });
          await ctx.waitForSignal("go");
          return [before, ctx.patched("a"), left, right, ctx.patched("c")] as JsonValue;
        });
      const one = await world.open("one");
      const run = await runIn(one, await one.start(order(), null));
      await suspended(run, "t0");
      const resumed = await world.takeOver(one, run, order());
      await resumed.signal("go");
      expect((await resumed.result()).output).toEqual([true, true, [true, "left"], [true, "right"], true]);
    },
  );

  declare(
    "J9, formerly: a renamed step finds its record if it has the option formerly, and does not otherwise",
    async (world) => {
      const order = (id: string, name: string, formerly?: string): HostedWorkflow<JsonValue> =>
        workflowOf(id, async (ctx) => {
          const value = await step(ctx, name, formerly);
          await ctx.waitForSignal("go");
          return value;
        });
      const one = await world.open("one");
      const known = await runIn(one, await one.start(order("known", "charge"), null));
      const unknown = await runIn(one, await one.start(order("unknown", "charge"), null));
      for (const run of [known, unknown]) await suspended(run, "t0");
      await one.close();
      const two = await world.open("two");
      two.register(order("known", "charge card", "charge"));
      two.register(order("unknown", "charge card"));
      const [renamed, other] = [await runIn(two, known), await runIn(two, unknown)];
      for (const run of [renamed, other]) await run.signal("go");
      expect((await renamed.result()).output).toBe("charge");
      expect((await other.result()).error?.code).toBe("journal_mismatch");
    },
  );

  declare(
    "J8, continueAsNew: the history of the run starts anew; its id, an unread signal and a child stay",
    async (world) => {
      const runtime = await world.open();
      const child = agentOf("child", async (ctx) => (await ctx.waitForSignal("end")) ?? null);
      const rounds: JsonValue[] = [];
      const order = workflowOf(
        "order",
        async (ctx) => {
          const { round, handle } = ctx.input as {
            round: number;
            handle?: { taskId: never; agentId: never };
          };
          await ctx.step("round", async () => rounds.push(round));
          if (handle === undefined)
            return ctx.continueAsNew({ round: 2, handle: (await spawnChild(ctx, child)) as never });
          const early = await ctx.waitForSignal("early");
          const { output } = await ctx.join(handle);
          return [early ?? null, output];
        },
        { subAgents: [child] },
      );
      const run = await runIn(runtime, await runtime.start(order, { round: 1 }));
      await run.signal("early", 5);
      await suspended(run, "t1");
      await run.signal("end", 6, { taskId: "t1" });
      expect([(await run.result()).output, rounds]).toEqual([
        [5, 6],
        [1, 2],
      ]);
      const continued = (await eventsOf(run)).filter(({ type }) => type === "task_continue_as_new");
      expect(continued.length).toBe(1);
    },
  );

  declare("J9, version: the versionPolicy of a workflow replaces that of the runtime", async (world) => {
    const versioned = (version: string, versionPolicy?: "refuse"): HostedWorkflow<JsonValue> =>
      workflowOf("order", async (ctx) => (await ctx.waitForSignal("go")) ?? null, {
        version,
        ...(versionPolicy && { versionPolicy }),
      });
    const one = await world.open("one");
    const run = await runIn(one, await one.start(versioned("1"), null));
    await suspended(run, "t0");
    const found = await world.takeOver(one, run, versioned("2", "refuse"));
    await found.signal("go");
    expect((await found.result()).error?.code).toBe("version_mismatch");
  });

  declare("patched, formerly: patched() and the option formerly refuse wrong values", async (world) => {
    const runtime = await world.open();
    const order = workflowOf("order", async (ctx) => {
      const codes: string[] = [];
      const note = (error: unknown): void => void codes.push((error as { readonly code: string }).code);
      try {
        ctx.patched("two words");
      } catch (error) {
        note(error);
      }
      await ctx.step("a", async () => null, { formerly: 5 as never }).catch(note);
      return codes;
    });
    const { output } = await (await runtime.start(order, null)).result();
    expect(output).toEqual(["invalid_argument", "invalid_argument"]);
  });
}
