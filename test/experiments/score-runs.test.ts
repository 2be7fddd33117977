import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { Agent, openRuntime, type Runtime } from "../../src/entries/index.ts";
import { scoreRuns, type DurableScorer, type ScorerInput } from "../../src/entries/experiments.ts";
import { withRuntime } from "../assembly/with-runtime.ts";
import { answering, askedIn } from "./answering-model.ts";

const clerk = new Agent({ name: "clerk", model: answering((request) => `Answer to ${askedIn(request)}`) });

async function ask(runtime: Runtime, input: string): Promise<string> {
  const run = await runtime.submit(clerk, input);
  await run.result();
  return run.runId;
}

async function scoresOf(runtime: Runtime, runId: string): Promise<readonly (readonly unknown[])[]> {
  const run = await runtime.find(runId);
  return (await run?.scores())?.map(({ name, value, by, comment }) => [name, value, by, comment]) ?? [];
}

test("scoreRuns() scores ended runs with functions and judges and stores their reasons", () =>
  withRuntime(async (runtime) => {
    const seen: ScorerInput[] = [];
    const judge: DurableScorer = {
      name: "judge",
      agents: [clerk],
      score: async (given, ctx) => {
        const verdict = await ctx.agent(clerk, `good: ${JSON.stringify(given.output)}`);
        return { score: 0.5, reason: verdict };
      },
    };
    const scorers = [
      function short(given: ScorerInput) {
        seen.push(given);
        return given.run.turns === 1;
      },
      judge,
      function skipping() {
        return { score: null };
      },
    ];
    const runIds = [await ask(runtime, "one"), await ask(runtime, "two")];
    const once = { runtime, scorers, everyMs: null, name: "nightly" };
    const first = await scoreRuns(once);
    expect((await first.result()).output).toEqual({ runs: 2, scores: 4, without: 2 });
    expect(await scoresOf(runtime, runIds[0] ?? "")).toEqual([
      ["short", 1, "nightly", null],
      ["judge", 0.5, "nightly", 'Answer to good: "Answer to one"'],
    ]);
    expect(seen.map(({ input, output, expected, run }) => [input, output, expected, run.status])).toEqual(
      expect.arrayContaining([
        ["one", "Answer to one", null, "completed"],
        ["two", "Answer to two", null, "completed"],
      ]),
    );
  }));

test("two runtimes that score runs in one store divide them, and every run of the sample has one score of each scorer", async () => {
  const folder = await mkdtemp(join(tmpdir(), "reeve-scores-"));
  const open = (): Promise<Runtime> =>
    openRuntime({ store: `sqlite:${join(folder, "runs.db")}`, unknownPrice: "ignore" });
  const [one, other] = [await open(), await open()];
  onTestFinished(async () => {
    await Promise.all([one.close(), other.close()]);
    await rm(folder, { recursive: true });
  });
  const runIds: string[] = [];
  for (let index = 0; index < 12; index++) runIds.push(await ask(one, `question ${index}`));
  let calls = 0;
  const scorers = [
    function counted() {
      calls++;
      return 1;
    },
  ];
  const options = { scorers, sample: 0.5, everyMs: null };
  const runs = await Promise.all([one, other].map((runtime) => scoreRuns({ runtime, ...options })));
  const results = await Promise.all(runs.map((run) => run.result()));
  const [scored = -1] = results.map(({ output }) => (output as { readonly runs: number }).runs);
  expect(runs[0]?.runId).toBe(runs[1]?.runId);
  expect(calls).toBe(scored);
  const marked = await one.list({ score: { name: "counted" } });
  expect(marked.runs.length).toBe(scored);
  expect(marked.runs.every(({ scores }) => scores?.length === 1)).toBe(true);
  const again = await open();
  const later = await scoreRuns({ runtime: again, ...options });
  expect(later.runId).not.toBe(runs[0]?.runId);
  expect([(await later.result()).output, calls]).toEqual([{ runs: scored, scores: 0, without: 0 }, scored]);
  await again.close();
  // The sample follows from the ids: another share of the same runs contains the smaller one.
  const all = await scoreRuns({ runtime: other, ...options, sample: 1, name: "all" });
  expect((await all.result()).output).toMatchObject({ runs: runIds.length });
});

test("scoreRuns() refuses wrong options and says why", () =>
  withRuntime(async (runtime) => {
    const scorers = [() => 1].map((scorer) => Object.defineProperty(scorer, "name", { value: "a" }));
    await expect(scoreRuns({ runtime, scorers, sample: 0 })).rejects.toThrow(
      "invalid sample 0 of scoreRuns()",
    );
    await expect(scoreRuns({ runtime, scorers: [] })).rejects.toThrow("scoreRuns() has no scorers");
    await expect(scoreRuns({ runtime: {} as Runtime, scorers })).rejects.toThrow(
      "invalid runtime of scoreRuns()",
    );
  }));

test("scoreRuns() that stops at its budget continues after a top-up", () =>
  withRuntime(async (runtime) => {
    const judge: DurableScorer = {
      name: "judge",
      agents: [clerk],
      score: async (_given, ctx) => {
        await ctx.agent(clerk, "good?");
        return 1;
      },
    };
    for (const input of ["one", "two"]) await ask(runtime, input);
    const run = await scoreRuns({
      runtime,
      scorers: [judge],
      everyMs: null,
      seats: 1,
      budget: { maxTurns: 1 },
    });
    expect((await run.result()).status).toBe("budget_exhausted");
    expect(await runtime.count({ score: { name: "judge" } })).toBe(1);
    await run.topUp({ maxTurns: 1 });
    expect(await run.result()).toMatchObject({ status: "completed", output: { runs: 2, scores: 2 } });
    expect(await runtime.count({ score: { name: "judge" } })).toBe(2);
  }));
