import { existsSync } from "node:fs";
import { chmod, mkdir, mkdtemp, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { reeve } from "./reeve-process.ts";

test("reeve init --company writes a lead and an employee for each agent in the PATH, and refuses without one", async () => {
  const root = await realpath(await mkdtemp(join(tmpdir(), "reeve-company-")));
  onTestFinished(() => rm(root, { recursive: true, force: true, maxRetries: 10 }));
  const [project, bin, home] = [join(root, "project"), join(root, "bin"), join(root, "home")];
  for (const folder of [join(project, ".git"), bin, home]) await mkdir(folder, { recursive: true });
  const at = { cwd: project, env: { PATH: bin, REEVE_HOME: home } };
  const none = await reeve(["init", "--company"], at);
  expect(none.talk).toContain("npm install -g @agentclientprotocol/claude-agent-acp");
  // An error that a person can solve has no stack.
  expect([none.code, none.talk.includes("    at ")]).toEqual([7, false]);
  expect(existsSync(join(project, ".reeve"))).toBe(false);
  for (const name of ["codex-acp", "gemini"]) {
    await writeFile(join(bin, name), "#!/bin/sh\n");
    await chmod(join(bin, name), 0o755);
  }
  // The starting point imports the package, which is not installed here.
  await writeFile(join(project, "reeve.config.ts"), "export default {};");
  expect((await reeve(["init", "--company"], at)).talk).toContain("reeve run --agent lead");
  const trusted = await reeve(["trust", "--yes"], at);
  const shown = trusted.out.find((line) => line.includes("agents/codex.md"));
  expect(shown).toContain("an agent that starts the program of harness codex needs trust");
  const { out, talk } = await reeve(["agents"], at);
  const names = out.map((line) => line.split("  ")[0]);
  expect(names).toEqual(["assistant", "codex", "gemini", "lead", "reviewer"]);
  expect(talk).not.toContain("warning");
  expect(out.find((line) => line.startsWith("codex  "))).toContain("starts codex-acp (codex)");
  const { out: values } = await reeve(["agents", "--json"], at);
  expect(JSON.parse(values[2] ?? "")).toMatchObject({ harness: "gemini", command: ["gemini", "--acp"] });
  const lead = await readFile(join(project, ".reeve/agents/lead.md"), "utf8");
  expect(lead).toContain("subAgents: [codex, gemini]");
});
