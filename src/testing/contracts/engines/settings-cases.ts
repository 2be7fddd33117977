import {
  Fault,
  flowControl,
  type HostedWorkflow,
  type JsonValue,
  type StepOptions,
} from "../../../kernel/index.ts";
import {
  casesOf,
  suspended,
  suspendsItself,
  untilLongEnough,
  workflowOf,
  type EngineHarness,
} from "./engine-world.ts";

/** Cases about workers that host the same workflow with different settings, as during a deployment. */
export function settingsCases(harness: EngineHarness): void {
  const { expect } = harness;
  const declare = casesOf(harness);

  declare(
    "L17: if two workers have different limits, the limit of the next run counts, and no run overtakes it",
    async (world) => {
      const [one, two] = [await world.open("one"), await world.open("two")];
      const log: string[] = [];
      const limited = (limit: number): HostedWorkflow<JsonValue> =>
        workflowOf(
          "order",
          async (ctx) => {
            const name = ctx.input as string;
            await ctx.step("enter", async () => log.push(`enter ${name}`));
            await ctx.waitForSignal("go");
            await ctx.step("leave", async () => log.push(`leave ${name}`));
          },
          { flowOf: flowControl("workflow order", "order", { concurrency: { limit } }) },
        );
      const [narrow, wide] = [limited(1), limited(3)];
      one.register(narrow);
      two.register(wide);
      const first = await one.start(narrow, "1 of 1");
      await suspended(first, "t0");
      const beside = await two.start(wide, "2 of 3");
      await suspended(beside, "t0");
      const queued = [await one.start(narrow, "next of 1"), await two.start(wide, "behind it")];
      for (const run of [first, beside, ...queued]) {
        await run.signal("go", null);
        expect((await run.result()).status).toBe("completed");
      }
      expect(log.slice(0, 2)).toEqual(["enter 1 of 1", "enter 2 of 3"]);
      expect(log.slice(2, 4).toSorted()).toEqual(["leave 1 of 1", "leave 2 of 3"]);
      expect(log.slice(4).toSorted()).toEqual(
        ["next of 1", "behind it"].flatMap((name) => [`enter ${name}`, `leave ${name}`]).toSorted(),
      );
    },
  );

  declare(
    "L20: a worker that batches a workflow and a worker that debounces it do not join each other's starts",
    async (world) => {
      const [one, two] = [await world.open("one"), await world.open("two")];
      const code: HostedWorkflow["run"] = async (ctx) => ctx.step("work", async () => ctx.input);
      const batched = workflowOf("load", code, {
        flowOf: flowControl("workflow load", "load", { batch: { size: 2, ms: 60 } }),
      });
      const debounced = workflowOf("load", code, {
        flowOf: flowControl("workflow load", "load", { debounce: { ms: 60 } }),
      });
      one.register(batched);
      two.register(debounced);
      const runs = [
        await one.start(batched, "a"),
        await two.start(debounced, "b"),
        await one.start(batched, "c"),
      ];
      const outputs = await Promise.all(runs.map(async (run) => (await run.result()).output));
      // The worker that executes a run does not change what the run has collected.
      expect(outputs[1]).toBe("b");
      expect(outputs.map((output) => Array.isArray(output))).toEqual([true, false, true]);
      expect(new Set([outputs[0], outputs[2]].flat())).toEqual(new Set(["a", "c"]));
    },
  );

  for (const [name, retry] of [
    ["no retries", false],
    ["fewer attempts and shorter delays", { maxAttempts: 2, baseDelayMs: 1 }],
  ] as const)
    declare(
      `J5: a worker with ${name} continues after the recorded attempt of a step, at the recorded time`,
      async (world) => {
        await untilLongEnough(300, async (baseDelayMs) => {
          const times: number[] = [];
          const flaky = (options: StepOptions): HostedWorkflow<JsonValue> =>
            workflowOf(`flaky-${baseDelayMs}`, async (ctx) =>
              ctx
                .step(
                  "work",
                  async ({ attempt }) => {
                    times.push(Date.now());
                    throw new Error(`no ${attempt}`);
                  },
                  options,
                )
                .catch((error: unknown) => Fault.from(error).message),
            );
          const one = await world.open("one");
          const run = await one.start(flaky({ retry: { baseDelayMs, jitter: 0 } }), null);
          const isSuspended = await suspendsItself(run);
          await one.close();
          // The first worker has made the second attempt itself.
          if (!isSuspended || times.length > 1) return false;
          const next = await world.takeOver(one, run, flaky({ retry }));
          expect((await next.result()).output).toBe("no 2");
          const [first = 0, second = 0, ...others] = times;
          expect(second - first >= baseDelayMs).toBe(true);
          expect(others).toEqual([]);
          return true;
        });
      },
    );
}
