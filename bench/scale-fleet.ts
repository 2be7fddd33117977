import { spawn, type ChildProcess } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Pool } from "pg";
import { openRuntime, sha256, type Runtime } from "reeve";
import type { EngineFactory } from "reeve/kernel";
import { postgresStore } from "reeve/postgres";
import { restate } from "reeve/restate";
import { stepping, type ScaleWorkerOrders } from "./scale-agent.ts";

/** Maximum time that a row waits for something that should take a second or two. */
const patienceMs = 30_000;

type WorkerSetup = Pick<ScaleWorkerOrders, "leaseMs" | "concurrency" | "callMs" | "site">;

/** Worker processes on a schema of their own, and a runtime that submits runs to them and executes none. */
export class ScaleFleet {
  readonly #url: string;
  readonly #schema: string;
  readonly #setup: WorkerSetup;
  readonly #pool: Pool;
  readonly #runtime: Runtime;
  readonly #workers = new Map<string, ChildProcess>();

  private constructor(url: string, schema: string, setup: WorkerSetup, pool: Pool, runtime: Runtime) {
    this.#url = url;
    this.#schema = schema;
    this.#setup = setup;
    this.#pool = pool;
    this.#runtime = runtime;
  }

  static async open(url: string, setup: WorkerSetup): Promise<ScaleFleet> {
    const schema = `scale_${randomUUID().replaceAll("-", "")}`;
    const store = await postgresStore({ url, schema, hash: sha256, connections: 4 });
    const { site } = setup;
    // Without a port, the engine submits runs to Restate and executes none.
    const engine =
      site === undefined ? idleEngine : restate({ ingressUrl: site.ingressUrl, service: site.service });
    const runtime = await openRuntime({ store, engine });
    return new ScaleFleet(url, schema, setup, new Pool({ connectionString: url, max: 2 }), runtime);
  }

  /** Submits runs that work until their workers are killed. */
  async submit(runs: number): Promise<void> {
    progress(`submitting ${runs} runs`);
    const agent = stepping(this.#setup.callMs);
    for (let index = 0; index < runs; index++) await this.#runtime.submit(agent, null);
  }

  /** Starts a worker and waits until it claims runs. */
  async start(workerId: string): Promise<void> {
    progress(`starting ${workerId}`);
    const orders = { url: this.#url, schema: this.#schema, workerId, ...this.#setup };
    const script = fileURLToPath(new URL("scale-worker.ts", import.meta.url));
    const worker = spawn(process.execPath, [script, JSON.stringify(orders)], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    this.#workers.set(workerId, worker);
    const failed = once(worker, "exit").then(([code]) => {
      throw new Error(`${workerId} ended with ${String(code)} before it was ready`);
    });
    await Promise.race([once(worker.stdout, "data", { signal: AbortSignal.timeout(patienceMs) }), failed]);
    failed.catch(() => undefined);
  }

  /** Ends a worker without a chance to release its runs. */
  async kill(workerId: string): Promise<void> {
    const worker = this.#workers.get(workerId);
    this.#workers.delete(workerId);
    if (worker === undefined || worker.exitCode !== null) return;
    const ended = once(worker, "exit");
    worker.kill("SIGKILL");
    await ended;
  }

  /** Waits until a worker owns so many runs, and each of them has at least one step. */
  async untilWorking(workerId: string, runs: number): Promise<void> {
    progress(`waiting until ${workerId} works on ${runs} runs`);
    const working = `SELECT count(*)::integer AS count FROM ${this.#schema}.runs AS runs WHERE owner = $1 AND EXISTS (
      SELECT 1 FROM ${this.#schema}.commits WHERE run = runs.id AND number > 1)`;
    await this.#until(async () => (await this.#count(working, workerId)) >= runs, `${workerId} works`);
  }

  /** Waits until every run has more commits than these. */
  async untilContinued(commits: ReadonlyMap<string, number>): Promise<void> {
    progress(`waiting until ${commits.size} runs continue`);
    await this.#until(async () => {
      const now = await this.commits();
      return [...commits].every(([run, count]) => (now.get(run) ?? 0) > count);
    }, "the runs continue");
  }

  /** The number of commits of each run. */
  async commits(): Promise<ReadonlyMap<string, number>> {
    const { rows } = await this.#pool.query<{ readonly run: string; readonly count: string }>(
      `SELECT run, max(number) AS count FROM ${this.#schema}.commits GROUP BY run`,
    );
    return new Map(rows.map(({ run, count }) => [run, Number(count)]));
  }

  /** Commits per second of all workers in a period. */
  async rate(periodMs: number): Promise<number> {
    progress(`counting commits for ${periodMs / 1_000} s`);
    const all = `SELECT count(*)::integer AS count FROM ${this.#schema}.commits`;
    const [began, before] = [performance.now(), await this.#count(all)];
    await pause(periodMs);
    return ((await this.#count(all)) - before) / ((performance.now() - began) / 1_000);
  }

  /** Kills all workers and deletes the schema. */
  async close(): Promise<void> {
    for (const workerId of this.#workers.keys()) await this.kill(workerId);
    await this.#runtime.close();
    await this.#pool.query(`DROP SCHEMA ${this.#schema} CASCADE`);
    await this.#pool.end();
  }

  async #count(sql: string, ...values: readonly string[]): Promise<number> {
    const { rows } = await this.#pool.query<{ readonly count: number }>(sql, [...values]);
    return rows[0]?.count ?? 0;
  }

  async #until(isTrue: () => Promise<boolean>, what: string): Promise<void> {
    const end = performance.now() + patienceMs;
    while (!(await isTrue())) {
      if (performance.now() > end) throw new Error(`it took more than ${patienceMs} ms until ${what}`);
      await pause(20);
    }
  }
}

/** Says on stderr what a row does, so that a row that hangs shows where. */
function progress(text: string): void {
  process.stderr.write(`  ${text}\n`);
}

/** An engine that executes no run. */
const idleEngine: EngineFactory = () => ({
  kind: "local",
  start: async () => undefined,
  wake: () => undefined,
  agentsChanged: () => undefined,
  stop: async () => undefined,
});
