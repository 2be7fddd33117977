import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { memoryStore, openRuntime, sha256 } from "../../../../src/entries/index.ts";
import type {
  HostedAgent,
  Event,
  EventType,
  RunHandle,
  RunId,
  Runtime,
} from "../../../../src/kernel/index.ts";

export type PlaceName = "memory" | "sqlite";
export const places: readonly PlaceName[] = ["memory", "sqlite"];

/** A store that outlives the runtimes that are opened on it. */
export interface Place {
  /** Closes the current runtime and opens a new one with these agents. */
  restart(...agents: readonly HostedAgent[]): Promise<Runtime>;
  find(runId: RunId): Promise<RunHandle>;
}

export async function openPlace(name: PlaceName): Promise<Place> {
  const folder = await mkdtemp(join(tmpdir(), "reeve-gate-"));
  const store =
    name === "memory" ? memoryStore({ hash: sha256 }) : (`sqlite:${join(folder, "reeve.db")}` as const);
  let workers = 0;
  let runtime: Runtime | undefined;
  onTestFinished(async () => {
    await runtime?.close();
    await rm(folder, { recursive: true, force: true });
  });
  return {
    restart: async (...agents) => {
      await runtime?.close();
      runtime = await openRuntime({
        store,
        unknownPrice: "ignore",
        workerId: `worker-${++workers}`,
        suspendAfterMs: 0,
      });
      for (const each of agents) runtime.register(each);
      return runtime;
    },
    find: async (runId) => {
      const found = await runtime?.find(runId);
      if (found === undefined) throw new Error(`there is no run ${runId}`);
      return found;
    },
  };
}

/** Follows the run's events from `fromSeq` on until the first event of this type and returns it. */
export async function untilTold<Type extends EventType>(
  run: RunHandle,
  type: Type,
  fromSeq = 0,
): Promise<Event<Type>> {
  for await (const event of run.events({ fromSeq }))
    if ("seq" in event && event.type === type) return event as Event<Type>;
  throw new Error(`the run ended without ${type}`);
}

export async function toldOf<Type extends EventType>(run: RunHandle, type: Type): Promise<Event<Type>[]> {
  const found: Event<Type>[] = [];
  for await (const event of run.events())
    if ("seq" in event && event.type === type) found.push(event as Event<Type>);
  return found;
}
