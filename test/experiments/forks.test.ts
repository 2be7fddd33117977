import { once } from "node:events";
import { expect, onTestFinished, test } from "vitest";
import {
  experiment,
  judge,
  readExperiment,
  runs,
  type ExperimentOptions,
  type ForkVariant,
  type StoredRunsOptions,
} from "../../src/entries/experiments.ts";
import { Agent, openRuntime, tool, type Runtime } from "../../src/entries/index.ts";
import { memoryStore } from "../../src/runtime/index.ts";
import { answering, askedIn } from "./answering-model.ts";

const looked: string[] = [];
/** If present, the next call of the tool resolves it and then waits until the call is cancelled. */
let held: PromiseWithResolvers<null> | undefined;
const look = tool({
  name: "look",
  description: "Looks.",
  inputSchema: { type: "object", properties: { at: { type: "string" } } } as const,
  execute: async ({ at = "" }, { signal }) => {
    looked.push(at);
    if (held !== undefined) {
      held.resolve(null);
      await once(signal, "abort");
    }
    return `${at} is shut`;
  },
});

/** The requests of the models, by the first words of the system prompt. */
const asked: string[] = [];

/** A model that calls a tool with what the user names, and then answers with the instructions and the result. */
const model = answering((request) => {
  const { messages } = request;
  const [system] = messages;
  const prompt = system?.role === "system" ? system.content : "none";
  asked.push(`${prompt} ${messages.length}`);
  const last = messages.at(-1);
  if (last?.role === "tool") return `${prompt}: ${JSON.stringify(last.content[0]?.output)}`;
  return (request.tools ?? []).length === 0
    ? `${prompt}: unknown`
    : { toolCalls: [{ name: "look", input: { at: askedIn(request) } }] };
});

const guard = new Agent({ name: "guard", instructions: "old", model, tools: [look] });

/** Says whether the answer follows the new instructions. */
function isNew({ output }: { readonly output: unknown }): boolean {
  return String(output).startsWith("new");
}

async function withRuns(
  inputs: readonly string[],
  use: (runtime: Runtime, runIds: readonly string[]) => Promise<void>,
): Promise<void> {
  const runtime = await openRuntime({ store: memoryStore(), unknownPrice: "ignore" });
  try {
    const ids: string[] = [];
    for (const input of inputs) {
      const run = await guard.submit(input, { runtime });
      await run.result();
      ids.push(run.runId);
    }
    asked.length = 0;
    looked.length = 0;
    await use(runtime, ids);
  } finally {
    await runtime.close();
  }
}

let experiments = 0;
const forked = (
  options: Pick<StoredRunsOptions, "runtime" | "runs"> & Partial<StoredRunsOptions>,
  change: ForkVariant = { instructions: "new" },
) =>
  experiment({
    name: `what-if-${++experiments}`,
    agent: guard,
    from: runs({ forks: { changed: change }, ...options }),
    scorers: [isNew],
    seats: 1,
  });

test("experiment forks from the last turn pay one model call each, repeat no tool call, and both ends are scored", () =>
  withRuns(["gate", "door"], async (runtime, ids) => {
    const result = await forked({ runtime, runs: {}, at: "last-turn" }).run({ runtime });
    const rows = result.results.map(({ caseId, variant, output, turns, scores, runId }) =>
      [ids.indexOf(caseId), variant, output, turns, scores["isNew"]?.score, runId !== undefined]
        .map(String)
        .join(" "),
    );
    expect(rows.toSorted()).toEqual([
      '0 changed new: {"type":"text","text":"gate is shut"} 1 1 true',
      '0 stored old: {"type":"text","text":"gate is shut"} 1 0 false',
      '1 changed new: {"type":"text","text":"door is shut"} 1 1 true',
      '1 stored old: {"type":"text","text":"door is shut"} 1 0 false',
    ]);
    expect(asked).toEqual(["new 4", "new 4"]);
    expect(looked).toEqual([]);
    expect([result.variants, result.expectedTrials]).toEqual([["stored", "changed"], 4]);
  }));

test("experiment forks from the first model call repeat all calls, and forks of an earlier experiment are not forked again", () =>
  withRuns(["gate"], async (runtime) => {
    const given = forked({ runtime, runs: {} });
    const { results } = await given.run({ runtime });
    expect(results.map(({ turns, durationMs }) => [turns, durationMs < 600_000])).toEqual([
      [2, true],
      [2, true],
    ]);
    expect(asked).toEqual(["new 2", "new 4"]);
    expect(looked).toEqual(["gate"]);
    const again = await given.run({ runtime });
    expect(again.results.length).toBe(2);
  }));

test("an experiment fork starts at an event, role, agent or tool, and an unknown place is a result that names the known ones", () =>
  withRuns(["gate"], async (runtime, ids) => {
    const ends = async (at: NonNullable<StoredRunsOptions["at"]>) => {
      const { results } = await forked({ runtime, runs: ids, at }).run({ runtime });
      const { turns, error } = results.find(({ variant }) => variant === "changed") ?? {};
      return error ?? turns;
    };
    const starts: number[] = [];
    const run = await runtime.find(ids[0] ?? "");
    for await (const event of run?.events({ types: ["message_start"], follow: false }) ?? [])
      if ("seq" in event) starts.push(event.seq);
    expect(await ends(starts[1] as number)).toBe(1);
    expect(await ends("main")).toBe(2);
    expect(await ends("guard")).toBe(2);
    expect(await ends("look")).toBe(2);
    expect(await ends("plan")).toContain(
      'has no step "plan": expected the number of an event, first-model-call, last-turn, or one of main, guard, look',
    );
  }));

test("an experiment fork keeps the named tools, and an unknown model is a result", () =>
  withRuns(["gate"], async (runtime, ids) => {
    const of = async (change: ForkVariant) => {
      const { results } = await forked({ runtime, runs: ids }, change).run({ runtime });
      const { output, error } = results.find(({ variant }) => variant === "changed") ?? {};
      return error ?? output;
    };
    expect(await of({ tools: [] })).toBe("old: unknown");
    expect(await of({ model: "nobody/none" })).toContain("nobody/none");
  }));

/** An experiment with forks from the first model call and a limited number of calls. Each fork needs two calls. */
const limited = (
  runtime: Runtime,
  runIds: readonly string[],
  maxTurns: number,
  others: Partial<ExperimentOptions> = {},
) =>
  experiment({
    name: `limited-${maxTurns}`,
    agent: guard,
    scorers: [isNew],
    from: runs({ runtime, runs: runIds, forks: { changed: { instructions: "new" } } }),
    budget: { maxTurns },
    seats: 2,
    ...others,
  });

test("B5: experiment forks share one budget, the last fork stops at it, and a top-up continues it without a repeated call", () =>
  withRuns(["gate", "door", "hall"], async (runtime, ids) => {
    const run = await runtime.start(limited(runtime, ids, 5), {});
    expect((await run.result()).status).toBe("budget_exhausted");
    const stopped = await readExperiment(run);
    expect([stopped.status, stopped.results.length, stopped.expectedTrials]).toEqual([
      "budget_exhausted",
      5,
      6,
    ]);
    expect(asked).toHaveLength(5);
    await run.topUp({ maxTurns: 1 });
    expect((await run.result()).status).toBe("completed");
    const { results } = await readExperiment(run);
    expect(results.filter(({ variant }) => variant === "changed").map(({ turns }) => turns)).toEqual([
      2, 2, 2,
    ]);
    expect(asked).toHaveLength(6);
  }));

test("B5: experiment forks and judges together spend no more than the budget of the experiment", () =>
  withRuns(["gate"], async (runtime, ids) => {
    let judged = 0;
    const grade = answering(() => {
      judged++;
      return JSON.stringify({ reason: "good", grade: 5 });
    });
    const scorers = [judge({ model: grade, rubric: "Any." })];
    const run = await runtime.start(limited(runtime, ids, 3, { scorers, seats: 1 }), {});
    expect((await run.result()).status).toBe("budget_exhausted");
    expect(asked.length + judged).toBe(3);
    await run.topUp({ maxTurns: 1 });
    expect((await run.result()).status).toBe("completed");
    const { results } = await readExperiment(run);
    expect(results.map(({ scores }) => scores["judge"]?.score)).toEqual([1, 1]);
    expect(asked.length + judged).toBe(4);
  }));

test("cancelling an experiment cancels its forks that have not ended, and no stored run", () =>
  withRuns(["gate", "door"], async (runtime, ids) => {
    held = Promise.withResolvers<null>();
    onTestFinished(() => (held = undefined));
    const run = await runtime.start(forked({ runtime, runs: ids }), {});
    await held.promise;
    await run.cancel("enough");
    expect((await run.result()).status).toBe("cancelled");
    const statuses: string[] = [];
    for (const { runId } of (await runtime.list({ agentName: "guard" })).runs)
      statuses.push((await (await runtime.find(runId))?.result())?.status ?? "");
    expect(statuses.toSorted()).toEqual(["cancelled", "completed", "completed"]);
  }));

test("wrong options of runs() and of an experiment with it are refused", () =>
  withRuns(["gate"], async (runtime, ids) => {
    const given = { runtime, runs: ids };
    expect(() => runs({ ...given, forks: {} })).toThrow(
      "invalid forks of runs(): expected at least one change",
    );
    expect(() => runs({ ...given, forks: { a: {} } })).toThrow("fork a of runs() changes nothing");
    expect(() => runs({ ...given, forks: { stored: { tools: [] } } })).toThrow("stored is the run itself");
    expect(() => runs({ ...given, forks: { a: { tools: [] } }, at: -1 })).toThrow("invalid at -1 of runs()");
    expect(() => runs({ ...given, forks: { a: { tool: [] } as never } })).toThrow('unknown option "tool"');
    const from = runs({ ...given, forks: { a: { tools: [] } } });
    const more = { name: "x", scorers: [isNew], from };
    expect(() => experiment({ ...more, agent: guard, cases: [] })).toThrow("experiment x has from");
    expect(() => experiment({ ...more, variants: { guard } })).toThrow("experiment x has from");
    const other = experiment({ ...more, agent: guard.with({ name: "other" }) });
    const run = await runtime.start(other, {});
    expect((await run.result()).error?.message).toContain(
      `run ${ids[0]} is a run of guard, and the agent of the experiment is other`,
    );
  }));
