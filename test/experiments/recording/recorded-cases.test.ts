import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  addCases,
  experiment,
  jsonLines,
  readExperiment,
  type ExperimentResult,
} from "../../../src/entries/experiments.ts";
import { Agent, openRuntime, tool, type Runtime } from "../../../src/entries/index.ts";
import { supervisor } from "../../../src/entries/architectures.ts";
import { memoryStore } from "../../../src/runtime/index.ts";
import { scriptedModel, type ScriptStep } from "../../../src/testing/index.ts";

let folder = "";
let files = 0;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "reeve-recorded-cases-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const look = (executed: string[]) =>
  tool({
    name: "look",
    description: "Looks.",
    inputSchema: { type: "object", properties: { at: { type: "string" } } } as const,
    needsApproval: ({ at }) => at === "secret door",
    execute: ({ at = "" }) => {
      executed.push(at);
      return `${at} is ${executed.length}`;
    },
  });

const asks = (...places: readonly string[]): ScriptStep => ({
  toolCalls: places.map((at) => ({ name: "look", input: { at } })),
});

/** Runs the agent once for each input, in one session, and adds the runs to a case file. */
async function cases(agent: Agent, ...inputs: readonly string[]): Promise<string> {
  const file = join(folder, `cases-${++files}.jsonl`);
  const store = memoryStore();
  const runtime = await openRuntime({ store });
  const ids = [];
  for (const input of inputs) {
    const run = await agent.submit(input, { runtime, sessionId: "s" });
    for (const { approvalId } of await run.untilPersonIsNeeded())
      await run.approve(approvalId, { decision: "approved" });
    await run.result();
    ids.push(run.runId);
  }
  await runtime.close();
  await addCases(store, ids, file);
  return file;
}

function same({ output, expected }: { readonly output: unknown; readonly expected: unknown }): boolean {
  return output === expected;
}

async function withRuntime<Result>(use: (runtime: Runtime) => Promise<Result>): Promise<Result> {
  const runtime = await openRuntime({ store: memoryStore(), retry: { maxRetries: 0 } });
  try {
    return await use(runtime);
  } finally {
    await runtime.close();
  }
}

function rows({ results }: ExperimentResult): readonly string[] {
  return results.map(({ status, output, error, scores, costUsd }) =>
    [status, output, error, scores["same"]?.score, costUsd].map(String).join(" | "),
  );
}

test("stored runs of a session replay as cases without models, tools and persons", async () => {
  const executed: string[] = [];
  const agent = (script: readonly ScriptStep[]): Agent =>
    new Agent({ name: "guard", model: scriptedModel(script), tools: [look(executed)] });
  const file = await cases(
    agent([asks("gate", "secret door"), "Both are shut.", asks("gate"), "Still shut."]),
    "What is shut?",
    "And now?",
  );
  const before = executed.length;
  const given = { name: "guards", agent: agent([]), cases: jsonLines(file), scorers: [same], trials: 2 };
  const result = await withRuntime((runtime) => experiment({ ...given, model: "recorded" }).run({ runtime }));
  expect(rows(result).toSorted()).toEqual([
    "completed | Both are shut. | null | 1 | 0",
    "completed | Both are shut. | null | 1 | 0",
    "completed | Still shut. | null | 1 | 0",
    "completed | Still shut. | null | 1 | 0",
  ]);
  // Offline, live modes do not count.
  const offline = experiment({ ...given, tools: "live", trials: 1 });
  const ended = await withRuntime((runtime) => offline.run({ runtime, offline: true }));
  expect(rows(ended).toSorted()).toEqual([
    "completed | Both are shut. | null | 1 | 0",
    "completed | Still shut. | null | 1 | 0",
  ]);
  expect(executed.length).toBe(before);
});

test("a replay uses the corrected call if repairToolCall has corrected it in the recorded run", async () => {
  const executed: string[] = [];
  const agent = (script: readonly ScriptStep[]): Agent =>
    new Agent({
      name: "fixer",
      model: scriptedModel(script),
      tools: [look(executed)],
      repairToolCall: () => ({ toolName: "look", input: { at: "gate" } }),
    });
  const wrong = { toolCalls: [{ name: "functions.look", input: { place: "gate" } }] };
  const file = await cases(agent([wrong, wrong, "Shut."]), "What is shut?");
  const before = executed.length;
  const given = { name: "repairs", agent: agent([]), cases: jsonLines(file), scorers: [same] };
  const result = await withRuntime((runtime) => experiment({ ...given, model: "recorded" }).run({ runtime }));
  expect(rows(result)).toEqual(["completed | Shut. | null | 1 | 0"]);
  expect([before, executed.length]).toEqual([2, 2]);
});

test("a changed prompt of a worker ends the replayed trial with the step, what was recorded and what was asked", async () => {
  const team = (instructions: string, script: readonly (readonly ScriptStep[])[]): Agent => {
    const [lead = [], work = []] = script;
    const worker = new Agent({
      name: "digger",
      description: "Digs.",
      instructions,
      model: scriptedModel(work),
    });
    return new Agent({
      name: "lead",
      model: scriptedModel(lead),
      architecture: supervisor({ workers: { digger: worker } }),
    });
  };
  const lead = [{ toolCalls: [{ name: "delegate", input: { worker: "digger", task: "Dig." } }] }, "Dug."];
  const file = await cases(team("Dig deep.", [lead, ["Three feet."]]), "Dig here.");
  const run = (agent: Agent): Promise<ExperimentResult> =>
    withRuntime((runtime) =>
      experiment({ name: "digs", agent, cases: jsonLines(file), scorers: [same], model: "recorded" }).run({
        runtime,
      }),
    );
  expect(rows(await run(team("Dig deep.", [])))).toEqual(["completed | Dug. | null | 1 | 0"]);
  const [row] = rows(await run(team("Dig wide.", [])));
  expect(row).toMatch(
    /^failed .* differs at step 3 \(event \d+\): the model call of digger differs at request\.messages\[0\]\.content: recorded "Dig deep\.", asked "Dig wide\."/u,
  );
});

test("the replay modes of a case take precedence over those of the experiment, and cases without a recording are live", async () => {
  const executed: string[] = [];
  const stored = new Agent({
    name: "guard",
    model: scriptedModel([asks("gate"), "Shut."]),
    tools: [look(executed)],
  });
  const [recorded] = await jsonLines(await cases(stored, "What is shut?"))();
  const answer = ["Open.", "Open.", "Open."].flatMap((text) => [asks("gate"), text]);
  const agent = stored.with({ model: scriptedModel(answer) });
  const given = [
    { ...recorded, id: "offline", input: "What is shut?", model: "recorded" },
    { ...recorded, id: "tools", input: "What is shut?" },
    { ...recorded, id: "live", input: "What is shut?", tools: "live" },
    { id: "plain", input: "What is shut?" },
  ] as const;
  const result = await withRuntime((runtime) =>
    experiment({ name: "modes", agent, cases: given, scorers: [same], seats: 1 }).run({ runtime }),
  );
  expect(result.results.map(({ caseId, output }) => [caseId, output])).toEqual([
    ["offline", "Shut."],
    ["tools", "Open."],
    ["live", "Open."],
    ["plain", "Open."],
  ]);
  expect(executed).toEqual(["gate", "gate", "gate"]);
});

test("a worker that takes over a replay gives the next equal call the next recorded result", async () => {
  const reached = Promise.withResolvers<void>();
  const tools = (wait: () => Promise<string>) => {
    let calls = 0;
    const inputSchema = { type: "object", properties: {} } as const;
    return [
      tool({ name: "count", description: "Counts.", inputSchema, execute: () => ({ calls: ++calls }) }),
      tool({ name: "pause", description: "Waits.", inputSchema, timeoutMs: null, execute: wait }),
    ];
  };
  const step = (name: string): ScriptStep => ({ toolCalls: [{ name, input: {} }] });
  const script = [step("count"), step("count"), step("pause"), step("count"), "Thrice."];
  const agent = (wait: () => Promise<string>, steps: readonly ScriptStep[] = []): Agent =>
    new Agent({ name: "counter", model: scriptedModel(steps), tools: tools(wait) });
  const file = await cases(
    agent(async () => "over", script),
    "Count.",
  );
  const [recorded] = await jsonLines(file)();
  const path = recorded?.recording ?? "";
  const text = JSON.parse(await readFile(path, "utf8")) as { calls: { toolName?: string }[] };
  text.calls = text.calls.filter(({ toolName }) => toolName !== "pause");
  await writeFile(path, JSON.stringify(text));
  const given = (wait: () => Promise<string>) =>
    experiment({
      name: "counts",
      agent: agent(wait),
      cases: jsonLines(file),
      scorers: [same],
      tools: "recorded-or-live",
      model: "recorded",
    });
  const store = memoryStore();
  const first = await openRuntime({ store });
  const release = Promise.withResolvers<string>();
  const blocked = given(() => {
    reached.resolve();
    return release.promise;
  });
  const { runId } = await first.start(blocked, {});
  await reached.promise;
  const closing = first.close();
  release.resolve("over");
  await closing;
  const second = await openRuntime({ store });
  second.register(
    given(() => {
      throw new Error("the call was recorded");
    }),
  );
  const run = await second.find(runId);
  expect(await run?.result()).toMatchObject({ status: "completed" });
  const { results } = await readExperiment(run as never);
  expect(results).toMatchObject([{ status: "completed", output: "Thrice.", error: null }]);
  await second.close();
});

test("experiments with and without recordings share an agent and a runtime", async () => {
  const agent = new Agent({ name: "clerk", model: scriptedModel(["Yes.", "Yes.", "Yes.", "Yes."]) });
  const file = await cases(agent, "Ready?");
  await withRuntime(async (runtime) => {
    const given = { agent, scorers: [same] };
    const plain = [{ id: "plain", input: "Ready?" }];
    runtime.register(agent);
    const outputs = [];
    for (const each of [
      experiment({ ...given, name: "one", cases: jsonLines(file), model: "recorded" }),
      experiment({ ...given, name: "two", cases: plain }),
      experiment({ ...given, name: "three", cases: jsonLines(file), model: "recorded" }),
    ])
      outputs.push(rows(await each.run({ runtime })));
    outputs.push((await agent.invoke("Ready?", { runtime })).output);
    expect(outputs).toEqual([
      ["completed | Yes. | null | 1 | 0"],
      [expect.stringContaining("completed | Yes. | null | 0 | ")],
      ["completed | Yes. | null | 1 | 0"],
      "Yes.",
    ]);
  });
});

test("wrong replay modes and recordings are refused, and the error names the case or the file", async () => {
  const agent = new Agent({ name: "guard", model: scriptedModel([]) });
  const given = { name: "wrong", agent, scorers: [same] };
  const plain = [{ id: "a", input: "Go." }];
  expect(() => experiment({ ...given, cases: plain, model: "replayed" as never })).toThrow(
    'invalid model "replayed" of experiment wrong',
  );
  expect(() => experiment({ ...given, cases: [{ id: "a", input: "Go.", tools: "live" }] })).toThrow(
    'case "a" of experiment wrong has tools or model, but no recording',
  );
  const absent = experiment({
    ...given,
    cases: [{ id: "a", input: "Go.", recording: join(folder, "no.json") }],
  });
  const result = await withRuntime(async (runtime) => {
    const run = await runtime.start(absent, {});
    return run.result();
  });
  expect(result.error?.message).toContain(`invalid recording ${join(folder, "no.json")}: it cannot be read`);
});
