import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { openRuntime } from "reeve";
import { openGateway } from "reeve/gateway";
import { streams, type Side } from "./gateway-client.ts";
import type { Row } from "./row.ts";

/** Starts a script next to this one. Returns the first line that it prints, and what ends it. */
async function start(
  name: string,
  ...args: readonly string[]
): Promise<{ readonly line: string; readonly stop: () => void }> {
  const script = fileURLToPath(new URL(name, import.meta.url));
  const child = spawn(process.execPath, [script, ...args], { stdio: ["ignore", "pipe", "inherit"] });
  const ended = once(child, "exit").then(([code]) => {
    throw new Error(`${name} ended with ${code}`);
  });
  ended.catch(() => undefined);
  const lines = createInterface({ input: child.stdout });
  const [line] = (await Promise.race([once(lines, "line"), ended])) as [string];
  return { line, stop: () => void child.kill() };
}

/**
 * What the gateway adds to requests of 85 kB, against the same requests sent directly to the provider. Program, gateway and
 * provider are processes of their own.
 */
export async function* rows(): AsyncIterable<Row> {
  const folder = await mkdtemp(join(tmpdir(), "reeve-bench-"));
  const provider = await start("gateway-provider.ts");
  const runtime = await openRuntime({ store: `sqlite:${join(folder, "reeve.db")}` });
  const gateway = await openGateway({ upstreams: { anthropic: { baseUrl: provider.line, apiKey: "key" } } });
  let sides: readonly Side[] = [];
  const agent = gateway.program("bench", async ({ url, token }) => {
    const { line } = await start("gateway-client.ts", provider.line, url, token);
    sides = JSON.parse(line) as readonly Side[];
    return null;
  });
  try {
    const { status, error } = await (await runtime.submit(agent, null)).result();
    if (status !== "completed") throw new Error(`the program ended ${status}: ${error?.message}`);
    const [direct, metered] = sides;
    if (direct === undefined || metered === undefined) throw new Error("the program measured nothing");
    yield {
      name: "first byte of a request of 85 kB, beyond the direct one",
      value: metered.firstByteMs - direct.firstByteMs,
      unit: "ms",
      against: null,
      goal: { atMost: 10 },
    };
    yield {
      name: "whole stream of a request of 85 kB, against the direct one",
      value: metered.wholeMs,
      unit: "ms",
      against: direct.wholeMs,
      goal: { atMost: 1.1 },
    };
    yield {
      name: `${streams} streams of 85 kB at once, against direct ones`,
      value: metered.manyMs,
      unit: "ms",
      against: direct.manyMs,
      goal: { atMost: 1.2 },
    };
  } finally {
    await gateway.close();
    await runtime.close();
    provider.stop();
    await rm(folder, { recursive: true, force: true });
  }
}
