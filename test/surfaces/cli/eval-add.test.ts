import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { Agent, openRuntime, tool } from "../../../src/entries/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { reeve } from "./reeve-process.ts";

/** A store with one run, in a folder of the test. */
async function storedRun(): Promise<{ folder: string; store: `sqlite:${string}`; runId: string }> {
  const folder = await mkdtemp(join(tmpdir(), "reeve-eval-add-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const store = `sqlite:${join(folder, "runs.db")}` as const;
  const login = tool({
    name: "login",
    description: "Logs in.",
    inputSchema: { type: "object", properties: { pin: { type: "string" } } } as const,
    secret: ["pin"],
    execute: () => "in",
  });
  const model = scriptedModel([{ toolCalls: [{ name: "login", input: { pin: "4711" } }] }, "Done."]);
  const runtime = await openRuntime({ store });
  const run = await runtime.submit(new Agent({ name: "clerk", model, tools: [login] }), "Log in.");
  await run.result();
  await runtime.close();
  return { folder, store, runId: run.runId };
}

test("reeve eval add makes a case of a run, and reports that it removed a secret without the secret", async () => {
  const { folder, store, runId } = await storedRun();
  const file = join(folder, "cases.jsonl");
  const { code, out } = await reeve(["eval", "add", runId.slice(0, 12), "--to", file, "--store", store]);
  expect(code).toBe(0);
  expect(out).toEqual([
    `${runId}  2 model calls, 1 tool calls  ${folder}/cases.recordings/${runId}.json  secrets removed: 1 in replies of models, 1 in calls of login`,
  ]);
  expect(await readFile(file, "utf8")).toContain(`"recording":"./cases.recordings/${runId}.json"`);
  expect(await readFile(join(folder, "cases.recordings", `${runId}.json`), "utf8")).not.toContain("4711");
});

test("reeve eval add chooses runs with --where, and refuses a second case of a run, no run, and a run with --where", async () => {
  const { folder, store, runId } = await storedRun();
  const given = ["--to", join(folder, "cases.jsonl"), "--store", store];
  const where = ["--where", "agent=clerk", "status=completed"];
  const added = await reeve(["eval", "add", ...given, "--json", ...where]);
  expect(JSON.parse(added.out.join(""))).toMatchObject({ id: runId, redactions: { "calls of login": 1 } });
  const again = await reeve(["eval", "add", runId, ...given]);
  expect([again.code, again.talk]).toEqual([2, expect.stringContaining(`has a case ${runId}`)]);
  const none = await reeve(["eval", "add", ...given]);
  expect([none.code, none.talk]).toEqual([2, expect.stringContaining("missing RUN")]);
  const both = await reeve(["eval", "add", runId, ...given, ...where]);
  expect([both.code, both.talk]).toEqual([2, expect.stringContaining("cannot be combined")]);
  const other = await reeve(["eval", "add", ...given, "--where", "agent=nobody"]);
  expect([other.code, other.talk]).toEqual([3, expect.stringContaining("no run fits")]);
});
