import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import {
  copyFile,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  realpath,
  rm,
  stat,
  symlink,
  writeFile,
} from "node:fs/promises";
import { createServer as createHttpServer } from "node:http";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, onTestFinished, test } from "vitest";
import { Agent, openRuntime } from "../../../src/entries/index.ts";
import { clockFindings, portFindings } from "../../../src/surfaces/cli/commands/doctor/machine-findings.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { reeve } from "./reeve-process.ts";

interface Finding {
  readonly area: string;
  readonly state: string;
  readonly text: string;
  readonly fix?: string;
}

/** A project and the home folder of its user. */
async function place(files: Readonly<Record<string, string>> = {}) {
  const root = await realpath(await mkdtemp(join(tmpdir(), "reeve-doctor-")));
  onTestFinished(() => rm(root, { recursive: true, force: true, maxRetries: 10 }));
  const [home, project] = [join(root, "home"), join(root, "project")];
  await mkdir(join(project, ".git"), { recursive: true });
  await mkdir(home);
  for (const [path, text] of Object.entries(files)) {
    const target = path.startsWith("~/") ? join(home, path.slice(2)) : join(project, path);
    await mkdir(dirname(target), { recursive: true });
    await writeFile(target, text);
  }
  const env = { REEVE_HOME: home, REEVE_MODEL: "openai/gpt-5.2", OPENAI_API_KEY: "sk-hunter2" };
  const run = (...args: string[]): ReturnType<typeof reeve> => reeve(args, { cwd: project, env });
  const doctor = async (...args: string[]) => {
    const { code, out } = await run("doctor", "--json", ...args);
    return { code, findings: out.map((line) => JSON.parse(line) as Finding) };
  };
  const store = (name: string): `sqlite:${string}` => `sqlite:${join(root, name)}`;
  return { root, home, project, run, doctor, store };
}

/** Stores runs, and calls `inUse` while the store is open. */
async function fill(address: `sqlite:${string}`, inUse: () => Promise<void> = async () => undefined) {
  const runtime = await openRuntime({ store: address });
  await new Agent({ name: "quick", model: scriptedModel(["Yes."]) }).invoke("?", { runtime });
  await inUse();
  await runtime.close();
}

/** Returns the files of a folder with their contents, except the index of a SQLite log, which contains only locks. */
async function contents(folder: string): Promise<Readonly<Record<string, string>>> {
  const found: Record<string, string> = {};
  for (const name of (await readdir(folder, { recursive: true })).toSorted()) {
    const path = join(folder, name);
    if (!(await stat(path)).isFile() || name.endsWith("-shm")) continue;
    found[name] = createHash("sha256")
      .update(await readFile(path))
      .digest("hex");
  }
  return found;
}

function of(area: string, findings: readonly Finding[]): readonly Finding[] {
  return findings.filter((finding) => finding.area === area);
}

test("reeve doctor finds no error in a project that works, names keys without their values, and changes no file", async () => {
  const { root, run, doctor, store } = await place();
  await fill(store("reeve.db"));
  await run("trust", "--yes", "--store", store("reeve.db"));
  const before = await contents(root);
  const { code, findings } = await doctor("--store", store("reeve.db"));
  expect(findings.filter(({ state }) => state === "error")).toEqual([]);
  expect(code).toBe(0);
  expect([...new Set(findings.map(({ area }) => area))]).toEqual([
    "node",
    "workspace",
    "providers",
    "store",
    "clock",
    "disk",
    "sandbox",
    "browser",
    "ports",
  ]);
  expect(of("providers", findings).at(-1)?.text).toMatch(/these keys: .*OPENAI_API_KEY/u);
  expect(JSON.stringify(findings)).not.toContain("hunter2");
  expect(of("store", findings).map(({ state, text }) => [state, text.replace(/^.*reeve\.db/u, "")])).toEqual([
    ["ok", expect.stringMatching(/^ has 1 run, \d.* and the stored format \d+\.$/u)],
    ["ok", "The check of SQLite has found no damage."],
  ]);
  expect(await contents(root)).toEqual(before);
});

test("reeve doctor reads a store in use and a copy of it without changing them, and says which process uses the store", async () => {
  const { root, doctor, store } = await place();
  await mkdir(join(root, "copy"));
  await fill(store("reeve.db"), async () => {
    for (const end of ["", "-wal"])
      await copyFile(join(root, `reeve.db${end}`), join(root, "copy", `reeve.db${end}`));
    const code = `const { DatabaseSync } = require("node:sqlite"); const db = new DatabaseSync(process.argv[1]);
      db.exec("BEGIN IMMEDIATE"); console.log("open"); process.stdin.resume();`;
    const user = spawn(process.execPath, ["-e", code, join(root, "reeve.db")], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    await once(user.stdout, "data");
    const before = await contents(root);
    for (const name of ["reeve.db", "copy/reeve.db"]) {
      const { findings } = await doctor("--store", store(name));
      expect(of("store", findings)[0]?.text).toContain("has 1 run,");
      expect(of("store", findings).filter(({ state }) => state === "error")).toEqual([]);
      const isListed = name === "reeve.db" && process.platform === "linux";
      expect(of("store", findings).filter(({ text }) => text.startsWith("Other processes"))).toEqual(
        isListed
          ? [{ area: "store", state: "ok", text: `Other processes have it open: ${user.pid} (writes).` }]
          : [],
      );
    }
    expect(await contents(root)).toEqual(before);
    user.stdin.end();
    await once(user, "exit");
  });
});

test.skipIf(process.platform !== "linux")(
  "reeve doctor names the process that has locked a store for itself, and reads nothing of the store",
  async () => {
    const { root, doctor, store } = await place();
    await fill(store("reeve.db"));
    const database = new DatabaseSync(join(root, "reeve.db"));
    database.exec("PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE");
    const { code, findings } = await doctor("--store", store("reeve.db"));
    database.close();
    expect(code).toBe(1);
    expect(of("store", findings)).toEqual([
      {
        area: "store",
        state: "error",
        text: `The store at ${join(root, "reeve.db")} is locked by process ${process.pid}.`,
        fix: `fuser -v ${join(root, "reeve.db")}`,
      },
    ]);
  },
);

test("reeve doctor refuses a store path that leads out of the folder, and reports a list of MCP servers that is no JSON", async () => {
  const { root, project, doctor, store } = await place({ "~/mcp.json": "{", ".reeve/settings.json": "{}" });
  await fill(store("other.db"));
  await symlink(join(root, "other.db"), join(project, ".reeve/reeve.db"));
  const { findings } = await doctor();
  expect(of("store", findings)).toMatchObject([
    { state: "error", text: expect.stringContaining("leads out of the folder") as string },
  ]);
  expect(of("workspace", findings).at(-1)).toMatchObject({
    state: "error",
    text: expect.stringContaining("Invalid MCP servers") as string,
  });
});

test("reeve doctor ends with 1 and names a command for each problem of a store", async () => {
  const { root, doctor, store } = await place();
  await fill(store("whole.db"));
  const bytes = await readFile(join(root, "whole.db"));
  await writeFile(
    join(root, "damaged.db"),
    Buffer.concat([bytes.subarray(0, 8_192), Buffer.alloc(20_000, 7)]),
  );
  await writeFile(
    join(root, "text.db"),
    "This is no database, and it is long enough to have a header. ".repeat(9),
  );
  await mkdir(join(root, "folder.db"));
  const edited = async (name: string, sql: string): Promise<void> => {
    await writeFile(join(root, name), bytes);
    const database = new DatabaseSync(join(root, name));
    database.exec(sql);
    database.close();
  };
  await edited("other.db", "PRAGMA application_id = 7");
  await edited("newer.db", "PRAGMA user_version = 9999");
  await edited("older.db", "PRAGMA user_version = 31");
  await edited(
    "endless.db",
    "DROP TABLE runs; CREATE VIEW runs AS WITH RECURSIVE n(created_at) AS (SELECT 1 UNION ALL SELECT created_at FROM n) SELECT * FROM n",
  );
  const problems = [
    ["damaged.db", /damaged/u, "mv "],
    ["text.db", /is not a SQLite database/u, "mv "],
    ["folder.db", /no regular file/u, "reeve doctor --store"],
    ["other.db", /another program/u, "reeve doctor --store"],
    ["newer.db", /newer version of Reeve/u, "npm install reeve@latest"],
    ["older.db", /format 31 of a development version/u, "reeve run --store sqlite:PATH"],
    ["endless.db", /lacks tables/u, "mv "],
    ["absent.db", /No store found/u, "reeve doctor --store"],
  ] as const;
  for (const [name, text, fix] of problems) {
    const { code, findings } = await doctor("--store", store(name));
    const [first] = of("store", findings).filter(({ state }) => state === "error");
    expect({ name, code, text: first?.text, fix: first?.fix }).toEqual({
      name,
      code: 1,
      text: expect.stringMatching(text) as string,
      fix: expect.stringContaining(fix) as string,
    });
  }
  const { code, findings } = await doctor("--store", store("whole.db"));
  expect(code).toBe(0);
  expect(of("store", findings).at(-1)).toMatchObject({
    state: "warning",
    fix: `reeve trust --store ${store("whole.db")}`,
  });
  expect(findings.filter(({ state, fix }) => state === "warning" && fix === undefined)).toEqual([]);
});

test("reeve doctor loads no code of a project that is not trusted, and names what it does not use", async () => {
  const { root, doctor, run } = await place({
    "reeve.config.ts": `import { writeFileSync } from "node:fs"; writeFileSync("../ran", "");`,
    ".reeve/agents/evil.ts": `import { writeFileSync } from "node:fs"; writeFileSync("../ran", "");`,
    ".reeve/settings.json": JSON.stringify({ model: "groq/x", modle: "y" }),
    ".mcp.json": JSON.stringify({ mcpServers: { evil: { command: "touch", args: ["../ran"] } } }),
    "~/agents/far.md": "---\nmodel: groq/llama\ntools: [browser]\n---\nx",
    "~/agents/broken.md": "---\nmodel: [\n---\nx",
  });
  const { code, findings } = await doctor();
  expect(code).toBe(1);
  expect(of("workspace", findings)).toEqual([
    expect.objectContaining({
      state: "warning",
      text: expect.stringContaining("4 of its files and settings") as string,
      fix: "reeve trust",
    }),
    expect.objectContaining({ state: "warning", text: expect.stringContaining('"modle"') as string }),
  ]);
  expect(of("providers", findings)).toContainEqual({
    area: "providers",
    state: "error",
    text: "groq/llama needs GROQ_API_KEY, which is not set.",
    fix: "export GROQ_API_KEY=KEY",
  });
  expect(of("store", findings)).toEqual([
    { area: "store", state: "ok", text: "This folder has no store yet; the first run creates it." },
  ]);
  expect(await readdir(root)).not.toContain("ran");
  const text = await run("doctor");
  expect(text.out).toContain(`${" ".repeat(20)}fix: export GROQ_API_KEY=KEY`);
  expect(text.talk).toMatch(/\d errors?, \d warnings?\.\n$/u);
});

test("reeve doctor reports settings that cannot be read, and a Restate server that does not answer", async () => {
  const { doctor, home } = await place({ "~/settings.json": `{ "budget": { "maxCost": 1 } }` });
  const { findings } = await doctor("--admin-url", "http://127.0.0.1:1");
  expect(of("workspace", findings)).toEqual([
    expect.objectContaining({ state: "error", fix: `"\${EDITOR:-vi}" ${join(home, "settings.json")}` }),
  ]);
  expect(of("restate", findings)).toEqual([
    expect.objectContaining({ state: "error", fix: "curl -sS http://127.0.0.1:1/health" }),
  ]);
});

test("reeve doctor reports a Restate server that answers, with the worker versions that the server knows", async () => {
  const services = [{ name: "reeve-runs", revision: 1 }];
  const known = ["dp_1", "dp_2"].map((id) => ({
    id,
    uri: "http://worker:9080",
    created_at: "2026",
    services,
  }));
  let registered = 0;
  const restate = createHttpServer((request, response) => {
    const answers: Readonly<Record<string, object>> = {
      "/restate/health": {},
      "/deployments": { deployments: known.slice(0, registered) },
      "/query": { rows: [] },
    };
    const answer = answers[request.url ?? ""];
    response.writeHead(answer === undefined ? 404 : 200).end(JSON.stringify(answer));
  });
  restate.listen(0, "127.0.0.1");
  await once(restate, "listening");
  onTestFinished(() => void restate.close());
  const url = `http://127.0.0.1:${(restate.address() as AddressInfo).port}`;
  const { doctor } = await place();
  const said: string[] = [];
  for (; registered <= 2; registered++) {
    const { code, findings } = await doctor("--ingress-url", url, "--admin-url", url);
    const [ingress, admin] = of("restate", findings);
    expect([code, ingress]).toEqual([
      0,
      { area: "restate", state: "ok", text: `The ingress of Restate at ${url} answers.` },
    ]);
    said.push(`${admin?.state}: ${admin?.text.replace(url, "URL")} ${admin?.fix?.replace(url, "URL") ?? ""}`);
  }
  const answers = "The admin API of Restate at URL answers";
  expect(said).toEqual([
    `warning: ${answers} and knows no worker. reeve deploy http://WORKER:9080 --admin-url URL`,
    `ok: ${answers}; 1 version of workers is registered. `,
    `ok: ${answers}; 2 versions of workers are registered. `,
  ]);
});

test.each([
  [["--store", "memory:"], "invalid --store"],
  [["--store", "reeve.db"], "invalid --store"],
  [["--store", "sqlite:a?b=c"], "no options"],
  [["--admin-url", "restate:9070"], "invalid --admin-url"],
])("reeve doctor exits with 2 for %j", async (args, says) => {
  const { doctor, run } = await place();
  expect(await doctor(...args)).toEqual({ code: 2, findings: [] });
  expect((await run("doctor", ...args)).talk).toContain(says);
});

test("reeve doctor says that the root folder has no sandbox, and not that bubblewrap is missing", async () => {
  const { home } = await place();
  const { out } = await reeve(["doctor", "--json"], { cwd: "/", env: { REEVE_HOME: home } });
  const findings = out.map((line) => JSON.parse(line) as Finding);
  expect(of("sandbox", findings)).toMatchObject([{ state: "warning", fix: "cd PROJECT" }]);
});

test("reeve doctor reports a clock that is behind the store, and a port in use", async () => {
  const now = Date.UTC(2026, 10, 19);
  expect(clockFindings(now, now + 30_000)).toMatchObject([{ state: "ok" }]);
  expect(clockFindings(now, now + 90_000)).toMatchObject([{ state: "warning" }]);
  expect(clockFindings(0, null)).toMatchObject([{ state: "error" }]);
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  expect(await portFindings([{ port, what: "a server", fix: "x" }])).toEqual([
    { state: "warning", text: expect.stringContaining("is in use") as string, fix: "x" },
  ]);
});
