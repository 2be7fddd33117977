import { workflow } from "../../../src/entries/workflow.ts";
import { formatRunId } from "../../../src/kernel/index.ts";
import { workload } from "../workload.ts";

interface World {
  /** For each run and step, the versions of the code that have performed the step, in order. */
  readonly done: Map<string, string[]>;
}

const steps = ["charge", "check", "ship"];

/**
 * Runs of two durable functions, while workers with version 1 and version 2 of the code execute them. The bodies of the steps differ. Any
 * worker continues a run of `open`; a run of `pinned` stays with the version with which it was started.
 */
export const versions = workload<World>("versions", (seed) => {
  const names = Array.from({ length: 3 }, (_, index) => `run-${index}`);
  return {
    workers: 2 + (seed % 2),
    world: () => ({ done: new Map() }),
    runtime: { suspendAfterMs: seed % 2 === 0 ? 5 : 2_000 },
    agents: ({ call, version, world }) =>
      (["open", "pinned"] as const).map((kind) =>
        workflow(
          kind,
          { version: String(version), versionPolicy: kind === "open" ? "resume" : "pin" },
          async (ctx, input) => {
            const run = `${kind} ${input as string}`;
            const values: string[] = [];
            for (const step of steps) {
              values.push(
                await ctx.step(step, ({ idempotencyKey: key }) =>
                  call(
                    step,
                    () => {
                      const done = world.done.get(`${run} ${step}`) ?? [];
                      world.done.set(`${run} ${step}`, [...done, String(version)]);
                      return String(version);
                    },
                    { key },
                  ),
                ),
              );
              await ctx.sleep("1 second");
            }
            return values.join(" ");
          },
        ),
      ),
    load: async ({ runtime, sleep }) => {
      for (const name of names) {
        await runtime.start("open", name, { runId: formatRunId(`open-${name}`) });
        await runtime.start("pinned", name, { runId: formatRunId(`pinned-${name}`), version: "1" });
        await sleep(2_000);
      }
    },
    check: ({ runs, world }) => {
      const wrong: string[] = [];
      for (const { run, events } of runs) {
        const end = events.findLast((event) => event.type === "task_end");
        const output = end?.type === "task_end" ? JSON.stringify(end.data.output) : "";
        const found = output.replaceAll('"', "").split(" ");
        const [kind = "", name = ""] = run.runId.slice("run_".length).split(/-(.*)/u);
        if (run.status !== "completed")
          wrong.push(`${run.runId} is ${run.status}: ${JSON.stringify(end?.data)}`);
        for (const [index, step] of steps.entries()) {
          const done = world.done.get(`${kind} ${name} ${step}`) ?? [];
          // The recorded value is that of a version which has performed the step.
          if (!done.includes(found[index] ?? ""))
            wrong.push(`${run.runId} has ${output}, and ${step} was done by ${done.join(" ")}`);
          if (kind === "pinned" && done.includes("2"))
            wrong.push(`${run.runId} is pinned to version 1, and version 2 has done ${step}`);
        }
      }
      if (runs.length !== 2 * names.length) wrong.push(`${runs.length} runs, and not ${2 * names.length}`);
      return wrong;
    },
  };
});
