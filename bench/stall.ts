import { spawn } from "node:child_process";
import { once } from "node:events";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { fileURLToPath } from "node:url";
import { openRuntime, sha256 } from "reeve";
import { formatAgentId, type Agent } from "reeve/kernel";
import { sqliteStore } from "reeve/sqlite";

const writer = fileURLToPath(new URL("writer.ts", import.meta.url));

/** Starts a process that writes `steps` steps to the file; resolves once it is at it. */
export async function startWriter(
  path: string,
  name: string,
  steps: number,
): Promise<{ pid: number; done: Promise<unknown> }> {
  const child = spawn(process.execPath, [writer, path, name, String(steps)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const done = once(child, "exit");
  await once(child.stdout, "data");
  if (child.pid === undefined) throw new Error("the writer did not start");
  return { pid: child.pid, done };
}

/** This process writes too, and is one of `processes`. */
export async function stallOf(path: string, processes: number): Promise<{ longestMs: number }> {
  const runtime = await openRuntime({
    store: await sqliteStore({ path, hash: sha256, durability: "normal" }),
  });
  const agent: Agent = {
    id: formatAgentId({ name: "own" }),
    run: async (ctx) => {
      for (let index = 0; index < 3_000; index++)
        await ctx.step("work", async () => ({ text: "x".repeat(1_000) }));
      return "done";
    },
  };
  const writers = await Promise.all(
    Array.from({ length: processes - 1 }, (_, index) => startWriter(path, `writer-${index}`, 3_000)),
  );
  const delay = monitorEventLoopDelay({ resolution: 1 });
  const run = await runtime.submit(agent, null);
  delay.enable();
  await run.result();
  delay.disable();
  await Promise.all(writers.map(({ done }) => done));
  await runtime.close();
  return { longestMs: delay.max / 1e6 };
}
