import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { ExperimentReport } from "../../../src/entries/experiments.ts";
import { isFull } from "../../effort.ts";
import { main, reeve, reeveProcess, type Said } from "./reeve-process.ts";

/** Experiments whose agent knows two of three capitals, logs its calls, and answers a fourth call only without `HOLD`. */
const capitals = `
import { appendFileSync, readFileSync } from "node:fs";
import { Agent } from "reeve";
import { completed, exactMatch, experiment, jsonLines } from "reeve/experiments";
import { scriptedModel } from "reeve/testing";

const towns = { France: "Paris", Italy: process.env.ITALY ?? "Lyon", Spain: "Madrid" };
const answer = async (request) => {
  appendFileSync("calls.log", "call\\n");
  if (process.env.HOLD && readFileSync("calls.log", "utf8").split("\\n").length > 4) await new Promise(() => {});
  if (process.env.FETCH) await fetch("http://127.0.0.1:45999/v1");
  const asked = JSON.stringify(request.messages.at(-1));
  return Object.entries(towns).find(([land]) => asked.includes(land))?.[1] ?? "?";
};
const model = {
  provider: "scripted",
  modelId: "capitals",
  generate: async (request, options) => scriptedModel([await answer(request)]).generate(request, options),
  async *stream(request, options) {
    yield* scriptedModel([await answer(request)]).stream(request, options);
  },
};
export const capitals = experiment({
  name: "capitals",
  agent: new Agent({ name: "geographer", model, retry: false }),
  cases: jsonLines("./capitals.jsonl"),
  scorers: [exactMatch(), completed()],
  gates: { exactMatch: process.env.DROP ? { maxDrop: 0.1 } : { mean: 0.6 } },
  seats: 1,
  budget: process.env.TURNS && { maxTurns: Number(process.env.TURNS) },
});
`;

const cases = ["France Paris", "Italy Rome", "Spain Madrid"].map((line) => {
  const [land = "", town = ""] = line.split(" ");
  return { id: land.toLowerCase(), input: `Capital of ${land}?`, expected: town, tags: [town[0]] };
});

type Call = (args: readonly string[], env?: Readonly<Record<string, string>>) => Promise<Said>;

/** A project with the experiment, and a function that calls the command line in it. */
async function project(): Promise<{
  readonly folder: string;
  readonly home: string;
  /** Runs an experiment in a process of its own, because its file loads the built package. */
  readonly run: Call;
  /** Calls the command in this process. It must end before a run. */
  readonly call: Call;
}> {
  const folder = await mkdtemp(join(tmpdir(), "reeve-eval-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const home = join(folder, "home");
  await mkdir(join(folder, "evals"));
  await writeFile(join(folder, "package.json"), '{"type":"module"}');
  await writeFile(join(folder, "evals", "capitals.eval.js"), capitals);
  await writeFile(
    join(folder, "evals", "capitals.jsonl"),
    cases.map((each) => `${JSON.stringify(each)}\n`).join(""),
  );
  const by =
    (start: typeof reeve): Call =>
    (args, env = {}) =>
      start(["eval", ...args], { cwd: folder, env: { REEVE_HOME: home, ...env } });
  return { folder, home, run: by(reeveProcess), call: by(reeve) };
}

const file = "evals/capitals.eval.js";

test("reeve eval reports the scores, writes reports and a baseline, and later compares with the baseline", async () => {
  const { folder, run } = await project();
  const first = await run([
    file,
    "--save=main",
    "--json=out/r.json",
    "--junit=out/r.xml",
    "--markdown=out/r.md",
  ]);
  expect(first).toMatchObject({ code: 0 });
  expect(first.out.join("\n")).toMatch(/exactMatch +0\.667/u);
  expect(first.out).toContain("  passed  exactMatch: the mean is 0.667, and must be at least 0.6");
  expect(first.talk).toContain("3 of 3 trials");
  const [report] = JSON.parse(await readFile(join(folder, "out/r.json"), "utf8")) as ExperimentReport[];
  expect(report?.rows[0]).toMatchObject({ scorer: "exactMatch", estimate: { count: 3 } });
  expect(await readFile(join(folder, "out/r.xml"), "utf8")).toContain('<testcase name="italy"');
  expect(await readFile(join(folder, "out/r.md"), "utf8")).toContain("### Experiment `capitals`: passed");

  const args = ["--baseline", "main", "--filter", "a", "--tag", "R", "--tag", "P", "--trials", "2"];
  const better = await run([file, ...args], { ITALY: "Rome", DROP: "1" });
  expect(better).toMatchObject({ code: 0 });
  expect(better.out[0]).toBe("capitals: 4 trials, against baseline main");
  expect(better.out.join("\n")).toContain("italy: exactMatch 0.000 -> 1.000, passes now");
  expect(better.out).toContain("  passed  exactMatch: the mean has not dropped, and may drop by 0.1");
});

test("reeve eval ends with 20 if a gate on the scores fails, with 21 if a case fails, and with 2 before it starts a run", async () => {
  const { run, call } = await project();
  const failed = await run([file, "--tag", "R"]);
  expect(failed.code).toBe(20);
  expect(failed.out.join("\n")).toContain("FAILED  exactMatch: the mean is 0.000, and must be at least 0.6");
  const offline = await run([file, "--offline"], { FETCH: "1" });
  expect(offline.code).toBe(21);
  expect(offline.out.join("\n")).toContain("--offline allows none");
  const wrong: readonly (readonly [readonly string[], string])[] = [
    [[file, "--tag", "none"], "no case of experiment capitals is selected"],
    [[file, "--max-cost", "much"], "invalid --max-cost much"],
    [[file, "--seats", "0"], "invalid --seats 0"],
    [[file, "--save", "../x"], 'invalid name "../x" of a baseline'],
    [
      [file, "--junit", `${file}/report.xml`],
      `invalid --junit ${file}/report.xml: no file can be written there`,
    ],
  ];
  for (const [args, message] of wrong) {
    const { code, talk, out } = await call(args);
    expect({ code, out }).toEqual({ code: 2, out: [] });
    expect(talk).toContain(message);
  }
  expect(await call([file, "--baseline", "absent"])).toMatchObject({ code: 3 });
});

test("reeve eval starts no run for a gate that needs a baseline, nor for a broken case file, and names settings without trust", async () => {
  const { folder, call } = await project();
  await mkdir(join(folder, ".reeve"));
  await writeFile(join(folder, ".reeve", "settings.json"), '{"unknownPrice":"ignore"}');
  const alone = await call([file], { DROP: "1" });
  expect(alone).toMatchObject({ code: 2, out: [] });
  expect(alone.talk).toContain("without trust these settings have no effect; reeve trust accepts them");
  expect(alone.talk).toContain("gate exactMatch has maxDrop, which compares with a baseline");
  await writeFile(join(folder, "evals", "capitals.jsonl"), '{"id":"a","input":"x"}\n{"id":"a"\n');
  const broken = await call([file, "--save", "main"]);
  expect(broken).toMatchObject({ code: 2, out: [] });
  expect(broken.talk).toContain("capitals.jsonl:2 is not JSON");
});

test("reeve eval executes the project's experiments without a FILE only if the person trusts the project", async () => {
  const { call } = await project();
  const refused = await call([]);
  expect(refused).toMatchObject({ code: 8, out: [] });
  expect(refused.talk).toContain(file);
  expect(refused.talk).toContain(`name the files that you want to run, as in reeve eval ${file}`);
});

// The crash suite kills experiments at each write.
test.each(isFull ? (["SIGKILL", "SIGINT"] as const) : (["SIGINT"] as const))(
  "reeve eval --resume continues a run after %s and after a top-up, and repeats no recorded answer",
  async (signal) => {
    const { folder, home, run, call } = await project();
    const calls = async (): Promise<number> =>
      (await readFile(join(folder, "calls.log"), "utf8")).split("\n").length - 1;
    const limited = { TURNS: "6" };
    const env = { ...process.env, REEVE_HOME: home, HOLD: "1", ...limited };
    const killed = spawn(process.execPath, [main, "eval", file, "--trials", "3"], { cwd: folder, env });
    onTestFinished(() => void killed.kill("SIGKILL"));
    const ended = once(killed, "close");
    let said = "";
    await new Promise<void>((done) => {
      killed.stderr.setEncoding("utf8").on("data", (text: string) => {
        said += text;
        if (said.includes("3 of 9 trials")) done();
      });
    });
    // The fourth call may be in flight.
    killed.kill(signal);
    expect((await ended)[0]).toBe(signal === "SIGINT" ? 21 : null);
    const [runId = ""] = /run_[\w-]+/u.exec(said) ?? [];
    // A killed process says nothing.
    const last = signal === "SIGINT" ? `reeve eval ${file} --resume ${runId} continues` : runId;
    expect(said).toContain(last);
    const before = await calls();
    const stopped = await run(["--resume", file], limited);
    expect(stopped.code).toBe(21);
    const topUp = `continues it after reeve top-up ${runId} --turns N`;
    expect(stopped.talk).toContain(`reeve: reeve eval ${file} --resume ${runId} ${topUp}`);
    const refused = await call([file, "--resume"], limited);
    expect([refused.code, refused.talk]).toEqual([2, expect.stringContaining(topUp)]);
    const place = { cwd: folder, env: { REEVE_HOME: home } };
    expect(await reeve(["top-up", runId, "--turns", "9"], place)).toMatchObject({ code: 0 });
    const resumed = await run(["--resume", file]);
    expect(resumed).toMatchObject({ code: 0 });
    expect(resumed.out[0]).toBe("capitals: 9 trials");
    expect(resumed.talk).toContain(runId);
    expect(await calls()).toBe(9 + (before - 3));
    expect((await call([file, "--resume"])).talk).toContain("no run of experiment capitals can be continued");
  },
);
