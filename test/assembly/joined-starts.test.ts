import { expect, test } from "vitest";
import { workflow } from "../../src/entries/workflow.ts";
import { withRuntime } from "./with-runtime.ts";

test("L20: a workflow with batch receives the inputs of its starts, and one with debounce the last input", async () => {
  await withRuntime(async (runtime) => {
    const load = workflow("load", { batch: { size: 3, ms: 60_000 } }, async (_ctx, inputs) => inputs);
    const runs = [];
    for (const input of [1, 2, 3]) runs.push(await runtime.start(load, input));
    expect(new Set(runs.map(({ runId }) => runId)).size).toBe(1);
    expect((await runs[0]?.result())?.output).toEqual([1, 2, 3]);
    const index = workflow("index", { debounce: { ms: 60_000, maxMs: 1 } }, async (_ctx, input) => input);
    expect(await index.run("only", { runtime })).toBe("only");
  });
});

test("L20: a workflow can send to a batched workflow, but gets no handle to a run that other starts may join", async () => {
  await withRuntime(async (runtime) => {
    const load = workflow("load", { batch: { size: 2, ms: 60_000 } }, async (_ctx, inputs) => inputs);
    const sender = workflow("sender", { agents: [load] }, async (ctx) => {
      const refused = await ctx.start(load, 0).then(
        () => "started",
        (error: unknown) => (error as Error).message,
      );
      const sent = [await ctx.send(load, 1), await ctx.send(load, 2)];
      return { refused, sent };
    });
    const { refused, sent } = await sender.run(null, { runtime });
    expect(refused).toContain("use ctx.send() without budget");
    expect((await (await runtime.findSubmitted(sent[1] ?? ""))?.result())?.output).toEqual([1, 2]);
  });
});

test("wrong options of debounce and batch, and a start time together with them, are refused by name", async () => {
  const code = async (): Promise<null> => null;
  expect(() => workflow("a", { batch: { size: 101, ms: 1 } }, code)).toThrow("size");
  expect(() => workflow("a", { batch: { size: 2 } as never }, code)).toThrow(
    "ms undefined of batch of workflow a",
  );
  expect(() => workflow("a", { debounce: { ms: 0 } }, code)).toThrow("debounce of workflow a");
  expect(() => workflow("a", { debounce: { ms: 1 }, batch: { size: 2, ms: 1 } }, code)).toThrow(
    "use one of them",
  );
  expect(() => workflow("a", { concurrency: { limit: 10_001 } }, code)).toThrow("limit");
  await withRuntime(async (runtime) => {
    const late = workflow("late", { debounce: { ms: 1 } }, code);
    await expect(runtime.start(late, null, { delayMs: 5 })).rejects.toThrow("debounce or batch decides");
  });
});
