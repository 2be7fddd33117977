import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { ExperimentReport } from "../../../src/entries/experiments.ts";
import { Agent, openRuntime } from "../../../src/entries/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { main, reeve, reeveProcess } from "./reeve-process.ts";

/** An experiment whose agent answers with the first word of its instructions, and logs its calls. */
const polite = `
import { appendFileSync, readFileSync } from "node:fs";
import { Agent } from "reeve";
import { experiment } from "reeve/experiments";
import { scriptedModel } from "reeve/testing";

const answer = async (request) => {
  appendFileSync("calls.log", "call\\n");
  if (process.env.HOLD && readFileSync("calls.log", "utf8").split("\\n").length > 2) await new Promise(() => {});
  return request.messages[0].content.split(" ")[0];
};
const model = {
  provider: "scripted",
  modelId: "first-word",
  generate: async (request, options) => scriptedModel([await answer(request)]).generate(request, options),
  async *stream(request, options) {
    yield* scriptedModel([await answer(request)]).stream(request, options);
  },
};
export const polite = experiment({
  name: "polite",
  agent: new Agent({ name: "clerk", instructions: "Please answer.", model }),
  cases: [{ id: "none", input: "Go." }],
  scorers: [function thanks({ output }) { return output === "Thanks"; }],
  gates: { thanks: { mean: 1 } },
});
`;

test("reeve eval fork tries instructions on stored runs, pays only new calls also after a kill, and scores both ends", async () => {
  const folder = await mkdtemp(join(tmpdir(), "reeve-eval-fork-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await mkdir(join(folder, "evals"));
  const files = {
    "package.json": '{"type":"module"}',
    "evals/polite.eval.js": polite,
    "prompt.md": "Thanks for all.",
  };
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
  const options = { cwd: folder, env: { REEVE_HOME: join(folder, "home") } };
  const store = `sqlite:${join(folder, "runs.db")}` as const;
  const runtime = await openRuntime({ store });
  const model = scriptedModel(["Please one.", "Please two."]);
  const clerk = new Agent({ name: "clerk", instructions: "Please answer.", model });
  for (const input of ["One?", "Two?"]) await clerk.invoke(input, { runtime });
  await runtime.close();

  const fork = ["eval", "fork", "evals/polite.eval.js", "--store", store, "--runs", "agent=clerk"];
  const none = await reeve(fork, options);
  expect([none.code, none.talk]).toEqual([2, expect.stringContaining("reeve eval fork needs a change")]);

  expect(await reeve(["trust", "--store", store, "--yes"], options)).toMatchObject({ code: 0 });
  const change = ["--from", "last-turn", "--instructions", "prompt.md", "--json", "report.json"];
  const args = [...fork, ...change, "--seats", "1"];
  const killed = spawn(process.execPath, [main, ...args], {
    cwd: folder,
    env: { ...process.env, ...options.env, HOLD: "1" },
  });
  onTestFinished(() => void killed.kill("SIGKILL"));
  const ended = once(killed, "close");
  await new Promise<void>((done) => {
    // A trial ends before the call of the next fork.
    killed.stderr.setEncoding("utf8").on("data", (text: string) => {
      if (text.includes("3 of 4 trials")) done();
    });
  });
  killed.kill("SIGKILL");
  await ended;
  const asked = async (): Promise<number> =>
    (await readFile(join(folder, "calls.log"), "utf8")).split("\n").length - 1;
  const before = await asked();
  const { code, out, talk } = await reeveProcess([...args, "--resume"], options);
  expect({ code, talk }).toEqual({ code: 0, talk });
  expect(out).toContain("polite.forks: 2 trials, against baseline the stored runs");
  expect(out.join("\n")).toMatch(/thanks +1\.000 .* \+1\.000 .* better/u);
  // The second call may have been in flight.
  expect(await asked()).toBe(2 + (before - 1));
  const [report] = JSON.parse(await readFile(join(folder, "report.json"), "utf8")) as ExperimentReport[];
  const rows = report?.result.results.map(({ variant, output, turns, scores }) =>
    [variant, output, turns, scores["thanks"]?.score].map(String).join(" "),
  );
  expect(rows).toEqual(["changed Thanks 1 1", "changed Thanks 1 1"]);
});
