import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { experimentsOfFile, ProjectEvals } from "../../src/workspace/workspace-evals.ts";

const source = (name: string): string => `
import { Agent } from "reeve";
import { experiment } from "reeve/experiments";
import { scriptedModel } from "reeve/testing";
import { cases } from "./cases.js";
const agent = new Agent({ name: "clerk", model: scriptedModel([]) });
export default experiment({ name: "${name}", agent, cases, scorers: [function any() { return 1; }] });
`;

/** A project with two experiments that load a file beside them. */
async function project(): Promise<{ readonly home: string; readonly project: string; readonly cwd: string }> {
  const folder = await mkdtemp(join(tmpdir(), "reeve-evals-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await mkdir(join(folder, "evals", "deep"), { recursive: true });
  await mkdir(join(folder, "home"));
  await writeFile(join(folder, "package.json"), '{"type":"module"}');
  await writeFile(join(folder, "evals", "cases.js"), 'export const cases = [{ id: "a", input: "x" }];');
  await writeFile(join(folder, "evals", "b.eval.js"), source("two"));
  await writeFile(join(folder, "evals", "deep", "a.eval.mjs"), source("one").replace("./cases", "../cases"));
  await writeFile(join(folder, "evals", "other.js"), "throw new Error('not loaded');");
  return { home: join(folder, "home"), project: folder, cwd: join(folder, "evals") };
}

test("the experiments of a project are found by their names and loaded once the person trusts the project", async () => {
  const places = await project();
  const found = await ProjectEvals.find(places);
  expect(found.files).toEqual(["evals/b.eval.js", "evals/deep/a.eval.mjs"]);
  expect(await found.isTrusted()).toBe(false);
  await found.trust();
  const again = await ProjectEvals.find(places);
  expect(await again.isTrusted()).toBe(true);
  const names = (await again.load()).map(({ file, experiments }) => [
    file,
    ...experiments.map(({ name }) => name),
  ]);
  expect(names).toEqual([
    ["b.eval.js", "two"],
    [join("deep", "a.eval.mjs"), "one"],
  ]);
});

test("a change of a file that an experiment loads ends the project's trust, and a change after the decision is refused", async () => {
  const places = await project();
  const found = await ProjectEvals.find(places);
  await found.trust();
  await writeFile(join(places.cwd, "cases.js"), 'export const cases = [{ id: "b", input: "x" }];');
  expect(await (await ProjectEvals.find(places)).isTrusted()).toBe(false);
  await expect(found.load()).rejects.toThrow(/cases\.js.*changed|changed.*cases\.js|not.*trust/u);
});

test("a project without experiments, and a file without an experiment, are errors that say what to write", async () => {
  const places = await project();
  const other = join(places.cwd, "cases.js");
  await expect(experimentsOfFile(other)).rejects.toThrow("cases.js exports no experiment; export one");
  await expect(experimentsOfFile(join(places.cwd, "no.eval.ts"))).rejects.toThrow("not found; name a file");
  await rm(places.cwd, { recursive: true });
  await expect(ProjectEvals.find(places)).rejects.toThrow("no experiments found");
});
