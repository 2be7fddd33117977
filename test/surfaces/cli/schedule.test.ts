import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { runCommandLine } from "../../../src/surfaces/cli/program.ts";
import { Agent, openRuntime } from "../../../src/entries/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import type { Terminal } from "../../../src/surfaces/cli/terminal/terminal.ts";
import type { Said } from "./reeve-process.ts";

/** Runs the command line in this process. */
async function reeve(args: readonly string[]): Promise<Said> {
  const out: string[] = [];
  const talk: string[] = [];
  const terminal: Terminal = {
    out: async (line) => void out.push(line),
    say: (line) => void talk.push(line),
    put: (text) => void out.push(text),
    isWatched: false,
    canAsk: false,
    ask: async () => undefined,
    input: async () => "",
    onInterrupt: () => () => undefined,
    env: {},
  };
  return { code: await runCommandLine(args, terminal), out, talk: talk.join("\n") };
}

/** A store that does not exist yet. */
async function newStore(): Promise<readonly string[]> {
  const folder = await mkdtemp(join(tmpdir(), "reeve-schedule-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }));
  return ["--store", `sqlite:${join(folder, "data", "reeve.db")}`];
}

test("reeve schedule add stores a schedule, reeve schedule list prints it, and reeve schedule remove deletes it", async () => {
  const store = await newStore();
  const cron = ["--cron", "0 9 * * 1-5", "--time-zone", "Europe/Berlin"];
  const add = [
    "schedule",
    "add",
    "report",
    "Summarise",
    "the night.",
    "--agent",
    "reporter",
    ...cron,
    ...store,
  ];
  const budget = ["--max-budget-usd", "0.5", "--user", "ann", "--overlap", "queue"];
  const added = await reeve([...add, ...budget]);
  expect([added.code, added.out]).toEqual([0, ["report"]]);
  expect(added.talk).toMatch(/Next fire: \d{4}-\d{2}-\d{2}T09:00 Europe\/Berlin/u);
  // The same command again changes nothing.
  expect((await reeve([...add, ...budget])).code).toBe(0);
  const listed = await reeve(["schedule", "list", "--json", ...store]);
  expect(listed.out.map((line) => JSON.parse(line) as unknown)).toMatchObject([
    {
      name: "report",
      agentId: "reporter",
      input: "Summarise the night.",
      userId: "ann",
      overlap: "queue",
      missed: "once",
      times: { cron: "0 9 * * 1-5", timeZone: "Europe/Berlin" },
      run: { budget: { maxCostUsd: 0.5 } },
    },
  ]);
  const lines = await reeve(["schedule", "list", ...store]);
  expect(lines.out.join("\n")).toMatch(/^report {2}reporter {2}0 9 \* \* 1-5 Europe\/Berlin {2}\S+T09:00/u);
  const foreign = await reeve(["schedule", "remove", "report", ...store]);
  expect([foreign.code, foreign.out]).toEqual([3, []]);
  expect(foreign.talk).toContain("schedule report not found");
  expect(await reeve(["schedule", "remove", "report", "--user", "ann", ...store])).toMatchObject({
    code: 0,
    out: ["report"],
  });
  expect((await reeve(["schedule", "list", ...store])).talk).toContain("No schedule found");
});

test("reeve schedule add reads intervals and single times", async () => {
  const store = await newStore();
  const add = (name: string, ...more: string[]) =>
    reeve(["schedule", "add", name, "go", "--agent", "clerk", ...more, ...store]);
  expect((await add("often", "--every", "15m")).code).toBe(0);
  expect((await add("once", "--at", "2999-12-01T09:00", "--time-zone", "Asia/Tokyo")).code).toBe(0);
  const { out } = await reeve(["schedule", "list", "--json", ...store]);
  const times = out.map((line) => (JSON.parse(line) as { times: object }).times);
  expect(times).toMatchObject([{ everyMs: 900_000 }, { at: Date.parse("2999-12-01T00:00Z") }]);
});

test("reeve schedule add warns about an agent that the workspace does not have", async () => {
  const store = await newStore();
  const add = (agent: string) =>
    reeve(["schedule", "add", agent, "go", "--agent", agent, "--every", "1h", ...store]);
  const unknown = await add("asistant");
  expect([unknown.code, unknown.out]).toEqual([0, ["asistant"]]);
  expect(unknown.talk).toContain(
    'reeve: warning: reeve serve in this folder does not host the agent: agent "asistant" not found: use assistant',
  );
  expect((await add("assistant")).talk).not.toContain("warning");
});

test("reeve schedule add says which argument is wrong and stores nothing", async () => {
  const store = await newStore();
  const refused: readonly [string[], string][] = [
    [[], "needs exactly one of --cron, --every and --at"],
    [["--cron", "* * * * *", "--every", "1h"], "not --cron and --every"],
    [["--cron", "61 * * * *"], 'invalid cron "61 * * * *"'],
    [["--cron", "0 0 30 2 *"], "it never fires"],
    [["--cron", "0 9 * * *", "--time-zone", "Mars/Phobos"], 'invalid timeZone "Mars/Phobos"'],
    [["--every", "soon"], "invalid --every soon: expected a number and a unit"],
    [["--at", "2020-01-01T00:00"], "the time has passed"],
    [["--every", "1h", "--overlap", "skp"], 'use "skip"'],
    [["--every", "1h", "--max-tokens", "many"], "invalid --max-tokens many"],
  ];
  for (const [more, message] of refused) {
    const { code, talk } = await reeve(["schedule", "add", "x", "go", "--agent", "clerk", ...more, ...store]);
    expect([code, talk]).toEqual([2, expect.stringContaining(message)]);
  }
  expect((await reeve(["schedule", "list", ...store])).out).toEqual([]);
});

test("reeve schedule edit changes a schedule, run starts it, and add --from takes agent and input from an earlier run", async () => {
  const store = await newStore();
  await reeve(["schedule", "add", "report", "Summarise", "--agent", "reporter", "--every", "1h", ...store]);
  const edited = await reeve([
    "schedule",
    "edit",
    "report",
    "--input",
    "In short",
    "--every",
    "2h",
    ...store,
  ]);
  expect([edited.code, edited.out]).toEqual([0, ["report"]]);
  const { out } = await reeve(["schedule", "list", "--json", ...store]);
  expect(JSON.parse(out[0] ?? "{}")).toMatchObject({ input: "In short", times: { everyMs: 7_200_000 } });
  const started = await reeve(["schedule", "run", "report", ...store]);
  expect([started.code, started.out[0]]).toEqual([0, expect.stringMatching(/^run_/u)]);
  const nothing = await reeve(["schedule", "edit", "report", ...store]);
  expect([nothing.code, nothing.talk]).toEqual([2, expect.stringContaining("at least one option")]);
  const unknown = await reeve(["schedule", "run", "none", ...store]);
  expect([unknown.code, unknown.talk]).toEqual([3, expect.stringContaining("schedule none does not exist")]);

  const address = store[1] ?? "";
  const runtime = await openRuntime({ store: address as `sqlite:${string}` });
  const reporter = new Agent({ name: "reporter", model: scriptedModel(["Done."]) });
  const { runId } = await reporter.invoke("Count the birds", { runtime });
  await runtime.close();
  await reeve(["schedule", "add", "birds", "--from", runId, "--every", "1h", ...store]);
  const { out: listed } = await reeve(["schedule", "list", "--json", ...store]);
  expect(listed.map((line) => JSON.parse(line) as { name: string; input: string })).toContainEqual(
    expect.objectContaining({ name: "birds", agentId: "reporter", input: "Count the birds" }),
  );
  const bare = await reeve(["schedule", "add", "bare", "--every", "1h", ...store]);
  expect([bare.code, bare.talk]).toEqual([2, expect.stringContaining("needs --agent and INPUT, or --from")]);
});
