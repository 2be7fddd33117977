// Needs `npm ci` with development packages: it starts the PostgreSQL server of the tests, which waits for the disk here.
import { Pool } from "pg";
import { openRuntime, sha256 } from "reeve";
import { formatAgentId, type HostedAgent } from "reeve/kernel";
import { postgresStore } from "reeve/postgres";
import { PostgresServer } from "../test/postgres/server.ts";
import { median, type Row } from "./row.ts";
import { ScaleFleet } from "./scale-fleet.ts";
import { restateRows } from "./scale-restate.ts";
import { kilobyte, submitAll, timeSteps } from "./scale-steps.ts";
import { takeOver } from "./scale-take-over.ts";

/** Many short rounds that alternate, so that both sides meet the same disturbances. */
const rounds = 15;
const connections = 10;
/** Runs that each worker process executes at the same time. */
const runsEach = 16;

export async function* rows(): AsyncIterable<Row> {
  const server = await PostgresServer.start({ isSynced: true });
  try {
    for (const [runs, each] of [
      [1, 200],
      [16, 50],
    ] as const)
      yield await steps(server.url, runs, each);
    yield await shortRuns(server.url, 16);
    yield* restateRows(server.url);
    yield* fleets(server.url, 50);
    yield* fleets(server.url, 0);
    for (const [leaseMs, kills] of [
      [15_000, 1],
      [3_000, 3],
    ] as const)
      yield await takeOver({
        engine: "PostgreSQL",
        url: server.url,
        leaseMs,
        kills,
        goal: leaseMs / 1_000 + 2,
      });
  } finally {
    await server.stop();
  }
}

/**
 * Steps per second of so many runs at once, compared with the same number of plain statements that check the lease.
 * Rounds alternate.
 */
async function steps(url: string, runs: number, each: number): Promise<Row> {
  const runtime = await openRuntime({ store: await postgresStore({ url, hash: sha256, connections }) });
  const pool = new Pool({ connectionString: url, max: connections });
  const [ours, floor]: [number[], number[]] = [[], []];
  // Code that has run some thousand times is compiled. That of a worker is, after its first minute.
  await timeSteps(runtime, `warm-${runs}`, runs, 4_000 / runs);
  await bareStatements(pool, runs, 4_000 / runs);
  for (let round = 0; round < rounds; round++) {
    ours.push(await timeSteps(runtime, `steps-${runs}-${round}`, runs, each));
    floor.push(await bareStatements(pool, runs, each));
  }
  await runtime.close();
  await pool.end();
  return {
    name: `PostgreSQL: steps of 1 KB, ${runs} run${runs === 1 ? "" : "s"} at once, against the bare fenced statement`,
    value: median(ours),
    unit: "steps/s",
    against: median(floor),
    goal: { atLeast: 0.6 },
  };
}

/** Runs per second that are created, claimed, executed for one step and ended, so many at once. */
async function shortRuns(url: string, runs: number): Promise<Row> {
  const runtime = await openRuntime({ store: await postgresStore({ url, hash: sha256, connections }) });
  const rates: number[] = [];
  for (let round = 0; round <= 5; round++) {
    const agent: HostedAgent = {
      id: formatAgentId({ name: `short-${round}` }),
      run: (ctx) => ctx.step("work", async () => kilobyte),
    };
    const began = performance.now();
    for (let batch = 0; batch < 4; batch++) await submitAll(runtime, agent, runs);
    rates.push((4 * runs) / ((performance.now() - began) / 1_000));
  }
  await runtime.close();
  return {
    name: `PostgreSQL: runs of one step from submit to result, ${runs} at once`,
    value: median(rates.slice(1)),
    unit: "runs/s",
    against: null,
    goal: null,
  };
}

/** Inserts rows of the same size in sequences, each of which checks its fence in the same statement. */
async function bareStatements(pool: Pool, runs: number, each: number): Promise<number> {
  await pool.query(`DROP TABLE IF EXISTS bare_runs, bare_commits;
    CREATE TABLE bare_runs (id bigint PRIMARY KEY, epoch bigint, owner text) WITH (fillfactor = 70);
    CREATE TABLE bare_commits (run bigint, number bigint, body text, PRIMARY KEY (run, number));
    INSERT INTO bare_runs SELECT id, 1, 'w' FROM generate_series(1, ${runs}) AS id`);
  const body = JSON.stringify({ steps: [["0", "step", "work", "digest", kilobyte]] });
  const insert = `WITH fence AS (SELECT 1 FROM bare_runs WHERE id = $1 AND epoch = $4 AND owner = $5 FOR SHARE)
    INSERT INTO bare_commits SELECT $1, $2, $3 FROM fence ON CONFLICT (run, number) DO NOTHING RETURNING number`;
  const started = performance.now();
  const sequence = async (run: number): Promise<void> => {
    for (let number = 0; number < each; number++) await pool.query(insert, [run, number, body, 1, "w"]);
  };
  await Promise.all(Array.from({ length: runs }, (_, index) => sequence(index + 1)));
  return (runs * each) / ((performance.now() - started) / 1_000);
}

/**
 * Steps per second with 1, 2 and 4 worker processes that execute 16 runs each, against the same number of times one worker. With calls
 * that take time, workers wait; without them, workers and the server share the processors of this machine.
 */
async function* fleets(url: string, callMs: number): AsyncIterable<Row> {
  let one: number | undefined;
  for (const workers of [1, 2, 4]) {
    const rate = await fleetRate(url, workers, callMs);
    one ??= rate;
    yield {
      name: `PostgreSQL: steps of 1 KB, ${workers} worker process${workers === 1 ? "" : "es"}, 16 runs each, ${callMs === 0 ? "no waits" : `calls of ${callMs} ms`}`,
      value: rate,
      unit: "steps/s",
      against: one * workers,
      goal: null,
    };
  }
}

async function fleetRate(url: string, workers: number, callMs: number): Promise<number> {
  const fleet = await ScaleFleet.open(url, { leaseMs: 15_000, concurrency: runsEach, callMs });
  try {
    await fleet.submit(workers * runsEach);
    const names = Array.from({ length: workers }, (_, index) => `worker-${index}`);
    for (const name of names) await fleet.start(name);
    for (const name of names) await fleet.untilWorking(name, runsEach);
    return await fleet.rate(3_000);
  } finally {
    await fleet.close();
  }
}
