import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, inject, test } from "vitest";
import { formatRunId, type Event, type RunId } from "../../src/kernel/index.ts";
import { sha256 } from "../../src/runtime/index.ts";
import { sqliteStore } from "../../src/runtime/stores/sqlite/store.ts";
import { WorkerProcess, type Death, type WorkerEnd } from "../../src/testing/index.ts";
import { readAll } from "../runtime/runtime-setup.ts";

const script = new URL("deadly-worker.mjs", inject("crashWorkers"));
const boundMs = 30_000;
const deadly = formatRunId("deadly");

interface Site {
  /** Runs one worker process to its end. */
  readonly work: (place: string, death?: Death) => Promise<WorkerEnd>;
  /** Runs worker processes until one of them ends by itself. Returns the number of processes that were killed. */
  readonly workUntilDone: (place: string) => Promise<number>;
  readonly attempts: () => Promise<readonly string[]>;
  readonly events: (runId: RunId) => Promise<readonly Event[]>;
}

async function onSite(check: (site: Site) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "reeve-deadly-"));
  const file = join(folder, "store.db");
  const work = (place: string, death: Death | null = null): Promise<WorkerEnd> => {
    const orders = { file, workload: "deadly", data: place, death, server: { url: "", caller: "" } };
    return WorkerProcess.start(script, orders, join(folder, "compiled")).endWithin(boundMs);
  };
  const workUntilDone = async (place: string): Promise<number> => {
    for (let killed = 0; killed < 20; killed++) {
      const end = await work(place);
      if (end.kind === "finished") return killed;
      if (end.kind === "failed" && !end.reason.includes("ended with SIGKILL")) throw new Error(end.reason);
    }
    throw new Error("20 processes in a row were killed");
  };
  try {
    await check({
      work,
      workUntilDone,
      attempts: async () => (await readFile(`${file}.attempts`, "utf8")).trim().split("\n"),
      async events(runId) {
        const store = await sqliteStore({ path: file, hash: sha256 });
        const events = await readAll(store, runId);
        await store.close();
        return events;
      },
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const endOf = (events: readonly Event[]): unknown => events.findLast(({ type }) => type === "task_end")?.data;
const failed = (recoveries: number): unknown => ({
  status: "failed",
  failure: { code: "crash_loop", details: { runId: deadly, recoveries } },
});

describe("a run that kills its process", () => {
  test.each(["tool", "model", "code"])(
    "fails with crash_loop at its fifth recovery if its %s kills the process each time, and other runs complete",
    (place) =>
      onSite(async ({ workUntilDone, attempts, events }) => {
        expect(await workUntilDone(place)).toBe(5);
        expect(await attempts()).toEqual(Array.from({ length: 5 }, () => place));
        const log = await events(deadly);
        expect(endOf(log)).toMatchObject(failed(5) as object);
        expect(log.at(-1)).toMatchObject({ type: "run_end", data: { status: "failed" } });
        expect((await events(formatRunId("peaceful"))).at(-1)).toMatchObject({
          data: { status: "completed" },
        });
        // B3: each model call that was cut off is charged.
        const lost = log.filter(({ type }) => type === "budget_lost");
        expect(lost.length).toBe(place === "model" ? 5 : 0);
      }),
  );

  test("completes if it records a step between the crashes, although it crashes nine times in all", () =>
    onSite(async ({ workUntilDone, events }) => {
      expect(await workUntilDone("steps")).toBe(9);
      expect(endOf(await events(deadly))).toMatchObject({ status: "completed", output: "survived" });
    }));

  test("fails with crash_loop although the process dies before the failure of the fifth recovery is written", () =>
    onSite(async ({ work, workUntilDone, attempts, events }) => {
      for (let count = 0; count < 5; count++) expect(await work("tool")).toMatchObject({ kind: "failed" });
      // The writes of the worker: it enlists, finds both runs, claims the deadly one, and records its end.
      const end = await work("tool", { at: 5, when: "before" });
      expect(end).toMatchObject({
        kind: "killed",
        write: expect.stringContaining("run_deadly commit") as string,
      });
      expect(await workUntilDone("tool")).toBe(0);
      expect((await attempts()).length).toBe(5);
      expect(endOf(await events(deadly))).toMatchObject(failed(6) as object);
    }));

  test("completes after crash_loop if it is resumed with code that does not kill the process", () =>
    onSite(async ({ workUntilDone, attempts, events }) => {
      await workUntilDone("tool");
      expect(await workUntilDone("nowhere")).toBe(0);
      expect((await attempts()).at(-1)).toBe("nowhere");
      expect(endOf(await events(deadly))).toMatchObject({ status: "completed", output: "survived" });
    }));
});
