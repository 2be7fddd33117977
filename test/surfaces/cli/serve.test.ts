import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { openStore } from "../../../src/runtime/index.ts";
import { storedTokens } from "../../../src/surfaces/server/index.ts";
import { whyLeftAlone } from "../../../src/surfaces/cli/setup/hosted-agents.ts";
import { openSse } from "../server/sse-client.ts";
import { env, setUp } from "./model-server.ts";
import { reeve } from "./reeve-process.ts";
import { serve } from "./serve-process.ts";

describe("reeve serve", () => {
  test.for([
    [{}, false, true],
    [{ baseUrl: "https://own.example", sandbox: "enforce" }, false, true],
    [{ baseUrl: "https://evil.example" }, false, false],
    [{ sandbox: "off" }, false, false],
    [{ baseUrl: "https://evil.example", sandbox: "off" }, true, true],
  ] as const)(
    "reeve serve executes a stored run with the settings %o in a project with trust %s: %s",
    ([stored, isTrusted, isExecuted]) => {
      const settings = { baseUrl: "https://own.example" };
      expect(whyLeftAlone(stored, { isTrusted, settings }) === undefined).toBe(isExecuted);
    },
  );

  test("reeve serve prints the runs that it does not execute, and the reason", async () => {
    const { folder, url, run } = await setUp(() => ({ error: 400 }));
    const { out } = await run("run", "Hi", "--sandbox", "off", "--mode", "json");
    const { runId } = JSON.parse(out.at(-1) ?? "{}") as { runId: string };
    const server = await serve(folder, url, "--no-token");
    const resumed = await fetch(`${server.link.origin}/api/runs/${runId}/resume`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: "{}",
    });
    expect(resumed.status).toBe(202);
    await server.saying(`${runId} is left alone: its settings name the sandbox mode off`);
    expect(server.said()).toContain(`reeve run --resume ${runId}`);
    expect(await server.stop("SIGTERM")).toBe(0);
    expect(server.said().split("is left alone")).toHaveLength(2);
  });

  test("reeve serve prints a link that opens the page once, starts runs of the default agent, and ends on SIGTERM with 0", async () => {
    const answer = Promise.withResolvers<{ readonly text: string }>();
    const { folder, url, requests } = await setUp(() => answer.promise);
    const server = await serve(folder, url);
    const { origin, pathname } = server.link;
    expect(pathname).toBe("/login");
    expect((await fetch(`${origin}/api/runs`)).status).toBe(401);
    const opened = await fetch(server.link, { redirect: "manual" });
    expect([opened.status, opened.headers.get("location")]).toEqual([303, "/"]);
    const cookie = (opened.headers.get("set-cookie") ?? "").split(";")[0] ?? "";
    const again = await fetch(server.link, { redirect: "manual", headers: { accept: "text/html,*/*" } });
    expect([again.status, again.headers.get("location")]).toEqual([303, "/login?why=used"]);
    const asked = await fetch(`${origin}/login?why=used`, { headers: { accept: "text/html,*/*" } });
    expect([asked.status, asked.headers.get("content-type")]).toEqual([401, "text/html; charset=utf-8"]);
    expect(await asked.text()).toMatch(/A link works once[^]*prints a new link/u);
    expect((await fetch(server.link, { redirect: "manual" })).status).toBe(401);
    const submitted = await fetch(`${origin}/api/runs`, {
      method: "POST",
      headers: { cookie, "content-type": "application/json", "idempotency-key": "one" },
      body: JSON.stringify({ agent: "assistant", input: "Which colour?" }),
    });
    const { run } = (await submitted.json()) as { run: { runId: string; userId: string } };
    expect([submitted.status, run.userId]).toEqual([201, "person"]);
    const stream = await openSse(`${origin}/api/runs/${run.runId}/stream`, { headers: { cookie } });
    // Deltas are streamed, not stored, so the answer comes after the reader.
    answer.resolve({ text: "It is green." });
    const types: unknown[] = [];
    for await (const { data } of stream) types.push(data["type"]);
    expect(types).toContain("message_update");
    const result = await fetch(`${origin}/api/runs/${run.runId}/result`, { headers: { cookie } });
    expect(await result.json()).toMatchObject({ status: "completed", output: "It is green." });
    expect(requests).toHaveLength(1);
    expect(await server.stop("SIGTERM")).toBe(0);
    const { out } = await reeve(["token", "list", "--json"], { cwd: folder });
    expect(JSON.parse(out[0] ?? "{}")).toMatchObject({ name: "page", scope: "admin", userId: "person" });
  });

  test("reeve serve --no-worker accepts runs that wait for a worker, and the next reeve serve executes them", async () => {
    const { folder, url } = await setUp(() => ({ text: "Done." }));
    const idle = await serve(folder, url, "--no-token", "--no-worker");
    expect(idle.link.pathname).toBe("/");
    const submitted = await fetch(`${idle.link.origin}/api/runs`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ agent: "assistant", input: "Hi" }),
    });
    const { run } = (await submitted.json()) as {
      run: { runId: string; status: string; waitsFor: string[] };
    };
    expect(run).toMatchObject({ status: "pending", waitsFor: ["worker"] });
    const waited = await fetch(`${idle.link.origin}/api/runs/${run.runId}/result?waitMs=50`);
    expect([waited.status, ((await waited.json()) as typeof run).waitsFor]).toEqual([202, ["worker"]]);
    const worker = await serve(folder, url, "--no-token");
    const done = await fetch(`${idle.link.origin}/api/runs/${run.runId}/result?waitMs=30000`);
    expect(await done.json()).toMatchObject({ status: "completed", output: "Done." });
    expect(await worker.stop("SIGINT")).toBe(0);
    expect(await idle.stop("SIGTERM")).toBe(0);
    expect(idle.said()).toContain("Runs are not executed here (--no-worker)");
  });

  test("reeve serve fires the schedules of the folder's agents, and reads the files again on SIGHUP", async () => {
    const seen = { gate: Promise.withResolvers<void>(), tower: Promise.withResolvers<void>() };
    const { folder, url } = await setUp((_number, { messages }) => {
      for (const [place, { resolve }] of Object.entries(seen))
        if (JSON.stringify(messages).includes(`Guard the ${place}.`)) resolve();
      return { text: "All is well." };
    });
    const at = { cwd: folder, env: { ...env(url), REEVE_HOME: join(folder, "home") } };
    const file = join(folder, ".reeve/agents/watch.md");
    const agentFile = (place: keyof typeof seen): string =>
      `---\nmodel: openai-compatible/mini\n---\nGuard the ${place}.\n`;
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, agentFile("gate"));
    expect(await reeve(["trust", "--yes"], at)).toMatchObject({ code: 0 });
    const server = await serve(folder, at.env, "--no-token");
    const schedule = ["schedule", "add", "rounds", "--agent", "watch", "--every", "1s", "Look around"];
    expect(await reeve(schedule, at)).toMatchObject({ code: 0 });
    await seen.gate.promise;
    await writeFile(file, agentFile("tower"));
    server.signal("SIGHUP");
    await seen.tower.promise;
    expect(await server.stop("SIGTERM")).toBe(0);
  });

  test("ctx.reload() and SIGHUP of reeve serve load new agents, and agents are listed with tools, skills and sub-agents", async () => {
    const { folder, url } = await setUp(() => ({ text: "Done." }));
    const files = {
      "home/extensions/broken.mjs": 'export default () => { throw new Error("no key"); };',
      "home/extensions/reloader.mjs": `export default (api) => api.on("input", async ({ text }, ctx) => {
  if (text !== "reload") return undefined;
  await ctx.reload();
  ctx.ui.notify("The files are read again.");
  return { action: "handled", reply: "reloaded" };
});`,
      "home/agents/lead.md":
        "---\nmodel: openai-compatible/mini\ntools: [ls]\nsubAgents: [fellow]\n---\nLead.",
      "home/agents/fellow.md": "---\nmodel: openai-compatible/mini\ntools: none\n---\nHelp.",
      "home/agents/boss.md": "---\nmodel: openai-compatible/mini\nsubAgents: [helper]\n---\nRule.",
      "home/agents/helper.md": "---\ntools: none\n---\nHelp.",
      "home/agents/coded.mjs": `export default {
  id: "coded", run: async () => "x", description: "In code", tools: [{ name: "count" }],
  with() { return this; }, submit() {},
};`,
      "home/agents/other.mjs": 'export default { id: "other", run: async () => "x" };',
      "home/skills/tea/SKILL.md": "---\nname: tea\ndescription: Makes tea.\n---\nBoil the water.",
    };
    const write = async (path: string, text: string): Promise<void> => {
      await mkdir(dirname(join(folder, path)), { recursive: true });
      await writeFile(join(folder, path), text);
    };
    for (const [path, text] of Object.entries(files)) await write(path, text);
    const { REEVE_MODEL: model, ...models } = env(url);
    const at = { ...models, REEVE_HOME: join(folder, "home"), REEVE_MODEL: "" };
    const server = await serve(folder, at, "--no-token", "--max-turns", "9");
    const agents = async () => {
      const response = await fetch(`${server.link.origin}/api/agents`);
      const { agents: list } = (await response.json()) as { agents: { name: string }[] };
      return list;
    };
    expect(await agents()).toMatchObject([
      { name: "coded", description: "In code", tools: ["count"], skills: [] },
      { name: "fellow", tools: ["none"], subAgents: [], skills: [] },
      { name: "lead", tools: ["ls"], subAgents: ["fellow"], skills: ["tea"] },
    ]);
    expect(server.said()).toContain("agent boss is not hosted: its sub-agent helper has no model");
    expect(server.said()).toContain("not hosted, because they have no model: assistant, helper;");
    expect(server.said()).toContain("--max-turns cannot change agent coded of ");
    expect(server.said()).toContain("agent other is not hosted: it is not an instance of Agent");
    const start = async (agent: string, input: string) => {
      const submitted = await fetch(`${server.link.origin}/api/runs`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ agent, input }),
      });
      const { run } = (await submitted.json()) as { run: { runId: string } };
      const ended = await fetch(`${server.link.origin}/api/runs/${run.runId}/result?waitMs=30000`);
      return ((await ended.json()) as { output: string }).output;
    };
    await write("home/agents/novice.md", "---\nmodel: openai-compatible/mini\n---\nLearn.");
    expect(await start("lead", "reload")).toBe("reloaded");
    await server.saying("extension broken failed in setup: no key");
    await server.saying("extension reloader: The files are read again.");
    expect((await agents()).map(({ name }) => name)).toEqual(["coded", "fellow", "lead", "novice"]);
    expect(await start("novice", "Hi")).toBe("Done.");
    await write("home/agents/helper.md", `---\nmodel: ${model}\ntools: none\n---\nHelp.`);
    server.signal("SIGHUP");
    await expect.poll(async () => (await agents()).map(({ name }) => name)).toContain("helper");
    expect(await server.stop("SIGTERM")).toBe(0);
  });

  test("reeve serve --agent hosts one agent, and --profile uses the files of the profile", async () => {
    const { folder, url } = await setUp(() => ({ text: "Done." }));
    await mkdir(join(folder, "home/profiles/work/agents"), { recursive: true });
    await writeFile(join(folder, "home/profiles/work/agents/clerk.md"), "Work.");
    const at = { ...env(url), REEVE_HOME: join(folder, "home") };
    const server = await serve(folder, at, "--no-token", "--profile", "work", "--agent", "clerk");
    const response = await fetch(`${server.link.origin}/api/agents`);
    expect(await response.json()).toMatchObject({ agents: [{ name: "clerk" }] });
    expect(await server.stop("SIGTERM")).toBe(0);
    const refused = await reeve(["serve", "--agent", "clerk"], { cwd: folder, env: at });
    expect([refused.code, refused.talk]).toEqual([3, expect.stringContaining('agent "clerk" not found')]);
  });

  test("POST /api/runs and steering expand /name and /skill:name in the same way as reeve run", async () => {
    const { folder, url, requests } = await setUp(() => ({ text: "Done." }));
    const files = {
      ".reeve/prompts/explain.md": "Explain $1 in $2.",
      ".reeve/skills/tea/SKILL.md": "---\nname: tea\ndescription: Makes tea.\n---\nBoil the water.",
    };
    for (const [path, text] of Object.entries(files)) {
      await mkdir(dirname(join(folder, path)), { recursive: true });
      await writeFile(join(folder, path), text);
    }
    const server = await serve(folder, url, "--no-token");
    const post = async (path: string, body: object) => {
      const response = await fetch(`${server.link.origin}/api/runs${path}`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      });
      return {
        status: response.status,
        body: (await response.json()) as { run: { runId: string }; detail: string },
      };
    };
    const ask = async (input: unknown) => {
      const { status, body } = await post("", { agent: "assistant", input, sessionId: "talk" });
      expect([status, body.detail]).toEqual([201, undefined]);
      await fetch(`${server.link.origin}/api/runs/${body.run.runId}/result?waitMs=30000`);
      return body.run.runId;
    };
    await ask("/explain a.ts 'two words'");
    expect(JSON.stringify(requests.at(-1))).toContain("Explain a.ts in two words.");
    await ask([{ type: "text", text: "/skill:tea For two." }]);
    expect(JSON.stringify(requests.at(-1))).toContain("Boil the water.");
    const runId = await ask("/etc/hosts is a path");
    expect(JSON.stringify(requests.at(-1))).toContain("/etc/hosts is a path");
    const unknown = await post("", { agent: "assistant", input: "/explian a.ts" });
    expect([unknown.status, unknown.body.detail]).toEqual([
      404,
      expect.stringContaining("did you mean /explain"),
    ]);
    const steered = await post(`/${runId}/steer`, { input: "/explian a.ts" });
    expect([steered.status, steered.body.detail]).toEqual([
      404,
      expect.stringContaining("did you mean /explain"),
    ]);
    expect(await server.stop("SIGTERM")).toBe(0);
  });

  test("reeve serve --no-worker serves another user's store to this machine, and refuses to serve it to other machines", async () => {
    const { folder } = await setUp(() => ({ text: "no" }));
    await mkdir(join(folder, ".reeve"));
    const store = await openStore(`sqlite:${join(folder, ".reeve/reeve.db")}`);
    await storedTokens(store.records).create({ name: "theirs", scope: "admin" });
    await store.close();
    const args = ["serve", "--no-worker", "--host", "0.0.0.0", "--port", "0"];
    const refused = await reeve(args, { cwd: folder });
    expect([refused.code, refused.talk]).toEqual([
      expect.any(Number),
      expect.stringContaining("no command of yours created it"),
    ]);
    expect(refused.code).not.toBe(0);
    const local = await serve(folder, undefined, "--no-worker");
    expect(await local.stop("SIGTERM")).toBe(0);
    expect(local.said()).toContain("not offered to callers, because they have no model: assistant;");
    expect(local.said()).not.toContain("hosted");
  });

  test("reeve serve refuses addresses that other machines reach if it has no tokens, and invalid ports", async () => {
    const { folder } = await setUp(() => ({ text: "no" }));
    const options = { cwd: folder };
    const open = await reeve(["serve", "--host", "0.0.0.0", "--port", "0"], options);
    expect([open.code, open.talk]).toEqual([2, expect.stringContaining("reeve token create")]);
    const all = await reeve(["serve", "--host", "0.0.0.0", "--no-token"], options);
    expect([all.code, all.talk]).toEqual([2, expect.stringContaining("--no-token cannot be combined")]);
    const port = await reeve(["serve", "--port", "x1"], options);
    expect([port.code, port.talk]).toEqual([2, expect.stringContaining("invalid --port x1")]);
  });
});

describe("reeve token", () => {
  test("reeve token create prints a token that the server accepts until reeve token revoke", async () => {
    const { folder } = await setUp(() => ({ text: "no" }));
    const options = { cwd: folder };
    const { code, out, talk } = await reeve(
      ["token", "create", "--tenant", "acme", "--user", "ann", "--scope", "read", "--name", "laptop"],
      options,
    );
    const [token = ""] = out;
    const [, id = ""] = token.split("_");
    expect([code, token]).toEqual([0, expect.stringMatching(/^reeve_[0-9a-f]{16}_[\w-]{43}$/u)]);
    expect(talk).toContain(id);
    const listed = await reeve(["token", "list"], options);
    expect(listed.out).toEqual([
      expect.stringMatching(new RegExp(`^${id}.*read.*acme, user ann.*laptop`, "u")),
    ]);
    expect(listed.out.join()).not.toContain(token);
    const server = await serve(folder, undefined);
    const headers = { authorization: `Bearer ${token}` };
    const access = await fetch(`${server.link.origin}/api/access`, { headers });
    expect(await access.json()).toEqual({ name: "laptop", scope: "read", tenantId: "acme", userId: "ann" });
    expect((await reeve(["token", "revoke", id], options)).out).toEqual([id]);
    expect((await fetch(`${server.link.origin}/api/access`, { headers })).status).toBe(401);
    expect((await reeve(["token", "revoke", id], options)).code).toBe(3);
  });

  test("reeve token create refuses a token without a tenant unless its scope is admin, and unknown scopes", async () => {
    const { folder } = await setUp(() => ({ text: "no" }));
    const options = { cwd: folder };
    const open = await reeve(["token", "create", "--scope", "run"], options);
    expect([open.code, open.talk]).toEqual([2, expect.stringContaining("name a tenant")]);
    const scope = await reeve(["token", "create", "--scope", "root"], options);
    expect([scope.code, scope.talk]).toEqual([2, expect.stringContaining("invalid --scope root")]);
    expect((await reeve(["token", "create", "--scope", "admin", "--days", "30"], options)).code).toBe(0);
  });
});
