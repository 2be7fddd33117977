import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { inject, onTestFinished } from "vitest";
import { CountingServer, traceRun, WorkerProcess, type RunTrace } from "../../src/testing/index.ts";
import { crashLease, crashSchema, openCrashStore } from "../crash/crash-store.ts";
import { errandRun } from "../crash/porter.ts";
import { untilEvent } from "../crash/until-event.ts";
import { toolAnswer } from "../crash/workload.ts";
import { query } from "../postgres/schemas.ts";

interface ZombieReport {
  /** The run before the stopped worker continued. */
  readonly calls: readonly string[];
  /** The run when the stopped worker knew that it had lost the run. */
  readonly before: RunTrace | undefined;
  /** The run when the zombie knew that it had lost it. */
  readonly after: RunTrace | undefined;
  /**
   * L15: how often the run has changed its owner: once, from the stopped worker to its successor, which is alive and
   * keeps the run.
   */
  readonly takeOvers: number;
  /** All calls, and the run when the successor had ended it. */
  readonly end: { readonly calls: readonly string[]; readonly trace: RunTrace | undefined };
}

/**
 * How far the successor of the stopped worker has come when that worker continues. The successor writes nothing before
 * its first call is answered, so that only the lease check of the store keeps the commit of the stopped worker out.
 */
type HeirHas = "ended the run" | "claimed the run and written nothing";

/**
 * Stops a worker in a call for longer than its lease, lets another worker take over its run, and continues the stopped
 * worker until it knows that it has lost the run. The environment names the shared PostgreSQL server and decides which
 * engine the workers have.
 */
export async function wakeZombie(heirHas: HeirHas): Promise<ZombieReport> {
  const folder = await mkdtemp(join(tmpdir(), "reeve-zombie-"));
  const file = join(folder, "store.db");
  const server = await CountingServer.open();
  const answers = { zombie: Promise.withResolvers<void>(), heir: Promise.withResolvers<void>() };
  const book = server.book("zombie", ({ name, body, caller }) => ({
    ...toolAnswer(name, body),
    ...(name === "carry" && { hold: () => answers[caller as keyof typeof answers].promise }),
  }));
  const serving = new URL("serving-worker.mjs", inject("crashWorkers"));
  const start = (caller: keyof typeof answers, runs: number): WorkerProcess => {
    // The heir is healthy, however slow the machine is.
    process.env[crashLease] = caller === "heir" ? "60000" : "1000";
    const orders = { file, workload: "porter", data: runs, death: null, server: { url: book.url, caller } };
    const worker = WorkerProcess.start(serving, orders, join(folder, "compiled"));
    onTestFinished(async () => {
      worker.signal("SIGKILL");
      await worker.ended;
    });
    return worker;
  };
  onTestFinished(async () => {
    delete process.env[crashLease];
    await server.close();
    await rm(folder, { recursive: true, force: true, maxRetries: 10 });
  });
  const runId = errandRun("zombie", 0);
  const made = (): readonly string[] => book.calls.map(({ caller, name }) => `${caller} ${name}`);
  const zombie = start("zombie", 1);
  const store = await openCrashStore(file);
  onTestFinished(() => store.close());
  const heirEnds = async (): Promise<void> => {
    answers.heir.resolve();
    await untilEvent(store, runId, ({ type }) => type === "run_end", AbortSignal.timeout(60_000));
  };
  await book.until(() => made().includes("zombie carry"), 60_000);
  zombie.signal("SIGSTOP");
  // No notification tells the zombie of its loss, as after a sleep of its machine.
  await query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE query = 'LISTEN "reeve:${crashSchema(file)}"'`);
  start("heir", 0);
  await book.until(() => made().includes("heir carry"), 60_000);
  if (heirHas === "ended the run") await heirEnds();
  const before = await traceRun(store, runId);
  // The answer is in the connection of the zombie before it continues, so that it commits before it can learn of its loss.
  answers.zombie.resolve();
  await nextTurn();
  zombie.signal("SIGCONT");
  await zombie.hasSaid("lease_lost", 60_000);
  const [calls, after] = [made(), await traceRun(store, runId)];
  await heirEnds();
  const trace = await traceRun(store, runId);
  const takeOvers = (await store.journal.find(runId))?.recoveries ?? 0;
  return { calls, before, after, takeOvers, end: { calls: made(), trace } };
}

const begun = ["zombie lift", "zombie carry", "heir carry"];
const all = [...begun, "heir drop"];

/**
 * The report about a stopped worker that makes no call after the two calls that it had begun, without the state of the
 * run in between.
 */
export function noTrace(heirHas: HeirHas): object {
  return {
    calls: heirHas === "ended the run" ? all : begun,
    takeOvers: 1,
    end: { calls: all, trace: { status: "completed", output: "done", chain: { ok: true } } },
  };
}
