import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { Agent, openRuntime, type Runtime } from "../../src/entries/index.ts";
import {
  costBelow,
  experiment,
  jsonLines,
  readExperiment,
  readTrials,
  reportOf,
  textReport,
  type DurableScorer,
  type Experiment,
  type ExperimentOptions,
  type GivenCase,
} from "../../src/entries/experiments.ts";
import type { RunHandle } from "../../src/kernel/index.ts";
import { withRuntime } from "../assembly/with-runtime.ts";
import { answering, askedIn } from "./answering-model.ts";

function casesOf(count: number): readonly GivenCase[] {
  return Array.from({ length: count }, (_, index) => ({ id: `c${index}`, input: `question ${index}` }));
}

function always(): number {
  return 1;
}

/** An experiment whose model counts its calls. */
function counted(options: Partial<ExperimentOptions> = {}): {
  readonly given: Experiment;
  readonly calls: string[];
} {
  const calls: string[] = [];
  const model = answering((request) => {
    calls.push(askedIn(request));
    return "answer";
  });
  const agent = new Agent({ name: "clerk", model });
  const given = experiment({ name: "counted", agent, cases: casesOf(6), scorers: [always], ...options });
  return { given, calls };
}

async function inFolder(body: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "reeve-experiments-"));
  try {
    await body(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

test("B5: an experiment that stops at its budget reports what is missing, and a top-up continues it without a repeated call", () =>
  withRuntime(async (runtime) => {
    const { given, calls } = counted({ budget: { maxTurns: 4 }, seats: 2 });
    const run = await runtime.start(given, {});
    expect((await run.result()).status).toBe("budget_exhausted");
    const stopped = await readExperiment(run);
    expect([stopped.status, stopped.results.length, stopped.expectedTrials]).toEqual([
      "budget_exhausted",
      4,
      6,
    ]);
    await run.topUp({ maxTurns: 10 });
    expect((await run.result()).status).toBe("completed");
    const { results, expectedTrials } = await readExperiment(run);
    expect([results.length, expectedTrials]).toEqual([6, 6]);
    expect(calls.toSorted()).toEqual(casesOf(6).map(({ input }) => input));
  }));

test("B5: a budget of the agent itself ends one trial, and the experiment continues", () =>
  withRuntime(async (runtime) => {
    const agent = new Agent({ name: "greedy", model: answering(() => "answer"), budget: { maxTurns: 0 } });
    const { results, status } = await counted({ agent }).given.run({ runtime });
    expect(status).toBe("completed");
    expect(results.map((each) => each.status)).toEqual(Array.from({ length: 6 }, () => "budget_exhausted"));
  }));

test("B5: a judge that the budget of the experiment stops leaves its trial without a score, and is asked again after a top-up", () =>
  withRuntime(async (runtime) => {
    const judge = new Agent({ name: "judge", model: answering(() => "1") });
    const judged: DurableScorer = {
      name: "judged",
      agents: [judge],
      score: async (_given, ctx) => Number(await ctx.agent(judge, "Good?")),
    };
    const { given, calls } = counted({
      budget: { maxTurns: 3 },
      seats: 1,
      cases: casesOf(2),
      scorers: [judged],
    });
    const run = await runtime.start(given, {});
    expect((await run.result()).status).toBe("budget_exhausted");
    expect((await readExperiment(run)).results.map(({ caseId }) => caseId)).toEqual(["c0"]);
    await run.topUp({ maxTurns: 1 });
    expect((await run.result()).status).toBe("completed");
    const { results } = await readExperiment(run);
    expect(results.map(({ scores }) => scores["judged"]?.score)).toEqual([1, 1]);
    expect(calls).toEqual(["question 0", "question 1"]);
  }));

test("an experiment reports the cost of a model without a price as unknown and not as zero, and costBelow fails", () =>
  withRuntime(async (runtime) => {
    const usage = { inputTokens: 10, outputTokens: 10, costUsd: null as never };
    const agent = new Agent({ name: "local", model: answering(() => ({ text: "answer", usage })) });
    const { given } = counted({ agent, cases: casesOf(1), scorers: [costBelow(1)] });
    const result = await given.run({ runtime });
    const [trial] = result.results;
    expect([result.costUsd, trial?.costUsd, trial?.scores["costBelow"]?.score]).toEqual([null, null, null]);
    expect(trial?.scores["costBelow"]?.error).toContain("the cost of the case is not known");
    expect(textReport(reportOf(result))).toContain("Cost of the whole run: price unknown");
  }));

test("B7: three experiments at once under one daily cap stop below it, and each reports what is missing", async () => {
  const runtime = await openRuntime({
    store: "memory:",
    caps: { perDayUsd: 0.01 },
    prices: { find: () => ({ inputUsd: 0, outputUsd: 0, requestUsd: 0.001 }) },
  });
  try {
    const given = ["one", "two", "three"].map((name) => counted({ name, agent: spender(name) }).given);
    const ended = await Promise.all(given.map((each) => each.run({ runtime })));
    const spent = ended.reduce((sum, { costUsd }) => sum + (costUsd ?? 0), 0);
    expect(spent).toBeGreaterThan(0);
    expect(spent).toBeLessThanOrEqual(0.01);
    const missing = ended.map(({ results, expectedTrials }) => expectedTrials - results.length);
    expect(missing.reduce((sum, each) => sum + each, 0)).toBeGreaterThanOrEqual(8);
    for (const [index, { status }] of ended.entries())
      expect(status).toBe(missing[index] === 0 ? "completed" : "budget_exhausted");
  } finally {
    await runtime.close();
  }
});

function spender(name: string): Agent {
  return new Agent({ name: `clerk-${name}`, model: answering(() => "answer") });
}

test("J8: an experiment of several batches has the result of each trial once, also with batches of one trial", () =>
  withRuntime(async (runtime) => {
    const { given, calls } = counted({ cases: casesOf(150), seats: 8 });
    const run = await runtime.start(given, {});
    expect(await run.result()).toMatchObject({ status: "completed", output: { trials: 150 } });
    const ids: string[] = [];
    for await (const { caseId } of readTrials(run)) ids.push(caseId);
    expect([ids.length, new Set(ids).size, calls.length]).toEqual([150, 150, 150]);
    const types: string[] = [];
    for await (const { type } of run.events({ types: ["task_continue_as_new"], follow: false }))
      types.push(type);
    expect(types).toHaveLength(2);
  }));

test("C1: a cancelled experiment keeps the results of the trials that have ended", () =>
  withRuntime(async (runtime) => {
    const held: RunHandle<unknown>[] = [];
    const agent = new Agent({
      name: "slow",
      model: answering((request) => {
        if (askedIn(request) === "question 3") void held[0]?.cancel("enough");
        return "answer";
      }),
    });
    const run = await runtime.start(counted({ agent, seats: 1 }).given, {}, { delayMs: 1 });
    held.push(run);
    expect((await run.result()).status).toBe("cancelled");
    const { results } = await readExperiment(run);
    expect(results.length).toBeGreaterThanOrEqual(3);
    expect(results.length).toBeLessThan(6);
  }));

test("an experiment run whose cases, scorers or variants have changed since its start fails and says what has changed", () =>
  inFolder(async (folder) => {
    const store = `sqlite:${join(folder, "reeve.db")}` as const;
    const opened = async (body: (runtime: Runtime) => Promise<void>): Promise<void> => {
      const runtime = await openRuntime({ store, unknownPrice: "ignore" });
      try {
        await body(runtime);
      } finally {
        await runtime.close();
      }
    };
    const budget = { maxTurns: 2 };
    await opened(async (runtime) => {
      const run = await runtime.start(counted({ budget, seats: 1 }).given, {}, { runId: "run_changed" });
      expect((await run.result()).status).toBe("budget_exhausted");
    });
    const resumed = (options: Partial<ExperimentOptions>): Promise<void> =>
      opened(async (runtime) => {
        runtime.register(counted(options).given);
        const run = await runtime.find("run_changed");
        await run?.topUp({ maxTurns: 20 });
        const { status, error } = (await run?.result()) ?? {};
        expect([status, error?.code]).toEqual(["failed", "fatal"]);
        expect(error?.message).toMatch(
          /^experiment counted has changed since run_changed was started: the scorers, the cases; resume the run with/u,
        );
      });
    const other = casesOf(6).map((each) => ({ ...each, expected: "other" }));
    await resumed({
      cases: other,
      scorers: [
        always,
        function second() {
          return 1;
        },
      ],
    });
    await opened(async (runtime) => {
      const { given, calls } = counted({ budget, seats: 1 });
      runtime.register(given);
      const run = await runtime.find("run_changed");
      await run?.resume();
      expect((await run?.result())?.status).toBe("completed");
      expect(calls).toHaveLength(4);
    });
  }));

test("a case file is read by line, and a broken line fails the run with file and line", () =>
  inFolder((folder) =>
    withRuntime(async (runtime) => {
      const path = join(folder, "cases.jsonl");
      await writeFile(path, '\uFEFF{"id":"a","input":"x"}\n\n{"id":"b","input":"y","tags":["t"]}\n');
      const { results } = await counted({ cases: jsonLines(path) }).given.run({ runtime });
      expect(results.map(({ caseId, tags }) => [caseId, tags])).toEqual([
        ["a", []],
        ["b", ["t"]],
      ]);
      await writeFile(path, '{"id":"a","input":"x"}\n{"id":"b",\n');
      const run = await runtime.start(
        counted({ name: "broken", cases: jsonLines(path), agent: spender("b") }).given,
        {},
      );
      const { status, error } = await run.result();
      expect(status).toBe("failed");
      expect(error?.message).toMatch(/cases\.jsonl:2 is not JSON: .*; expected one object per line/u);
    }),
  ));
