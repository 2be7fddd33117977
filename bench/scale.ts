// Needs `npm ci` with development packages: it starts the PostgreSQL server of the tests, which waits for the disk here.
import { Pool } from "pg";
import { openRuntime, sha256, type Runtime } from "reeve";
import { formatAgentId, type HostedAgent } from "reeve/kernel";
import { postgresStore } from "reeve/postgres";
import { PostgresServer } from "../test/postgres/server.ts";
import { median, type Row } from "./row.ts";

const rounds = 5;
const connections = 10;
const kilobyte = { text: "x".repeat(1_000) };

export async function* rows(): AsyncIterable<Row> {
  const server = await PostgresServer.start({ isSynced: true });
  try {
    for (const [runs, each] of [
      [1, 400],
      [16, 100],
    ] as const)
      yield await steps(server.url, runs, each);
  } finally {
    await server.stop();
  }
}

/** Steps per second of so many runs at once, against the same number of bare fenced statements. Rounds alternate. */
async function steps(url: string, runs: number, each: number): Promise<Row> {
  const runtime = await openRuntime({ store: await postgresStore({ url, hash: sha256, connections }) });
  const pool = new Pool({ connectionString: url, max: connections });
  const [ours, floor]: [number[], number[]] = [[], []];
  for (let round = 0; round < rounds; round++) {
    ours.push(await timeSteps(runtime, `steps-${runs}-${round}`, runs, each));
    floor.push(await bareStatements(pool, runs, each));
  }
  await runtime.close();
  await pool.end();
  return {
    name: `PostgreSQL: steps of 1 KB, ${runs} run${runs === 1 ? "" : "s"} at once, against the bare fenced statement`,
    value: median(ours.slice(1)),
    unit: "steps/s",
    against: median(floor.slice(1)),
    goal: { atLeast: 0.6 },
  };
}

async function timeSteps(runtime: Runtime, name: string, runs: number, each: number): Promise<number> {
  const agent: HostedAgent = {
    id: formatAgentId({ name }),
    run: async (ctx) => {
      for (let index = 0; index < each; index++) await ctx.step("work", async () => kilobyte);
      return "done";
    },
  };
  const started = performance.now();
  const handles = await Promise.all(Array.from({ length: runs }, () => runtime.submit(agent, null)));
  await Promise.all(handles.map((run) => run.result()));
  return (runs * each) / ((performance.now() - started) / 1_000);
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
