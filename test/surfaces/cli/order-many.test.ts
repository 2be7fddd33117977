import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { orderMany } from "../../../src/surfaces/cli/commands/runs/order-many.ts";
import type { Terminal } from "../../../src/surfaces/cli/terminal/terminal.ts";
import { Agent, openRuntime } from "../../../src/entries/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { reeve } from "./reeve-process.ts";

/** A store with three failed runs, two of ann and one of bob, and one completed run of ann. */
async function office() {
  const folder = await mkdtemp(join(tmpdir(), "reeve-many-"));
  const store = `sqlite:${join(folder, "reeve.db")}` as const;
  const runtime = await openRuntime({ store, prices: { find: () => ({ inputUsd: 1e-3, outputUsd: 1e-3 }) } });
  onTestFinished(async () => {
    await runtime.close();
    await rm(folder, { recursive: true, force: true, maxRetries: 10 });
  });
  const refusal = { error: Object.assign(new Error("no"), { status: 401 }) };
  const clerk = new Agent({ name: "clerk", model: scriptedModel(Array.from({ length: 9 }, () => refusal)) });
  const writer = new Agent({ name: "writer", model: scriptedModel(["Done."]) });
  const start = async (agent: Agent, runId: string, userId: string, order: string) => {
    await (await agent.submit("?", { runtime, runId, userId, metadata: { order } })).result();
  };
  await start(clerk, "run_a1", "ann", "7");
  await start(clerk, "run_a2", "ann", "8");
  await start(clerk, "run_b1", "bob", "7");
  await start(writer, "run_a3", "ann", "9");
  const cli = (...args: string[]): ReturnType<typeof reeve> => reeve([...args, "--store", store]);
  const ids = async (...args: string[]) => (await cli("ps", "--json", ...args)).out.map(idOf);
  return { cli, ids, store, runtime };
}

function idOf(line: string): string {
  return (JSON.parse(line) as { runId: string }).runId;
}

/** A terminal at which a person gives this answer. */
function terminalOf(answer: string) {
  const [said, printed]: [string[], string[]] = [[], []];
  const terminal: Partial<Terminal> = {
    canAsk: true,
    out: async (line) => void printed.push(line),
    say: (line) => void said.push(line),
    ask: async (question) => (said.push(question), answer),
  };
  return { said, printed, terminal: terminal as Terminal };
}

test("reeve ps lists the runs that fit the filters of the page, and sorts them by cost", async () => {
  const { cli, ids } = await office();
  expect(await ids("--where", "user=ann", "status=failed")).toEqual(["run_a2", "run_a1"]);
  expect(await ids("--where", "order=7", "status=Failed", "started=today")).toEqual(["run_b1", "run_a1"]);
  expect(await ids("--where", "started=yesterday", "status=failed")).toEqual([]);
  expect(await ids("--where", "ended=7d", "agent=writer", "cost>0")).toEqual(["run_a3"]);
  expect(await ids("--all", "--sort", "cost", "--limit", "1")).toEqual(["run_a3"]);
  expect(await ids("--where", "user=ann")).toEqual([]);
  for (const [words, problem] of [
    [["mara"], "invalid --where mara: expected a filter such as user=mara"],
    [["status=gone"], "invalid --where status=gone: expected a status such as failed"],
    [["user=a", "user=b"], "two filters are about user"],
  ] as const) {
    const { code, talk } = await cli("ps", "--where", ...words);
    expect([code, talk]).toEqual([2, expect.stringContaining(problem)]);
  }
});

test("an order with filters for many runs says what will happen to each run, and needs an answer", async () => {
  const { cli, ids, store, runtime } = await office();
  const where = ["--where", "user=ann"];
  const dry = await cli("delete", "--dry-run", ...where);
  expect([dry.code, dry.out.toSorted()]).toEqual([0, ["run_a1", "run_a2", "run_a3"]]);
  expect(dry.talk).toContain("3 runs are deleted with their events and contents.");
  const unasked = await cli("delete", ...where);
  expect([unasked.code, unasked.talk]).toEqual([
    2,
    expect.stringContaining("use --yes to delete these runs"),
  ]);
  const declining = terminalOf("n");
  const options = { store, where: ["user=ann"] };
  expect(await orderMany("delete", [], options, declining.terminal)).toBe("denied");
  expect(declining.said.at(-1)).toBe("Nothing was changed.");
  expect(await ids("--all")).toHaveLength(4);
  const agreeing = terminalOf("yes");
  expect(await orderMany("delete", [], { store, where: ["order=9"] }, agreeing.terminal)).toBe("ok");
  expect([agreeing.printed, agreeing.said.at(-1)]).toEqual([["run_a3"], "Delete this run? [y/N] "]);
  const resumed = await cli("resume", "--yes", "--json", "--where", "status=failed", "status=completed");
  expect(resumed.out.map(idOf).toSorted()).toEqual(["run_a1", "run_a2", "run_b1"]);
  for (const runId of ["run_a1", "run_a2", "run_b1"]) await (await runtime.find(runId))?.result();
  const cancelled = await cli("cancel", "--yes", "--where", "user=bob");
  expect([cancelled.out, cancelled.talk]).toEqual([
    [],
    expect.stringContaining("The run has already ended."),
  ]);
});

test("commands for many runs refuse a run id together with filters, no run id and no filters, and a task of many runs", async () => {
  const { cli } = await office();
  for (const [args, problem] of [
    [["cancel"], "missing RUN; use reeve cancel RUN, or reeve cancel --where FILTER"],
    [["resume", "run_a1", "--where", "user=ann"], "RUN and --where cannot be combined"],
    [["cancel", "--agent", "clerk", "--where", "user=ann"], "use --where agent=NAME to choose runs"],
  ] as const) {
    const { code, talk } = await cli(...args);
    expect([code, talk]).toEqual([2, expect.stringContaining(problem)]);
  }
});
