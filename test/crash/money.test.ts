import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, inject, test } from "vitest";
import { toNanoUsd } from "../../src/kernel/index.ts";
import { sha256 } from "../../src/runtime/index.ts";
import { sqliteStore } from "../../src/runtime/stores/sqlite/store.ts";
import {
  CountingServer,
  traceRun,
  WorkerProcess,
  type CallBook,
  type Death,
} from "../../src/testing/index.ts";
import { casesOf } from "../effort.ts";
import { maxCostUsd, moneyRun, moneyWorld, numberOf } from "./money-world.ts";

const script = new URL("money-worker.mjs", inject("crashWorkers"));
const runs = casesOf(1_000, 50);
const seed = process.env["REEVE_MONEY_SEED"] ?? "1";
const perBatch = 50;
const capNanoUsd = toNanoUsd(maxCostUsd);

/**
 * How each worker process of a batch ends: killed at one of its writes, killed from outside during its calls, or not
 * killed.
 */
const lives = ["write", "call", "write", "call", "none"] as const;

interface Figures {
  kills: number;
  calls: number;
  exhausted: number;
  lost: number;
  most: number;
}

test(
  `B1, B3, U1: ${runs} random runs with a cap of ${maxCostUsd} USD and kills are never billed above their ledger and totals`,
  { timeout: 300_000 + runs * 1_000 },
  async () => {
    const folder = await mkdtemp(join(tmpdir(), "reeve-money-"));
    const server = await CountingServer.open();
    const figures: Figures = { kills: 0, calls: 0, exhausted: 0, lost: 0, most: 0 };
    const problems: string[] = [];
    const batches = Math.ceil(runs / perBatch);
    let next = 0;
    const lane = async (): Promise<void> => {
      for (let batch = next++; batch < batches; batch = next++) {
        const size = Math.min(perBatch, runs - batch * perBatch);
        problems.push(...(await doBatch({ folder, server, batch, size, figures })));
      }
    };
    try {
      await Promise.all([lane(), lane()]);
    } finally {
      await server.close();
      await rm(folder, { recursive: true, force: true, maxRetries: 10 });
    }
    expect(problems).toEqual([]);
    expect(figures.kills).toBeGreaterThanOrEqual(batches * 2);
    // Some runs must exhaust their budget, some must not, and kills must have lost money; otherwise the test proves
    // nothing.
    expect(figures.exhausted).toBeGreaterThan(0);
    expect(figures.exhausted).toBeLessThan(runs);
    expect(figures.lost).toBeGreaterThan(0);
    expect(figures.most).toBeLessThanOrEqual(capNanoUsd);
  },
);

interface Batch {
  readonly folder: string;
  readonly server: CountingServer;
  readonly batch: number;
  readonly size: number;
  readonly figures: Figures;
}

async function doBatch({ folder, server, batch, size, figures }: Batch): Promise<readonly string[]> {
  const file = join(folder, `batch-${batch}.db`);
  const book = server.book(`batch-${batch}`, moneyWorld());
  for (const [life, death] of lives.entries()) {
    const caller = `batch ${batch} life ${life}`;
    const at = 20 + numberOf(`${seed} ${caller}`, 400);
    const when = at % 2 === 0 ? "before" : "after";
    const orders = {
      file,
      workload: "money",
      data: { batch, runs: size },
      death: death === "write" ? ({ at, when } satisfies Death) : null,
      server: { url: book.url, caller },
    };
    const worker = WorkerProcess.start(script, orders, join(folder, "compiled"));
    const over = new AbortController();
    if (death === "call") strikeAtCall(book, worker, at, over.signal);
    const end = await worker.endWithin(120_000);
    over.abort();
    if (end.kind === "finished") break;
    if (end.kind === "failed" && death !== "call") return [`${caller}: ${end.reason}`];
    figures.kills++;
  }
  figures.calls += book.calls.length;
  return judge(file, book, batch, size, figures);
}

/** Kills the worker once it has made `after` calls and these calls are in flight. */
function strikeAtCall(book: CallBook, worker: WorkerProcess, after: number, over: AbortSignal): void {
  const target = book.calls.length + after / 2;
  book
    .until((calls) => over.aborted || calls.length >= target, 110_000)
    .then(
      () => worker.signal("SIGKILL"),
      () => undefined,
    );
}

async function judge(
  file: string,
  book: CallBook,
  batch: number,
  size: number,
  figures: Figures,
): Promise<readonly string[]> {
  const store = await sqliteStore({ path: file, hash: sha256 });
  const problems: string[] = [];
  let allNanoUsd = 0;
  try {
    for (let index = 0; index < size; index++) {
      const runId = moneyRun(batch, index);
      const billed = book.calls
        .filter(({ name, key }) => name === "model" && key.startsWith(`${runId} `))
        .reduce((sum, call) => sum + toNanoUsd(call.billed.usd), 0);
      const trace = await traceRun(store, runId);
      const { spent, lost, reserved } = trace?.money ?? {};
      if (trace === undefined || spent === undefined || lost === undefined || reserved === undefined) {
        problems.push(`${runId} is not in the store`);
        continue;
      }
      const { status, open, seats } = trace;
      if (status !== "completed" && status !== "budget_exhausted") problems.push(`${runId} ended ${status}`);
      if (billed > capNanoUsd) problems.push(`${runId} was billed ${billed} nano-dollars`);
      if (billed > spent.nanoUsd)
        problems.push(`${runId}: billed ${billed}, the ledger says ${spent.nanoUsd}`);
      if (spent.nanoUsd > capNanoUsd) problems.push(`${runId} spent ${spent.nanoUsd} nano-dollars`);
      allNanoUsd += spent.nanoUsd;
      if (reserved.nanoUsd !== 0) problems.push(`${runId} keeps ${reserved.nanoUsd} reserved`);
      if (seats.most > seats.cap) problems.push(`${runId} had ${seats.most} seats taken`);
      if (open.length > 0) problems.push(`${runId}: ${open.join(" ")} did not end`);
      figures.exhausted += status === "budget_exhausted" ? 1 : 0;
      figures.lost += lost.nanoUsd;
      figures.most = Math.max(figures.most, billed);
    }
    const rows = await store.usage.sum({ by: "agent" });
    const totalNanoUsd = rows.reduce((sum, { costUsd }) => sum + toNanoUsd(costUsd), 0);
    if (totalNanoUsd !== allNanoUsd)
      problems.push(`batch ${batch}: the runs spent ${allNanoUsd}, the totals say ${totalNanoUsd}`);
    const counted = rows.reduce((sum, each) => sum + each.runs, 0);
    if (counted !== size) problems.push(`batch ${batch}: the totals count ${counted} of ${size} runs`);
  } finally {
    await store.close();
  }
  return problems;
}
