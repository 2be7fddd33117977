import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Command } from "commander";
import { expect, onTestFinished, test } from "vitest";
import { Agent, openRuntime, tool } from "../../../src/entries/index.ts";
import { commandLine } from "../../../src/surfaces/cli/program.ts";
import type { Terminal } from "../../../src/surfaces/cli/terminal/terminal.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { reeve } from "./reeve-process.ts";

/** A command that a person can call, with its names after `reeve`. */
interface Leaf {
  readonly path: string;
  readonly command: Command;
}

const silent = { put: () => undefined, say: () => undefined } as unknown as Terminal;

/** All commands that do something, without those that only group others. */
function leavesOf(command: Command, names: readonly string[] = []): readonly Leaf[] {
  const below = command.commands.filter((each) => each.name() !== "help");
  const acts = names.length > 0 && (below.length === 0 || command.registeredArguments.length > 0);
  return [
    ...(acts ? [{ path: names.join(" "), command }] : []),
    ...below.flatMap((each) => leavesOf(each, [...names, each.name()])),
  ];
}

const leaves = leavesOf(commandLine(silent, () => undefined));

/** The further arguments of commands that get a run or session which does not exist. */
const others: Readonly<Record<string, readonly string[]>> = {
  steer: ["x"],
  "top-up": ["--usd", "1"],
  reprioritize: ["HIGH"],
  fork: ["--at", "0"],
  signal: ["paid"],
  read: ["progress"],
  update: ["change"],
  "sessions rename": ["x"],
  "eval add": ["--to", "cases.jsonl"],
};

test.each(leaves)("reeve $path --help prints examples and exit codes", async ({ path }) => {
  const { code, out } = await reeve([...path.split(" "), "--help"]);
  const text = out.join("\n");
  expect(code).toBe(0);
  expect(text).toContain(`Usage: reeve ${path} `);
  expect(text).toContain("Exit codes:\n   0  success");
  expect(text).toMatch(new RegExp(`Examples:\\n(?:.*\\n)*? +\\$ .*\\breeve ${path}\\b`, "u"));
});

test.each(leaves)(
  "reeve $path exits with 2 and names an option that does not exist",
  async ({ path, command }) => {
    const required = command.options.filter(
      ({ mandatory, defaultValue }) => mandatory && defaultValue === undefined,
    );
    const needed = required.flatMap(({ long }) => [long ?? "", "1"]);
    const { code, out, talk } = await reeve([...path.split(" "), ...needed, "--no-such-option"]);
    expect({ code, out }).toEqual({ code: 2, out: [] });
    expect(talk).toContain("error: unknown option '--no-such-option'");
  },
);

/** An empty store, in a folder of its own. */
async function emptyStore(): Promise<{ readonly folder: string; readonly store: `sqlite:${string}` }> {
  const folder = await mkdtemp(join(tmpdir(), "reeve-every-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }));
  const store = `sqlite:${join(folder, "reeve.db")}` as const;
  await (await openRuntime({ store })).close();
  return { folder, store };
}

test("every command that takes a run or a session exits with 3 if it does not exist", async () => {
  const { store } = await emptyStore();
  const taking = leaves.filter(({ command }) =>
    ["RUN", "SESSION"].includes(command.registeredArguments[0]?.name() ?? ""),
  );
  expect(taking.length).toBeGreaterThan(20);
  for (const { path, command } of taking) {
    const [argument] = command.registeredArguments;
    const missing = argument?.name() === "RUN" ? "run_missing" : "ses_missing";
    const { code, out, talk } = await reeve([
      ...path.split(" "),
      missing,
      ...(others[path] ?? []),
      "--store",
      store,
    ]);
    expect({ path, code }).toEqual({ path, code: 3 });
    expect([...out, talk].join("\n")).toContain(missing);
  }
});

const erase = tool({
  name: "erase",
  description: "Erases a disk",
  inputSchema: { type: "object", properties: {} } as const,
  needsApproval: true,
  execute: () => "erased",
});

/** A store with a completed run and one that waits for a person. No process executes it. */
async function filledStore() {
  const { folder, store } = await emptyStore();
  const runtime = await openRuntime({ store });
  const quick = new Agent({ name: "quick", model: scriptedModel(["Yes."]) });
  const { sessionId } = await quick.invoke("Is refund of order 7 due?", { runtime, runId: "run_done" });
  const model = scriptedModel([{ toolCalls: [{ name: "erase", input: {} }] }]);
  const clerk = new Agent({ name: "clerk", model, tools: [erase] });
  await (await clerk.submit("Erase", { runtime, runId: "run_waits" })).untilPersonIsNeeded();
  await runtime.close();
  return { folder, store, session: sessionId ?? "" };
}

test("every command with --json prints only JSON on stdout, and everything else on stderr", async () => {
  const { folder, store, session } = await filledStore();
  const exported = join(folder, "session.jsonl");
  const prepared = [
    ["schedule", "add", "nightly", "Look.", "--agent", "clerk", "--every", "1h"],
    ["token", "create", "--scope", "admin"],
    ["gateway", "token", "--max-budget-usd", "1", "--name", "bot"],
    ["sessions", "export", session, "--output", exported],
  ];
  for (const args of prepared) {
    const { code, talk } = await reeve([...args, "--store", store]);
    expect({ args, code, talk }).toEqual({ args, code: 0, talk });
  }
  /** The arguments of each command, in an order in which every command has something to print. */
  const calls: Readonly<Record<string, readonly string[] | null>> = {
    agents: [],
    models: [],
    skills: [],
    "mcp list": [],
    config: [],
    doctor: [],
    "store upgrade": ["--dry-run"],
    ps: ["--all"],
    show: ["run_done"],
    tree: ["run_done"],
    cost: ["run_done"],
    logs: ["run_done"],
    inbox: [],
    approve: [],
    steer: ["run_waits", "Hurry."],
    withdraw: ["run_waits"],
    reprioritize: ["run_waits", "HIGH"],
    "top-up": ["run_waits", "--usd", "1"],
    pause: ["run_waits"],
    resume: ["run_waits"],
    cancel: ["run_waits"],
    fork: ["run_done", "--at", "0"],
    "eval add": ["run_done", "--to", join(folder, "cases.jsonl")],
    start: ["order", "--id", "order-7"],
    signal: ["run_order-7", "paid"],
    "sessions list": [],
    "sessions show": [session],
    "sessions rename": [session, "Refund"],
    "sessions search": ["refund"],
    "sessions export": [session],
    "sessions import": [exported, "--agent", "quick"],
    "sessions delete": [session],
    "schedule list": [],
    "worktrees list": [],
    "token list": [],
    "pair list": [],
    "gateway list": [],
    "gateway show": ["bot"],
    "audit verify": [],
    "audit log": ["run_done"],
    "dead-letters": [],
    delete: ["run_done", "--yes"],
    // These need a workflow, a worktree or a server of Restate. Their own tests have them.
    "check-replay": null,
    "worktrees show": null,
    "worktrees remove": null,
    "worktrees restore": null,
    "deploy list": null,
    // They write their reports as JSON to a file.
    eval: null,
    "eval fork": null,
  };
  const withJson = leaves.filter(({ command }) => command.options.some(({ long }) => long === "--json"));
  expect(withJson.map(({ path }) => path).toSorted()).toEqual(Object.keys(calls).toSorted());
  const empty: string[] = [];
  for (const [path, args] of Object.entries(calls)) {
    if (args === null) continue;
    const hasStore = withJson
      .find((leaf) => leaf.path === path)
      ?.command.options.some(({ long }) => long === "--store");
    const { code, out, talk } = await reeve(
      [...path.split(" "), ...args, "--json", ...(hasStore === true ? ["--store", store] : [])],
      { cwd: folder, env: { REEVE_MODEL: "openai/gpt-5.2", OPENAI_API_KEY: "k" } },
    );
    expect({ path, code, talk }).toEqual({ path, code: 0, talk });
    for (const line of out) expect([path, typeof JSON.parse(line)]).toEqual([path, "object"]);
    if (out.length === 0) empty.push(path);
  }
  expect(empty).toEqual(["skills", "mcp list", "worktrees list", "pair list", "dead-letters"]);
});
