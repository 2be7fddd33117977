import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, inject, test } from "vitest";
import { env, setUp, type Script } from "./model-server.ts";
import { reeve } from "./reeve-process.ts";

test("reeve run --tools all refuses to start if bubblewrap is missing, names what to install, and exits with 7", async () => {
  const { folder, url, requests } = await setUp(() => ({ text: "done" }));
  const alone = { ...env(url), PATH: join(folder, "empty") };
  const { code, talk } = await reeve(["run", "Do it", "--tools", "all"], { cwd: folder, env: alone });
  expect(code).toBe(7);
  expect(talk).toMatch(
    /^reeve: --tools all needs a sandbox .* the program bwrap is not installed: install bubblewrap/,
  );
  expect(talk).toContain("--sandbox off");
  expect(requests).toHaveLength(0);
});

test.for([
  { mode: "off", says: "run WITHOUT a sandbox, with all your permissions (--sandbox off)" },
  { mode: "warn", says: "run WITHOUT a sandbox, with all your permissions: the program bwrap" },
])("reeve run --sandbox $mode without bubblewrap says that there is no sandbox", async ({ mode, says }) => {
  const shells: Script = (request) =>
    request === 1 ? { tool: "bash", input: { command: "echo x > ran" } } : { text: "done" };
  const { folder, url } = await setUp(shells);
  const alone = { ...env(url), PATH: join(folder, "empty") };
  const args = ["run", "Do it", "--tools", "all", "--yes", "--sandbox", mode];
  const { code, talk } = await reeve(args, { cwd: folder, env: alone });
  expect(code).toBe(0);
  expect(talk).toContain(says);
  expect(existsSync(join(folder, "ran"))).toBe(true);
});

test.skipIf("problem" in inject("bubblewrap"))(
  "reeve run --tools all runs shell commands in the sandbox by default (skipped if bubblewrap is missing)",
  async () => {
    const shells: Script = (request) =>
      request === 1
        ? { tool: "bash", input: { command: "id -u; cat /etc/shadow; echo x > ran" } }
        : { text: "done" };
    const { folder, run, requests } = await setUp(shells);
    const { code, talk } = await run("Do it", "--tools", "all", "--yes");
    expect(code).toBe(0);
    expect(talk).not.toContain("WITHOUT");
    expect(JSON.stringify(requests[1])).toContain("1000\\ncat: /etc/shadow: No such file");
    expect(existsSync(join(folder, "ran"))).toBe(true);
  },
);

test("reeve run --resume keeps the sandbox of the run, says so, and cannot change it", async () => {
  const { folder, url } = await setUp((request) => (request === 1 ? { error: 401 } : { text: "done" }));
  const alone = { ...env(url), PATH: join(folder, "empty") };
  const run = (...args: readonly string[]) => reeve(["run", ...args], { cwd: folder, env: alone });
  const failed = await run("Do it", "--tools", "all", "--sandbox", "off", "--mode", "json");
  const { runId } = JSON.parse(failed.out.at(-1) ?? "") as { runId: string };
  const refused = await run("--resume", runId, "--sandbox", "enforce");
  expect(refused.talk).toContain("--resume cannot change the options of a run; remove --sandbox");
  const { code, talk } = await run("--resume", runId);
  expect(talk).toContain("run WITHOUT a sandbox");
  expect(code).toBe(0);
});
