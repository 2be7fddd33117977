import { expect } from "vitest";
import { z } from "zod";
import { Agent } from "../../src/assembly/agent.ts";
import { workflow } from "../../src/assembly/workflow.ts";
import type { Fault, JsonObject, Store } from "../../src/kernel/index.ts";
import { checkReplay } from "../../src/runtime/check-replay.ts";
import {
  EngineWorld,
  eventsOf,
  runIn,
  suspended,
  type EngineHarness,
} from "../../src/testing/contracts/engines/engine-world.ts";
import { scriptedModel } from "../../src/testing/scripted-model.ts";

/**
 * Cases about what joins workflows, agents and stored journals, for every engine and store: `ctx.agent()`, `asTool()` and
 * `checkReplay()`. The engine contract knows only the kernel, so that they are declared here.
 */
export function assembledCases(harness: EngineHarness): void {
  const declare = (
    title: string,
    body: (world: EngineWorld, reopen: () => Promise<Store>) => unknown,
  ): void =>
    harness.test(title, async () => {
      const reopen = await harness.prepare();
      const world = new EngineWorld(harness, reopen);
      try {
        await body(world, reopen);
      } finally {
        await world.close();
      }
    });
  const asks = (name: string, input: JsonObject) => ({ toolCalls: [{ name, input }] });

  declare(
    "ctx.agent: the next worker has the recorded answer and asks the model nothing again",
    async (world) => {
      const model = scriptedModel(["Yes.", '{"fair":true}']);
      const clerk = new Agent({ name: "clerk", model });
      const refund = workflow("refund", { agents: [clerk] }, async (ctx) => {
        const text = await ctx.agent(clerk, "Is it paid?");
        const go = (await ctx.waitForSignal("go")) ?? null;
        const { fair } = await ctx.agent(clerk, "Is it fair?", { output: z.object({ fair: z.boolean() }) });
        return { text, go, fair };
      });
      const one = await world.open("one");
      const run = await runIn(one, await one.start(refund, null));
      await suspended(run, "t0");
      const resumed = await world.takeOver(one, run, refund);
      await resumed.signal("go", 5);
      const { output, turns } = await resumed.result();
      expect([output, turns, model.calls.length]).toEqual([{ text: "Yes.", go: 5, fair: true }, 2, 2]);
    },
  );

  declare(
    "ctx.agent: an agent whose branch loses a race is cancelled, and an agent that fails gives child_failed",
    async (world) => {
      const runtime = await world.open();
      const failing = new Agent({
        name: "failing",
        model: scriptedModel([{ error: new Error("no") }]),
        retry: false,
      });
      const wait = workflow(
        "wait",
        { description: "Waits" },
        async (ctx) => (await ctx.waitForSignal("never")) ?? null,
      );
      const slow = new Agent({
        name: "slow",
        model: scriptedModel([asks("wait", {})]),
        tools: [wait.asTool()],
      });
      const order = workflow("order", { agents: [failing, slow] }, async (ctx) => {
        const { value } = await ctx.race({
          agent: (branch) => branch.agent(slow, "Wait."),
          failure: async (branch) => {
            await branch.waitForSignal("go");
            return branch
              .agent(failing, "Fail.")
              .catch(({ code, details }: Fault) => JSON.stringify([code, details?.["status"]]));
          },
        });
        return value;
      });
      const run = await runIn(runtime, await runtime.start(order, null));
      await suspended(run, "t2");
      await run.signal("go");
      expect((await run.result()).output).toBe('["child_failed","failed"]');
      const ends = (await eventsOf(run)).flatMap((event) =>
        event.type === "task_end" ? [event.data.status] : [],
      );
      expect(ends.toSorted()).toEqual(["cancelled", "cancelled", "completed", "failed"]);
    },
  );

  declare(
    "asTool: the next worker continues a workflow that an agent has called as a tool, and calls the model once per turn",
    async (world) => {
      const steps: string[] = [];
      const refund = workflow(
        "refund",
        { description: "Refunds", input: z.object({ orderId: z.string() }) },
        async (ctx, { orderId }) => {
          await ctx.step("reserve", () => steps.push("reserve"));
          const cents = (await ctx.waitForSignal("paid")) ?? null;
          return { orderId, cents, place: await ctx.step("ship", () => steps.push("ship")) };
        },
      );
      const model = scriptedModel([asks("refund", {}), asks("refund", { orderId: "7" }), "Done."]);
      const support = new Agent({ name: "support", model, tools: [refund.asTool()] });
      const one = await world.open("one");
      const run = await one.submit(support, "Refund order 7.");
      // The wrong arguments were a result of the tool, and no task.
      await suspended(run, "t1");
      const resumed = await world.takeOver(one, run, support);
      await resumed.signal("paid", 900, { taskId: "t1" });
      expect((await resumed.result()).output).toBe("Done.");
      expect([steps, model.calls.length]).toEqual([["reserve", "ship"], 3]);
      const results = JSON.stringify(model.calls.at(-1)?.messages);
      for (const text of ["invalid input of workflow refund: orderId", '"cents":900', '"place":2'])
        expect(results).toContain(text);
    },
  );

  declare(
    "checkReplay: journals of waiting and ended runs match their code, and the first step that differs is named",
    async (world, reopen) => {
      let bodies = 0;
      const codeOf = (name: string) =>
        workflow("order", async (ctx) => {
          await ctx.step("reserve", () => ++bodies);
          await ctx.parallel({
            left: (branch) => branch.step(name, () => ++bodies),
            right: (branch) => branch.sleep(1),
          });
          return (await ctx.waitForSignal("paid")) ?? null;
        });
      const runtime = await world.open();
      const recorded = codeOf("pack");
      const ended = await runIn(runtime, await runtime.start(recorded, null));
      const waiting = await runIn(runtime, await runtime.start(recorded, null));
      await suspended(waiting, "t0");
      await ended.signal("paid", 900);
      await ended.result();
      const store = await reopen();
      const runs = [ended.runId, waiting.runId];
      const same = await checkReplay({ store, workflows: [codeOf("pack")], runs });
      expect(same).toMatchObject({ runs: 2, differences: [], skipped: [] });
      const changed = await checkReplay({ store, workflows: [codeOf("wrap")], runs });
      expect(changed.differences.map(({ runId, kind }) => `${runId} ${kind}`).toSorted()).toEqual(
        runs.map((runId) => `${runId} changed`).toSorted(),
      );
      expect(changed.differences[0]).toMatchObject({
        recorded: expect.stringContaining("pack"),
        asked: expect.stringContaining("wrap"),
      });
      expect(bodies).toBe(4);
      expect((await waiting.summary()).status).toBe("waiting");
      await store.close();
      await waiting.signal("paid", 5);
      expect((await waiting.result()).output).toBe(5);
    },
  );
}
