import { existsSync } from "node:fs";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { Agent, type Runtime } from "../../../src/entries/index.ts";
import { createRuntime } from "../../../src/runtime/local-runtime.ts";
import { idleEngine } from "../../../src/surfaces/cli/setup/idle-engine.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { rawRequest } from "../../attacks/server-requests.ts";
import { env, setUp } from "./model-server.ts";
import { parseExposition } from "./prometheus-parser.ts";
import { main, reeve } from "./reeve-process.ts";
import { startWorker, type RunningWorker } from "./worker-process.ts";

/** Starts a worker in a folder with the models of a server. */
function worker(folder: string, url: string, ...args: string[]): Promise<RunningWorker> {
  return startWorker({ main, cwd: folder, env: env(url), args });
}

/** A worker of a folder that its user has trusted, in a home folder of its own. */
async function trustedWorker(folder: string, variables: Readonly<Record<string, string>>) {
  const place = { cwd: folder, env: { ...variables, REEVE_HOME: join(folder, "home") } };
  const trust = async (): Promise<void> => {
    expect(await reeve(["trust", "--yes"], place)).toMatchObject({ code: 0 });
  };
  await trust();
  return { one: await startWorker({ main, ...place }), trust };
}

/** A runtime on the store of a folder that submits runs and executes no run. */
async function caller(folder: string): Promise<Runtime> {
  await mkdir(join(folder, ".reeve"), { recursive: true });
  const runtime = await createRuntime({
    store: `sqlite:${join(folder, ".reeve/reeve.db")}`,
    engine: idleEngine,
    sameName: "replace",
  });
  onTestFinished(() => runtime.close());
  return runtime;
}

/** Submits a run to an agent that only the worker hosts, and returns its id. */
async function submit(runtime: Runtime, name: string, input: string): Promise<string> {
  const agent = new Agent({ name, model: scriptedModel([]) });
  return (await runtime.submit(agent, input, { streaming: true })).runId;
}

async function status(url: string, method = "GET"): Promise<readonly [number, string]> {
  const response = await fetch(url, { method });
  return [response.status, await response.text()];
}

async function metrics(url: string): Promise<ReturnType<typeof parseExposition>> {
  const response = await fetch(`${url}/metrics`);
  expect(response.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
  return parseExposition(await response.text());
}

describe("reeve worker", () => {
  test("reeve worker ends with exit code 4 and names the file when its store was deleted", async () => {
    const { folder, url } = await setUp(() => ({ text: "Done." }));
    const place = { cwd: folder, env: { ...env(url), REEVE_HOME: join(folder, "home") } };
    const ended = reeve(["worker"], place);
    const file = join(folder, ".reeve/reeve.db");
    await expect.poll(() => existsSync(`${file}-workers`)).toBe(true);
    await rm(file);
    const { code, talk } = await ended;
    expect([code, talk]).toEqual([4, expect.stringContaining("reeve.db was deleted or moved away")]);
  });

  test("reeve worker executes submitted runs, answers its probes and counts runs, steps, tokens and dollars", async () => {
    const { folder, url } = await setUp(() => ({ text: "Done." }));
    const one = await worker(folder, url, "--concurrency", "4", "--allow-host", "probes.example");
    const runtime = await caller(folder);
    const runId = await submit(runtime, "assistant", "Hi");
    const ended = await one.logged(({ event }) => event === "run_ended");
    expect(ended).toMatchObject({ level: "info", runId, status: "completed", turns: 1 });
    expect(await (await runtime.find(runId))?.result()).toMatchObject({ output: "Done." });
    expect(await status(`${one.url}/healthz`)).toEqual([200, "ok\n"]);
    expect(await status(`${one.url}/readyz`)).toEqual([200, "ready\n"]);
    expect((await status(`${one.url}/readyz`, "POST"))[0]).toBe(405);
    expect((await status(`${one.url}/api/runs`))[0]).toBe(404);
    const probed = async (headers: Readonly<Record<string, string>>) =>
      (await rawRequest(Number(new URL(one.url).port), { path: "/metrics", headers })).status;
    expect(await probed({ host: "rebound.example" })).toBe(403);
    expect(await probed({ host: "localhost", origin: "http://evil.example" })).toBe(403);
    expect(await probed({ host: "localhost", "sec-fetch-site": "cross-site" })).toBe(403);
    expect(await probed({ host: "probes.example:9464" })).toBe(200);
    const families = await metrics(one.url);
    const values = (name: string) =>
      families.get(name)?.samples.map(({ labels, value }) => [...Object.values(labels), value]);
    expect(values("reeve_runs_claimed_total")).toEqual([[1]]);
    expect(values("reeve_runs_ended_total")).toEqual([["completed", 1]]);
    expect(values("reeve_runs_owned")).toEqual([[0]]);
    expect(values("reeve_queue_length")).toEqual([[0]]);
    expect(values("reeve_runs_taken_over_total")).toEqual([[0]]);
    expect(values("reeve_heartbeats_lost_total")).toEqual([[0]]);
    expect(values("reeve_worker_ready")).toEqual([[1]]);
    expect(values("reeve_store_up")).toEqual([[1]]);
    const model = "openai-compatible/gpt-4o";
    expect(values("reeve_tokens_total")).toEqual([
      [model, "input", 1_000],
      [model, "output", 100],
      [model, "unreported", 0],
    ]);
    const cost = (await runtime.usage({ by: "model" }))[0]?.costUsd;
    expect(values("reeve_cost_usd_total")).toEqual([[model, cost]]);
    expect(values("reeve_steps_total")?.[0]?.[0]).toBeGreaterThan(0);
    one.signal("SIGTERM");
    expect(await one.ended).toBe(0);
  });

  test("reeve worker on SIGTERM claims no more runs, records the call in flight and releases the run to the next worker", async () => {
    const answer = Promise.withResolvers<{ readonly tool: string; readonly input: { path: string } }>();
    const { folder, url, asked, requests } = await setUp((request) =>
      request === 1 ? answer.promise : { text: "Green." },
    );
    const one = await worker(folder, url);
    const runtime = await caller(folder);
    const runId = await submit(runtime, "assistant", "Which colour?");
    await asked(1);
    one.signal("SIGTERM");
    await one.logged(({ event }) => event === "worker_draining");
    expect(await status(`${one.url}/readyz`)).toEqual([503, "the worker is draining\n"]);
    expect((await status(`${one.url}/healthz`))[0]).toBe(200);
    const late = await submit(runtime, "assistant", "Late");
    answer.resolve({ tool: "read", input: { path: "notes.txt" } });
    expect(await one.ended).toBe(0);
    expect(requests).toHaveLength(1);
    const events = one.lines.map(({ event }) => event);
    expect(events.slice(-1)).toEqual(["worker_stopped"]);
    expect(one.lines.find(({ event }) => event === "run_released")).toMatchObject({ runId, rest: "ready" });
    expect(one.lines.some((line) => line.runId === late)).toBe(false);
    const other = await worker(folder, url);
    for (const each of [runId, late])
      expect(await (await runtime.find(each))?.result()).toMatchObject({ output: "Green." });
    expect(requests).toHaveLength(3);
    expect(JSON.stringify(requests.slice(1))).toContain("The lamp is green.");
    other.signal("SIGTERM");
    expect(await other.ended).toBe(0);
  });

  test("reeve worker whose calls do not settle ends after --drain-timeout, and at once on a second signal", async () => {
    const { folder, url, asked } = await setUp(() => undefined);
    const hasty = await worker(folder, url, "--drain-timeout", "0.05");
    await submit(await caller(folder), "assistant", "One");
    await asked(1);
    hasty.signal("SIGTERM");
    expect(await hasty.ended).toBe(0);
    // The next worker takes the run over, so that it has a call in flight, too.
    const patient = await worker(folder, url, "--drain-timeout", "3600");
    await asked(2);
    patient.signal("SIGTERM");
    await patient.logged(({ event }) => event === "worker_draining");
    patient.signal("SIGTERM");
    expect(await patient.ended).toBe("SIGKILL");
  });

  test("reeve worker reads the files of its agents again on SIGHUP", async () => {
    const { folder, url, requests } = await setUp(() => ({ text: "All is well." }));
    const file = join(folder, ".reeve/agents/watch.md");
    const agentFile = (place: string): string =>
      `---\nmodel: openai-compatible/mini\n---\nGuard the ${place}.\n`;
    await mkdir(join(folder, ".reeve/agents"), { recursive: true });
    await writeFile(file, agentFile("gate"));
    const { one } = await trustedWorker(folder, env(url));
    const runtime = await caller(folder);
    const guards = async (place: string): Promise<boolean> => {
      const runId = await submit(runtime, "watch", "Look around");
      await (await runtime.find(runId))?.result();
      return JSON.stringify(requests.at(-1)).includes(`Guard the ${place}.`);
    };
    expect(await guards("gate")).toBe(true);
    await writeFile(file, agentFile("tower"));
    one.signal("SIGHUP");
    while (!(await guards("tower")));
    one.signal("SIGINT");
    expect(await one.ended).toBe(0);
  });

  test("reeve worker uses the model of settings.json for new runs after SIGHUP", async () => {
    const { folder, url, requests } = await setUp(() => ({ text: "All is well." }));
    const settings = join(folder, ".reeve/settings.json");
    await mkdir(join(folder, ".reeve"), { recursive: true });
    const setModel = (id: string): Promise<void> =>
      writeFile(settings, JSON.stringify({ model: `openai-compatible/${id}` }));
    await setModel("mini");
    const { REEVE_MODEL: _unset, ...keys } = env(url);
    const { one, trust } = await trustedWorker(folder, keys);
    const runtime = await caller(folder);
    const model = async (): Promise<unknown> => {
      const runId = await submit(runtime, "assistant", "Look around");
      await (await runtime.find(runId))?.result();
      return (requests.at(-1) as { readonly model?: unknown }).model;
    };
    expect(await model()).toBe("mini");
    await setModel("maxi");
    await trust();
    one.signal("SIGHUP");
    await one.logged(({ event }) => event === "workspace_reloaded");
    expect(await model()).toBe("maxi");
    one.signal("SIGTERM");
    expect(await one.ended).toBe(0);
  });

  test("reeve worker that finds invalid settings on SIGHUP says so and keeps the old settings until they are valid", async () => {
    const { folder, url, requests } = await setUp(() => ({ text: "All is well." }));
    await mkdir(join(folder, ".reeve/agents"), { recursive: true });
    const [settings, agentFile] = [
      join(folder, ".reeve/settings.json"),
      join(folder, ".reeve/agents/watch.md"),
    ];
    const writeAgent = (place: string, model = "openai-compatible/mini"): Promise<void> =>
      writeFile(agentFile, `---\nmodel: ${model}\n---\nGuard the ${place}.\n`);
    await writeAgent("gate");
    await writeFile(settings, "{}");
    const { one } = await trustedWorker(folder, env(url));
    const runtime = await caller(folder);
    /** The instructions of a new run. */
    const instructions = async (): Promise<string | undefined> => {
      const runId = await submit(runtime, "watch", "Look around");
      await (await runtime.find(runId))?.result();
      return /Guard the \w+/u.exec(JSON.stringify(requests.at(-1)))?.[0];
    };
    expect(await instructions()).toBe("Guard the gate");
    await writeFile(settings, '{ "model": 5 }');
    await writeAgent("tower");
    one.signal("SIGHUP");
    const refused = await one.logged(({ message }) => message.includes("the files were not read again"));
    expect(refused).toMatchObject({
      level: "warn",
      message: expect.stringContaining(`invalid setting "model" in ${settings}`) as string,
    });
    expect(await instructions()).toBe("Guard the gate");
    await writeFile(settings, "{}");
    one.signal("SIGHUP");
    while ((await instructions()) !== "Guard the tower");
    await writeAgent("tower", "[");
    one.signal("SIGHUP");
    const notice = await one.logged(({ message }) => message.includes("the agent cannot be used"));
    expect(notice).toMatchObject({ level: "warn", message: expect.stringContaining(agentFile) as string });
    one.signal("SIGTERM");
    expect(await one.ended).toBe(0);
  });

  test.for([
    [["--concurency", "3"], "Did you mean --concurrency?"],
    [["--concurrency", "0"], "invalid --concurrency 0: expected an integer from 1"],
    [["--engine", "temporal"], "temporal"],
    [["--log-format", "xml"], "xml"],
    [["--drain-timeout", "soon"], "invalid --drain-timeout soon"],
    [["--port", "70000"], "invalid --port 70000"],
  ] as const)("reeve worker %j ends with code 2 and says %s", async ([args, message]) => {
    const { folder } = await setUp(() => undefined);
    const { code, talk } = await reeve(["worker", ...args], { cwd: folder });
    expect([code, talk]).toEqual([2, expect.stringContaining(message)]);
  });
});
