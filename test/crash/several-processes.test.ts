import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, inject, test } from "vitest";
import type { RunId, Store } from "../../src/kernel/index.ts";
import { sha256 } from "../../src/runtime/index.ts";
import { sqliteStore } from "../../src/runtime/stores/sqlite/store.ts";
import { CountingServer, traceRun, WorkerProcess, type CallBook } from "../../src/testing/index.ts";
import { errandRun, errands } from "./porter.ts";
import { untilEvent } from "./until-event.ts";
import { toolAnswer } from "./workload.ts";

const script = new URL("serving-worker.mjs", inject("crashWorkers"));
const boundMs = 120_000;
const runsEach = 2;

/** Workers that share one store file, and a server that answers `carry` only after `answerCarries` was called. */
interface Yard {
  readonly store: Store;
  readonly book: CallBook;
  /** Starts a worker that submits its runs. */
  readonly start: (name: string) => WorkerProcess;
  readonly answerCarries: () => void;
}

async function inYard(work: (yard: Yard) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "reeve-yard-"));
  const file = join(folder, "store.db");
  const server = await CountingServer.open();
  const workers: WorkerProcess[] = [];
  const carries = Promise.withResolvers<void>();
  const book = server.book("yard", ({ name, body }) => ({
    ...toolAnswer(name, body),
    ...(name === "carry" ? { hold: () => carries.promise } : {}),
  }));
  const store = await sqliteStore({ path: file, hash: sha256, watchEveryMs: 5 });
  const start = (caller: string): WorkerProcess => {
    const orders = {
      file,
      workload: "porter",
      data: runsEach,
      death: null,
      server: { url: book.url, caller },
    };
    const worker = WorkerProcess.start(script, orders, join(folder, "compiled"));
    workers.push(worker);
    return worker;
  };
  try {
    await work({ store, book, start, answerCarries: () => carries.resolve() });
  } finally {
    for (const worker of workers) worker.signal("SIGKILL");
    await Promise.all(workers.map(({ ended }) => ended));
    await store.close();
    await server.close();
    await rm(folder, { recursive: true, force: true, maxRetries: 10 });
  }
}

function runsOf(worker: string): readonly RunId[] {
  return Array.from({ length: runsEach }, (_, index) => errandRun(worker, index));
}

/** The calls made for a run in order, as `caller tool`. */
function callsFor({ calls }: CallBook, runId: RunId): readonly string[] {
  return calls
    .filter(({ key }) => key.startsWith(`${runId}/`))
    .map(({ caller, name }) => `${caller} ${name}`);
}

/** Resolves once each of these runs waits for the answer to a `carry` made by one of these callers. */
function untilCarrying(book: CallBook, runIds: readonly RunId[], callers: readonly string[]): Promise<void> {
  return book.until(() =>
    runIds.every((runId) => callers.some((caller) => callsFor(book, runId).includes(`${caller} carry`))),
  );
}

/** Asserts that one worker made all calls of the run, each once. */
function expectUndisturbed(book: CallBook, runId: RunId): void {
  const calls = callsFor(book, runId);
  const [owner] = calls[0]?.split(" ") ?? [];
  expect(calls).toEqual(errands.map((errand) => `${owner} ${errand}`));
}

async function untilEnded(store: Store, runIds: readonly RunId[]): Promise<void> {
  const signal = AbortSignal.timeout(boundMs);
  await Promise.all(
    runIds.map((runId) => untilEvent(store, runId, ({ type }) => type === "run_end", signal)),
  );
}

async function expectWhole(store: Store, runIds: readonly RunId[]): Promise<void> {
  for (const runId of runIds) {
    const trace = await traceRun(store, runId);
    expect(trace).toMatchObject({ status: "completed", output: "done", open: [], chain: { ok: true } });
    expect(trace?.events.map(({ seq }) => seq)).toEqual(trace?.events.map((_, index) => index));
    const told = trace?.events.filter(({ type }) => type !== "run_recover").map(({ type }) => type);
    expect(told).toEqual([
      "run_start",
      "task_start",
      ...errands.flatMap(() => ["tool_execution_start", "tool_execution_end"]),
      "task_end",
      "run_end",
    ]);
  }
}

async function countCommits(store: Store, runId: RunId): Promise<number> {
  let commits = 0;
  for await (const _ of store.journal.read(runId)) commits++;
  return commits;
}

describe.each([2, 4])("%i worker processes on one store file", (processes) => {
  const others = Array.from({ length: processes - 1 }, (_, index) => `other-${index}`);

  test("J6, L2: other workers take over the runs of a killed worker and repeat only its calls in flight", () =>
    inYard(async ({ store, book, start, answerCarries }) => {
      const victim = start("victim");
      await untilCarrying(book, runsOf("victim"), ["victim"]);
      for (const other of others) start(other);
      const all = ["victim", ...others].flatMap(runsOf);
      await untilCarrying(book, all, ["victim", ...others]);
      const lost = all.filter((runId) => callsFor(book, runId).includes("victim carry"));
      victim.signal("SIGKILL");
      await victim.ended;
      await untilCarrying(book, lost, others);
      answerCarries();
      await untilEnded(store, all);
      await expectWhole(store, all);
      for (const runId of lost) {
        const calls = callsFor(book, runId).map((call) => call.replace(/^other-\d+/, "other"));
        expect(calls).toEqual(["victim lift", "victim carry", "other carry", "other drop"]);
      }
      for (const runId of all.filter((each) => !lost.includes(each))) expectUndisturbed(book, runId);
    }));

  test("L2: the runs of a worker process that is paused wait for it and continue when it continues", () =>
    inYard(async ({ store, book, start, answerCarries }) => {
      const sleeper = start("sleeper");
      await untilCarrying(book, runsOf("sleeper"), ["sleeper"]);
      sleeper.signal("SIGSTOP");
      for (const other of others) start(other);
      await untilCarrying(book, others.flatMap(runsOf), others);
      answerCarries();
      await untilEnded(store, others.flatMap(runsOf));
      for (const runId of runsOf("sleeper")) {
        expect(callsFor(book, runId)).toEqual(["sleeper lift", "sleeper carry"]);
        expect((await traceRun(store, runId))?.status).toBe("unfinished");
      }
      sleeper.signal("SIGCONT");
      await untilEnded(store, runsOf("sleeper"));
      const all = ["sleeper", ...others].flatMap(runsOf);
      await expectWhole(store, all);
      for (const runId of all) expectUndisturbed(book, runId);
    }));

  test("J3: a worker whose run was seized writes no commit and starts no call", () =>
    inYard(async ({ store, book, start, answerCarries }) => {
      const robbed = start("robbed");
      await untilCarrying(book, runsOf("robbed"), ["robbed"]);
      for (const other of others) start(other);
      const all = ["robbed", ...others].flatMap(runsOf);
      await untilCarrying(book, all, ["robbed", ...others]);
      const seized = errandRun("robbed", 0);
      await store.leases.enlist("thief");
      expect(await store.leases.seize(seized, "thief")).toMatchObject({ runId: seized, workerId: "thief" });
      const commits = await countCommits(store, seized);
      answerCarries();
      await robbed.hasSaid("lease_lost");
      const rest = all.filter((runId) => runId !== seized);
      await untilEnded(store, rest);
      expect(await countCommits(store, seized)).toBe(commits);
      expect(callsFor(book, seized)).toEqual(["robbed lift", "robbed carry"]);
      await store.leases.dismiss("thief");
      await untilEnded(store, [seized]);
      await expectWhole(store, all);
      const calls = callsFor(book, seized).map((call) => call.split(" ").at(-1));
      expect(calls).toEqual(["lift", "carry", "carry", "drop"]);
      for (const runId of rest) expectUndisturbed(book, runId);
    }));
});
