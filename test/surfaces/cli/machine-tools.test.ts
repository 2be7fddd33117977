import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, inject, onTestFinished, test, vi } from "vitest";
import { Agent } from "../../../src/entries/index.ts";
import { createRuntime } from "../../../src/runtime/local-runtime.ts";
import { idleEngine } from "../../../src/surfaces/cli/setup/idle-engine.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { env, setUp, type Script } from "./model-server.ts";
import { main, reeve } from "./reeve-process.ts";
import { serve } from "./serve-process.ts";
import { startWorker } from "./worker-process.ts";

/**
 * A folder on a machine without bubblewrap, Chromium and a display. Its user has four agents: one has all tools, and the
 * others name the shell, the browser and the desktop.
 */
async function bareMachine(script: Script) {
  const setup = await setUp(script);
  const home = join(setup.folder, "home");
  await mkdir(join(home, "agents"), { recursive: true });
  const agents = { handy: "all", coder: "read, bash", surfer: "browser", clicker: "desktop" };
  for (const [name, tools] of Object.entries(agents))
    await writeFile(join(home, `agents/${name}.md`), `---\ntools: [${tools}]\n---\nx`);
  const alone = {
    ...env(setup.url),
    PATH: join(setup.folder, "empty"),
    REEVE_CHROMIUM: join(setup.folder, "absent"),
    DISPLAY: "",
    REEVE_HOME: home,
  };
  return { ...setup, alone };
}

/** What a command says on such a machine. */
const said = [
  /this machine cannot offer the tool bash: the program bwrap is not installed: install bubblewrap .+\. Without it work: handy\. Refused, because they name it: coder\./,
  /this machine cannot offer the tool browser: REEVE_CHROMIUM is .+, which is not an executable file: .+\. Refused, because they name it: surfer\./,
  /this machine cannot offer the tool desktop: there is no X display: .+\. Refused, because they name it: clicker\./,
];

test("reeve serve starts without bubblewrap, Chromium and a display, and refuses only agents that need a missing one", async () => {
  const { folder, url, alone, requests } = await bareMachine(() => ({ text: "done" }));
  for (const [name, value] of Object.entries(alone)) vi.stubEnv(name, value);
  onTestFinished(() => void vi.unstubAllEnvs());
  const server = await serve(folder, url, "--no-token");
  for (const text of said) expect(server.said()).toMatch(text);
  expect(server.said()).not.toContain("--tools all");
  const listed = (await (await fetch(`${server.link.origin}/api/agents`)).json()) as {
    readonly agents: readonly { readonly name: string }[];
  };
  expect(listed.agents.map(({ name }) => name)).toEqual(["assistant", "handy"]);
  const start = async (agent: string) => {
    const response = await fetch(`${server.link.origin}/api/runs`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ agent, input: "Hi" }),
    });
    return (await response.json()) as Record<string, unknown> & { readonly run: { readonly runId: string } };
  };
  for (const [agent, tool] of Object.entries({ coder: "bash", surfer: "browser", clicker: "desktop" }))
    expect(await start(agent)).toMatchObject({
      status: 501,
      code: "dependency_missing",
      detail: expect.stringMatching(
        new RegExp(`^agent ${agent} of .+ names the tool ${tool}, which this machine cannot offer: `, "u"),
      ) as string,
    });
  const { run } = await start("handy");
  const result = await fetch(`${server.link.origin}/api/runs/${run.runId}/result?waitMs=60000`);
  expect(await result.json()).toMatchObject({ status: "completed", output: "done" });
  const tools = (requests[0]?.["tools"] ?? []) as readonly { readonly function: { readonly name: string } }[];
  expect(tools.map((each) => each.function.name)).toContain("write");
  expect(tools.map((each) => each.function.name)).not.toContain("bash");
});

test("reeve worker starts without bubblewrap, Chromium and a display, and leaves runs that need a missing one to others", async () => {
  const { folder, alone } = await bareMachine(() => ({ text: "done" }));
  const worker = await startWorker({ main, cwd: folder, env: alone });
  const started = await worker.logged(({ event }) => event === "worker_started");
  expect(started).toMatchObject({ agents: ["assistant", "handy"] });
  for (const text of said)
    expect(worker.lines).toContainEqual(
      expect.objectContaining({
        level: "warn",
        event: "notice",
        message: expect.stringMatching(text) as string,
      }),
    );
  const store = `sqlite:${join(folder, ".reeve/reeve.db")}` as const;
  const runtime = await createRuntime({ store, engine: idleEngine });
  onTestFinished(() => runtime.close());
  const submit = (name: string) =>
    runtime.submit(new Agent({ name, model: scriptedModel([]) }), "Hi", { streaming: true });
  const { runId } = await submit("coder");
  const left = await worker.logged(({ event }) => event === "run_left_alone");
  expect(left).toMatchObject({ runId, message: expect.stringContaining("agent coder of ") as string });
  expect(await (await submit("handy")).result()).toMatchObject({ status: "completed", output: "done" });
});

test("reeve run refuses an agent whose shell is missing before it creates a store, and runs an agent that has all tools", async () => {
  const { folder, alone } = await bareMachine(() => ({ text: "done" }));
  const run = (...args: readonly string[]) => reeve(["run", "Hi", ...args], { cwd: folder, env: alone });
  const refused = await run("--agent", "coder");
  expect(refused.code).toBe(7);
  expect(refused.talk).toMatch(
    /^reeve: agent coder of .+ names the tool bash, which this machine cannot offer: /u,
  );
  expect(existsSync(join(folder, ".reeve"))).toBe(false);
  const { code, talk } = await run("--agent", "handy");
  expect(code).toBe(0);
  expect(talk).toContain("this machine cannot offer the tool bash: ");
});

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
