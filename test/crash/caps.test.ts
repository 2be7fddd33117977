import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, inject, test } from "vitest";
import { formatRunId, toNanoUsd, type JsonValue, type Store } from "../../src/kernel/index.ts";
import { sha256 } from "../../src/runtime/index.ts";
import { sqliteStore } from "../../src/runtime/stores/sqlite/store.ts";
import {
  CountingServer,
  traceRun,
  WorkerProcess,
  type CallBook,
  type Death,
  type WorkerEnd,
} from "../../src/testing/index.ts";
import { ownRun } from "../../src/testing/contracts/store-fixtures.ts";
import { casesOf } from "../effort.ts";
import type { CappedWork } from "./capped-work.ts";
import { moneyWorld, numberOf } from "./money-world.ts";

const script = new URL("caps-worker.mjs", inject("crashWorkers"));
const day = "2026-11-16";
const noon = Date.parse(`${day}T12:00:00Z`);
const users = ["ann", "bob"];

/** Runs with their users. The names of the runs of one worker begin with its name. */
function runsOf(worker: string, count: number): CappedWork["runs"] {
  return Array.from({ length: count }, (_, index) => ({
    name: `${worker}-${index}`,
    userId: users[index % users.length] ?? "",
  }));
}

/** One store file with caps, and the server that bills the calls of all workers. */
class Treasury {
  readonly book: CallBook;
  readonly #folder: string;
  readonly #file: string;
  readonly #caps: { readonly perDayUsd: number; readonly perUserPerDayUsd: number };
  readonly #startedAt = Date.now();
  readonly #runs: CappedWork["runs"][number][] = [];

  constructor(folder: string, name: string, server: CountingServer, caps: Treasury["caps"]) {
    this.#folder = folder;
    this.#file = join(folder, `${name}.db`);
    this.#caps = caps;
    this.book = server.book(name, moneyWorld());
  }

  get caps(): { readonly perDayUsd: number; readonly perUserPerDayUsd: number } {
    return this.#caps;
  }

  /** Runs one process of a worker. An earlier process of this worker has submitted the same runs. */
  live(caller: string, runs: CappedWork["runs"], death: Death | null): Promise<WorkerEnd> {
    for (const run of runs) if (!this.#runs.some(({ name }) => name === run.name)) this.#runs.push(run);
    const work: CappedWork = { runs, caps: this.#caps, startedAt: this.#startedAt, noon };
    const data = work as unknown as JsonValue;
    const orders = {
      file: this.#file,
      workload: "caps",
      data,
      death,
      server: { url: this.book.url, caller },
    };
    return WorkerProcess.start(script, orders, join(this.#folder, "compiled")).endWithin(120_000);
  }

  /** Returns what is wrong after all runs have ended. */
  async judge(): Promise<readonly string[]> {
    const store = await sqliteStore({ path: this.#file, hash: sha256 });
    try {
      return [
        ...(await this.#judgeRuns(store)),
        ...(await this.#judgeCap(store, "perDayUsd")),
        ...(await this.#judgeCap(store, "perUserPerDayUsd")),
      ];
    } finally {
      await store.close();
    }
  }

  async #judgeRuns(store: Store): Promise<readonly string[]> {
    const problems: string[] = [];
    for (const { name } of this.#runs) {
      const trace = await traceRun(store, formatRunId(name));
      const end = trace?.events.findLast((event) => event.type === "task_end");
      if (trace?.status !== "completed" && trace?.status !== "budget_exhausted")
        problems.push(`${name} ended ${trace?.status}: ${end?.data.failure?.message}`);
      const { spent, totalled } = trace?.money ?? {};
      if (spent?.nanoUsd !== totalled?.nanoUsd)
        problems.push(`${name} spent ${spent?.nanoUsd}, and its commits add ${totalled?.nanoUsd}`);
    }
    return problems;
  }

  async #judgeCap(store: Store, cap: "perDayUsd" | "perUserPerDayUsd"): Promise<readonly string[]> {
    const limit = toNanoUsd(this.#caps[cap]);
    const noCaps = { perDayUsd: null, perTenantPerDayUsd: null, perUserPerDayUsd: null };
    const problems: string[] = [];
    for (const userId of cap === "perDayUsd" ? [undefined] : users) {
      const rows = await store.usage.sum({ by: "day", ...(userId !== undefined && { userId }) });
      const spent = rows.reduce((sum, { costUsd }) => sum + toNanoUsd(costUsd), 0);
      const billed = this.billed(userId);
      const who = userId ?? "all users";
      if (billed > spent) problems.push(`${who}: billed ${billed}, the totals say ${spent}`);
      if (spent > limit) problems.push(`${who}: spent ${spent}, and ${cap} is ${limit}`);
    }
    // A new run can draw everything that was not spent: no cap share is lost.
    const total = (await store.usage.sum({ by: "day" })).reduce(
      (sum, row) => sum + toNanoUsd(row.costUsd),
      0,
    );
    const request = { day, need: 0, want: limit, caps: { ...noCaps, perDayUsd: limit } };
    const room = await store.usage.draw(await ownRun(store, `judge-${cap}`), request);
    const free = room.kind === "held" ? room.amount : -1;
    if (cap === "perDayUsd" && free !== limit - total)
      problems.push(`a new run can draw ${free}, and ${limit - total} is left of ${cap}`);
    return problems;
  }

  /** What the server billed for the model calls of a user, or of all users. */
  billed(userId?: string): number {
    const runs = this.#runs.filter((run) => userId === undefined || run.userId === userId);
    return this.book.calls
      .filter(
        ({ name, key }) =>
          name === "model" && runs.some((run) => key.startsWith(`${formatRunId(run.name)} `)),
      )
      .reduce((sum, call) => sum + toNanoUsd(call.billed.usd), 0);
  }

  async countExhausted(): Promise<number> {
    const store = await sqliteStore({ path: this.#file, hash: sha256 });
    const { runs } = await store.journal.list({ status: "budget_exhausted", limit: 1_000 });
    await store.close();
    return runs.length;
  }
}

async function inFolder(work: (folder: string, server: CountingServer) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "reeve-caps-"));
  const server = await CountingServer.open();
  try {
    await work(folder, server);
  } finally {
    await server.close();
    // A killed worker may still remove its files.
    await rm(folder, { recursive: true, force: true, maxRetries: 10 });
  }
}

test(
  "B7: a worker that is killed at each of its writes spends at most the caps, and its cap shares are returned",
  { timeout: 600_000 },
  () =>
    inFolder(async (folder, server) => {
      const caps = { perDayUsd: 0.06, perUserPerDayUsd: 0.04 };
      const problems: string[] = [];
      let cases = 0;
      let exhausted = 0;
      // Every fifth write, of which every other is odd.
      const step = casesOf(1, 5);
      let next = 1;
      let isThrough = false;
      const lane = async (): Promise<void> => {
        while (!isThrough) {
          const at = next;
          next += step;
          const treasury = new Treasury(folder, `write-${at}`, server, caps);
          const when = at % 2 === 0 ? "before" : "after";
          const runs = runsOf("clerk", 2);
          const first = await treasury.live(`write ${at} life 1`, runs, { at, when });
          if (first.kind === "finished") isThrough = true;
          const last =
            first.kind === "killed" ? await treasury.live(`write ${at} life 2`, runs, null) : first;
          if (last.kind !== "finished") problems.push(`write ${at}: ${JSON.stringify(last)}`);
          problems.push(...(await treasury.judge()).map((problem) => `${when} write ${at}: ${problem}`));
          exhausted += await treasury.countExhausted();
          cases++;
        }
      };
      await Promise.all([lane(), lane(), lane()]);
      expect(problems).toEqual([]);
      expect(cases * step).toBeGreaterThan(20);
      // Otherwise the caps were never reached, and the test proves nothing.
      expect(exhausted).toBeGreaterThan(0);
    }),
);

test("B7: three processes that share a cap and are killed at random writes spend at most the cap, and return their shares", () =>
  inFolder(async (folder, server) => {
    const caps = { perDayUsd: 0.5, perUserPerDayUsd: 0.3 };
    const treasury = new Treasury(folder, "shared", server, caps);
    let kills = 0;
    const worker = async (name: string): Promise<void> => {
      for (let life = 0; ; life++) {
        const at = 25 + numberOf(`${name} ${life}`, 60);
        const death = life < 2 ? ({ at, when: at % 2 === 0 ? "before" : "after" } as const) : null;
        const end = await treasury.live(`${name} life ${life}`, runsOf(name, 12), death);
        if (end.kind === "finished") return;
        if (end.kind === "failed") throw new Error(`${name} life ${life}: ${end.reason}`);
        kills++;
      }
    };
    await Promise.all(["one", "two", "three"].map(worker));
    expect(await treasury.judge()).toEqual([]);
    expect(kills).toBeGreaterThanOrEqual(3);
    expect(await treasury.countExhausted()).toBeGreaterThan(0);
    expect(treasury.billed()).toBeGreaterThan(0);
  }));
