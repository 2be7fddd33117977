import { Pool } from "pg";
import { onTestFinished } from "vitest";
import { Fault, type EngineFactory, type RunId } from "../../src/kernel/index.ts";
import { createRuntime } from "../../src/runtime/local-runtime.ts";
import { sha256 } from "../../src/runtime/process/sha256.ts";
import { postgresStore } from "../../src/runtime/stores/postgres/index.ts";
import { fleetAgents, seats } from "./fleet-agents.ts";
import type { FleetWorld, Ownership } from "./fleet.ts";

interface FleetCallerOptions {
  /** The database, without a proxy before it. */
  readonly url: string;
  readonly schema: string;
  /** An engine that submits runs and executes none. */
  readonly engine: EngineFactory;
}

/** The part of a fleet that submits runs, answers questions and reads: it is not disturbed. */
export async function fleetCaller({
  url,
  schema,
  engine,
}: FleetCallerOptions): Promise<Pick<FleetWorld, "store" | "submit" | "approveAll" | "ownerOf">> {
  const store = await postgresStore({ url, schema, hash: sha256, retryForMs: 30_000 });
  const runtime = await createRuntime({ store, engine, onError: () => undefined });
  onTestFinished(() => runtime.close());
  const [clerk] = fleetAgents({ url: "http://127.0.0.1:9", caller: "submitter" });
  const answered = new Set<string>();
  const pool = new Pool({ connectionString: url, max: 4 });
  // The next query connects again.
  pool.on("error", () => undefined);
  onTestFinished(() => pool.end());
  return {
    store,
    submit: (runId) => runtime.submit(clerk, "go", { runId, spawnBudget: { maxAgents: seats } }),
    approveAll: async () => {
      const { approvals } = await store.journal.approvals({ limit: 500 });
      for (const { runId, approvalId } of approvals) {
        const id = `${runId} ${approvalId}`;
        if (answered.has(id)) continue;
        try {
          await (await runtime.find(runId))?.approve(approvalId, { decision: "approved", by: "a person" });
        } catch (error) {
          // An answer whose outcome was unknown has arrived.
          if (Fault.from(error).code !== "already_exists") throw error;
        }
        answered.add(id);
      }
    },
    ownerOf: (runId) => ownerIn(pool, schema, runId),
  };
}

/** Rejects with `store_unavailable` while the server is away. */
async function ownerIn(pool: Pool, schema: string, runId: RunId): Promise<Ownership> {
  const sql = `SELECT owner, epoch::int AS epoch FROM ${schema}.runs WHERE run_id = $1`;
  const { rows } = await pool.query<Ownership>(sql, [runId]).catch((error: unknown) => {
    throw new Fault("store_unavailable", "the owner cannot be read", { cause: error });
  });
  const [row] = rows;
  if (row === undefined) throw new Error(`run ${runId} does not exist`);
  return row;
}
