import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, onTestFinished, test } from "vitest";
import { Agent, openRuntime, tool } from "../../../src/entries/index.ts";
import { formatAgentId, type HostedAgent, type RunId } from "../../../src/kernel/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { repository } from "../../gates/run-node.ts";
import { main, reeve } from "./reeve-process.ts";

interface Setup {
  readonly folder: string;
  readonly path: string;
  readonly store: `sqlite:${string}`;
  readonly runIds: readonly RunId[];
}

const secret = "p".repeat(600);

/** Creates a store file with runs that have ended, written by the real runtime. */
async function setUp({ runs = 1, auditKey }: { runs?: number; auditKey?: string } = {}): Promise<Setup> {
  const folder = await mkdtemp(join(tmpdir(), "reeve-audit-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }));
  const path = join(folder, "reeve.db");
  const store = `sqlite:${path}` as const;
  const runtime = await openRuntime({
    store,
    unknownPrice: "ignore",
    ...(auditKey === undefined ? {} : { auditKey }),
  });
  const weather = tool({
    name: "weather",
    description: "The weather in a town",
    inputSchema: { type: "object", properties: {} },
    execute: () => "It rains in Tours.",
  });
  const runIds: RunId[] = [];
  for (let index = 0; index < runs; index++) {
    const model = scriptedModel([
      { toolCalls: [{ name: "weather", input: {} }] },
      `Take an umbrella. ${secret}`,
    ]);
    const porter = new Agent({ name: `porter-${index}`, model, tools: [weather] });
    const run = await runtime.submit(porter, "I am going to Tours.", { userId: "alice" });
    await run.result();
    runIds.push(run.runId);
  }
  await runtime.close();
  return { folder, path, store, runIds };
}

function tamper(path: string, sql: string): void {
  const connection = new DatabaseSync(path);
  connection.exec(sql);
  connection.close();
}

/** Numbers of the first run's commits that contain events, oldest first. */
function numbersWithEvents(path: string): readonly number[] {
  const connection = new DatabaseSync(path);
  const rows = connection
    .prepare(
      "SELECT number FROM commits WHERE run = (SELECT min(id) FROM runs) AND body LIKE '%\"events\"%' ORDER BY number",
    )
    .all();
  connection.close();
  return rows.map(({ number }) => Number(number));
}

const first = "run = (SELECT min(id) FROM runs)";

describe("reeve audit verify", () => {
  test("reeve audit verify verifies every run of a store and explains the limits of the check", async () => {
    const { store, runIds } = await setUp({ runs: 3 });
    const { code, out, talk } = await reeve(["audit", "verify", "--store", store]);
    expect(code).toBe(0);
    expect(out.map((line) => line.split("  ").slice(0, 2))).toEqual(runIds.map((runId) => [runId, "ok"]));
    expect(out[0]).toMatch(/^run_\S+  ok  \d+ events  head \S+  plain$/);
    expect(talk).toContain("3 of 3 event logs verify.");
    expect(talk).toContain("found only against a head kept elsewhere");
    expect(talk).toContain("The chain has no key");
  });

  test("reeve audit verify uses the store under .reeve if none is given", async () => {
    const { folder, path } = await setUp();
    await mkdir(join(folder, ".reeve"));
    const connection = new DatabaseSync(path);
    connection.exec(`VACUUM INTO '${join(folder, ".reeve/reeve.db")}'`);
    connection.close();
    expect(await reeve(["audit", "verify"], { cwd: folder })).toMatchObject({ code: 0 });
  });

  const edits: readonly { readonly what: string; readonly how: (path: string) => string }[] = [
    {
      what: "an edited event",
      how: () =>
        `UPDATE commits SET body = replace(body, 'rains in Tours', 'shines in Tours') WHERE ${first}`,
    },
    {
      what: "an edited time",
      how: (path) =>
        `UPDATE commits SET at = at + 1 WHERE ${first} AND number = ${numbersWithEvents(path)[2]}`,
    },
    {
      what: "a removed commit",
      how: (path) => `DELETE FROM commits WHERE ${first} AND number = ${numbersWithEvents(path)[2]}`,
    },
    {
      what: "two swapped commits",
      how: (path) => {
        const [, one, other] = numbersWithEvents(path);
        return `UPDATE commits SET body = (SELECT body FROM commits AS them WHERE them.run = commits.run
          AND them.number = ${one} + ${other} - commits.number) WHERE ${first} AND number IN (${one}, ${other})`;
      },
    },
    { what: "an emptied log", how: () => `DELETE FROM commits WHERE ${first}` },
  ];

  test.for(edits)(
    "E1: reeve audit verify finds $what, names the run and accepts other runs",
    async ({ how }) => {
      const { store, path, runIds } = await setUp({ runs: 2 });
      tamper(path, how(path));
      const { code, out, talk } = await reeve(["audit", "verify", "--store", store]);
      expect(code).toBe(1);
      expect(out[0]).toMatch(new RegExp(`^${runIds[0]}  TAMPERED at event \\d+: `));
      expect(out[1]).toMatch(new RegExp(`^${runIds[1]}  ok  `));
      expect(talk).toContain("1 of 2 event logs verify.");
    },
  );

  test("E1: reeve audit verify finds an edited session entry, and names the run, the session and the entry", async () => {
    const { store, path, runIds } = await setUp({ runs: 2 });
    tamper(path, `UPDATE entries SET body = replace(body, 'Tours', 'Paris') WHERE run_id = '${runIds[0]}'`);
    const { code, out } = await reeve(["audit", "verify", "--store", store]);
    expect(code).toBe(1);
    expect(out[0]).toBe(
      `${runIds[0]}  TAMPERED in its session: the entry ${runIds[0]} of session ses_${runIds[0]} was changed`,
    );
    expect(out[1]).toMatch(new RegExp(`^${runIds[1]}  ok  `));
  });

  test("E1: reeve audit verify finds that the end of a log is missing only against a head that was kept elsewhere", async () => {
    const { store, path, runIds } = await setUp();
    const before = await reeve(["audit", "verify", "--store", store, "--json"]);
    const { head } = JSON.parse(before.out[0] ?? "") as { head: string };
    const against = ["audit", "verify", "--store", store, "--head", `${runIds[0]}=${head}`];
    const whole = await reeve(against);
    expect(whole.code).toBe(0);
    expect(whole.talk).not.toContain("--head");
    tamper(path, `DELETE FROM commits WHERE ${first} AND number >= ${numbersWithEvents(path).at(-2)}`);
    const unaware = await reeve(["audit", "verify", "--store", store]);
    expect(unaware.code).toBe(0);
    expect(unaware.talk).toContain("Events cut off the end, or a run removed whole, are found only against");
    const aware = await reeve(against);
    expect(aware).toMatchObject({ code: 1, out: [expect.stringContaining("TAMPERED")] });
  });

  test("reeve audit verify accepts a log that has grown since its head was kept and reports the growth", async () => {
    const { store } = await setUp();
    const waiter: HostedAgent = {
      id: formatAgentId({ name: "waiter" }),
      run: async (ctx) => void (await ctx.waitForSignal("go")),
    };
    const before = await openRuntime({ store });
    const { runId } = await before.submit(waiter, null);
    await before.close();
    const kept = await reeve(["audit", "verify", runId, "--store", store, "--json"]);
    const { head } = JSON.parse(kept.out[0] ?? "") as { head: string };
    const next = await openRuntime({ store });
    next.register(waiter);
    const run = await next.find(runId);
    await run?.signal("go");
    await run?.result();
    await next.close();
    const after = await reeve(["audit", "verify", runId, "--store", store, "--head", `${runId}=${head}`]);
    expect(after).toMatchObject({ code: 0, out: [expect.stringMatching(/ \d+ since the head given$/)] });
    expect(after.talk).toContain("has lost nothing from before");
  });

  test("reeve audit verify reports a removed run against its head, and an unknown run as not found", async () => {
    const { store, path, runIds } = await setUp({ runs: 2 });
    const gone = ["audit", "verify", "--store", store, "--head", `${runIds[0]}=abc`];
    tamper(path, `UPDATE runs SET run_id = NULL WHERE run_id = '${runIds[0]}'`);
    const found = await reeve(gone);
    expect(found).toMatchObject({ code: 1 });
    expect(found.out).toContain(`${runIds[0]}  GONE: a head was kept, the run is not there`);
    expect(await reeve(["audit", "verify", "run_nobody", "--store", store])).toMatchObject({
      code: 3,
      out: ["run_nobody  not found"],
    });
  });

  test("E1: reeve audit verify verifies a keyed chain only with its key and reports that it is keyed", async () => {
    const { store } = await setUp({ auditKey: "open sesame" });
    const verify = ["audit", "verify", "--store", store];
    const keyed = await reeve([...verify, "--key-env", "AUDIT_KEY"], { env: { AUDIT_KEY: "open sesame" } });
    expect(keyed).toMatchObject({ code: 0, out: [expect.stringMatching(/  keyed$/)] });
    expect(keyed.talk).not.toContain("The chain has no key");
    const wrong = await reeve([...verify, "--key-env", "AUDIT_KEY"], { env: { AUDIT_KEY: "guess" } });
    expect(wrong).toMatchObject({ code: 1 });
    expect(wrong.talk).toContain("may have been written with another key");
    const none = await reeve(verify);
    expect(none).toMatchObject({ code: 1 });
    expect(none.talk).toContain("give --key-env");
  });

  test("reeve audit verify --json prints one object per line and nothing else on stdout", async () => {
    const { store, path, runIds } = await setUp({ runs: 2 });
    tamper(path, `UPDATE commits SET at = at + 1 WHERE ${first} AND number = ${numbersWithEvents(path)[1]}`);
    const { out } = await reeve(["audit", "verify", ...runIds, "run_none", "--store", store, "--json"]);
    expect(out.map((line) => JSON.parse(line) as unknown)).toEqual([
      {
        runId: runIds[0],
        ok: false,
        seq: expect.any(Number),
        problem: expect.any(String),
        comparedWithHead: false,
      },
      {
        runId: runIds[1],
        ok: true,
        events: expect.any(Number),
        head: expect.any(String),
        keyed: false,
        sinceHead: null,
        comparedWithHead: false,
      },
      { runId: "run_none", ok: false, seq: null, problem: "there is no such run", comparedWithHead: false },
    ]);
  });

  test("reeve audit verify reports tampering by its exit code also if stdout is closed", async () => {
    const { store, path } = await setUp({ runs: 2 });
    tamper(path, `DELETE FROM commits WHERE ${first}`);
    const child = spawn(process.execPath, [main, "audit", "verify", "--store", store], {
      stdio: ["ignore", "pipe", "ignore"],
    });
    child.stdout.destroy();
    const [code] = (await once(child, "exit")) as [number];
    expect(code).toBe(1);
  });
});

describe("reeve audit log", () => {
  test("reeve audit log prints the actor and action of each event and shortens texts without --full", async () => {
    const { store, runIds } = await setUp();
    const log = ["audit", "log", String(runIds[0]), "--store", store];
    const short = await reeve(log);
    expect(short.code).toBe(0);
    expect(short.out[0]).toMatch(
      /^    0  \d{4}-\d\d-\d\dT[\d:.]+Z  alice  run_start  \{.*I am going to Tours/,
    );
    expect(short.out.some((line) => line.includes("porter-0/t0  tool_execution_end"))).toBe(true);
    expect(short.out.join("\n")).not.toContain(secret);
    expect(short.talk).toContain("--full prints them whole");
    const full = await reeve([...log, "--full", "--json"]);
    expect(full.out.join("\n")).toContain(secret);
    const entries = full.out.map((line) => JSON.parse(line) as { seq: number });
    expect(entries.map(({ seq }) => seq)).toEqual(entries.map((_, index) => index));
    const outside = await reeve([...log, "--outside", "--json"]);
    expect(outside.out.map((line) => (JSON.parse(line) as { action: string }).action)).toEqual(["run_start"]);
  });

  test("reeve audit log escapes control characters in texts", async () => {
    const { folder, store } = await setUp();
    const runtime = await openRuntime({ store });
    const model = scriptedModel(["\u001B[2Jgone\u202E"]);
    const run = await runtime.submit(new Agent({ name: "p", model }), "hi", { userId: "eve\u001B[8m" });
    await run.result();
    await runtime.close();
    const { out } = await reeve(["audit", "log", run.runId, "--store", store], { cwd: folder });
    expect(out.join("")).toContain("gone\\u202e");
    expect(out.join("")).not.toMatch(/[\p{Cc}\p{Cf}]/u);
  });
});

describe("the command line of reeve audit", () => {
  test.for([
    {
      args: ["audit", "verify", "--store", "sqlite:nowhere.db"],
      code: 3,
      says: "no store found at nowhere.db",
    },
    {
      args: ["audit", "verify", "--store", "memory:"],
      code: 2,
      says: "a store in memory is visible only to its own process",
    },
    { args: ["audit", "verify", "--store", "reeve.db"], code: 2, says: 'invalid store "reeve.db"' },
    { args: ["audit", "verify", "7f"], code: 2, says: 'invalid run id "7f"' },
    { args: ["audit", "verify", "--head", "run_7f"], code: 2, says: "expected RUN=HASH" },
    {
      args: ["audit", "verify", "--key-env", "NOT_SET"],
      code: 2,
      says: "the variable NOT_SET is empty or not set",
    },
    { args: ["audit", "verify", "--speed"], code: 2, says: "unknown option '--speed'" },
    { args: ["audit", "log"], code: 2, says: "missing required argument 'RUN'" },
    { args: ["audt"], code: 2, says: "unknown command 'audt'" },
    {
      args: ["kill", "run_7f"],
      code: 2,
      says: "reeve: unknown command kill; use reeve cancel RUN",
    },
    { args: ["list"], code: 2, says: "reeve: unknown command list; use reeve ps" },
    { args: ["kill", "run_7f"], code: 2, says: "reeve: unknown command kill; use reeve cancel RUN" },
    { args: ["run", "Hello", "--budget", "1"], code: 2, says: "reeve: use --max-budget-usd" },
    { args: ["run", "Hello", "--system=Be brief."], code: 2, says: "reeve: use --instructions" },
    { args: ["run", "Hello", "--json"], code: 2, says: "reeve: use --mode json" },
  ])("reeve $args exits with $code and prints the reason on stderr", async ({ args, code, says }) => {
    const said = await reeve(args);
    expect(said).toMatchObject({ code, out: [], talk: expect.stringContaining(says) });
    expect(existsSync(join(repository, "nowhere.db"))).toBe(false);
  });

  test.for([
    { args: ["chat", "--json"] },
    { args: ["watch", "--json"] },
    { args: ["watch", "--cwd", "/tmp"] },
    { args: ["sessions", "show", "ses_7f", "--system", "Hello"] },
  ])("reeve $args exits with 2 and suggests no option that the command lacks", async ({ args }) => {
    const { code, talk } = await reeve(args);
    expect(code).toBe(2);
    expect(talk).toMatch(/unknown option/u);
    expect(talk).not.toMatch(/reeve: use/u);
  });

  test("reeve audit refuses a file that is not a store and an unknown run", async () => {
    const { folder, store } = await setUp();
    await writeFile(
      join(folder, "notes.txt"),
      "not a database at all, whatever its length may be\n".repeat(100),
    );
    const verify = ["audit", "verify", "--store", `sqlite:${join(folder, "notes.txt")}`];
    expect(await reeve(verify)).toMatchObject({ code: 4, out: [] });
    // A command that only reads does not turn an empty file into a store.
    const empty = join(folder, "empty.db");
    await writeFile(empty, "");
    const said = await reeve(["audit", "verify", "--store", `sqlite:${empty}`]);
    expect(said).toMatchObject({
      code: 3,
      out: [],
      talk: expect.stringContaining("no store found in the file"),
    });
    expect(await readFile(empty, "utf8")).toBe("");
    expect(await reeve(["audit", "log", "run_none", "--store", store])).toMatchObject({ code: 3, out: [] });
  });

  test.for([["--help"], ["audit", "--help"], ["audit", "verify", "--help"], ["audit", "log", "--help"]])(
    "reeve %s prints help on stdout",
    async (args) => {
      const { code, out, talk } = await reeve(args);
      expect({ code, talk }).toEqual({ code: 0, talk: "" });
      expect(out[0]).toMatch(/^Usage: reeve /);
    },
  );
});
