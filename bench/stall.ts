import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { openRuntime, sha256 } from "reeve";
import { formatAgentId, type HostedAgent } from "reeve/kernel";
import { sqliteStore } from "reeve/sqlite";
import { StallWatch } from "./stall-watch.ts";

const writer = fileURLToPath(new URL("writer.ts", import.meta.url));

/**
 * Each process takes a step of 1 KB and then rests for so many milliseconds, as agents do that wait for models. Without
 * the rest, the processes would compete for the processors, and the measurement would not show how long the store holds
 * up an event loop.
 */
const restMs = 2;
/** Enough for the log to be written back in between. */
const steps = 2_500;

export interface WriterOptions {
  readonly path: string;
  readonly name: string;
  readonly steps: number;
  readonly restMs: number;
}

/** Starts a process that writes to the file; resolves once it is at it. */
export async function startWriter(options: WriterOptions): Promise<{ pid: number; done: Promise<unknown> }> {
  const child = spawn(process.execPath, [writer, JSON.stringify(options)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const done = once(child, "exit");
  await once(child.stdout, "data");
  if (child.pid === undefined) throw new Error("the writer did not start");
  return { pid: child.pid, done };
}

/** The longest stall of this process's event loop. It writes too, and is one of `processes`. */
export async function longestStallMs(path: string, processes: number): Promise<number> {
  const runtime = await openRuntime({
    store: await sqliteStore({ path, hash: sha256, durability: "normal" }),
  });
  const agent: HostedAgent = {
    id: formatAgentId({ name: "own" }),
    run: async (ctx) => {
      for (let index = 0; index < steps; index++) {
        await ctx.step("work", async () => ({ text: "x".repeat(1_000) }));
        await new Promise((resolve) => setTimeout(resolve, restMs));
      }
      return "done";
    },
  };
  const writers = await Promise.all(
    Array.from({ length: processes - 1 }, (_, index) =>
      startWriter({ path, name: `writer-${index}`, steps, restMs }),
    ),
  );
  const watch = new StallWatch();
  const run = await runtime.submit(agent, null);
  watch.start();
  await run.result();
  const longestMs = watch.stop();
  await Promise.all(writers.map(({ done }) => done));
  await runtime.close();
  return longestMs;
}
