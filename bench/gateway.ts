import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { Agent, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { openRuntime } from "reeve";
import { openGateway } from "reeve/gateway";
import { median, type Row } from "./row.ts";

const rounds = 40;
const streams = 50;
/** A request of 85 kB, like those of coding agents. */
const body = JSON.stringify({
  model: "claude-sonnet-4-5",
  max_tokens: 1_000,
  stream: true,
  messages: [{ role: "user", content: "x".repeat(85_000) }],
});

interface Taken {
  readonly firstByteMs: number;
  readonly wholeMs: number;
}

/** What the gateway adds to requests of 85 kB, against the same requests sent directly to the provider. */
export async function* rows(): AsyncIterable<Row> {
  const folder = await mkdtemp(join(tmpdir(), "reeve-bench-"));
  const script = fileURLToPath(new URL("gateway-provider.ts", import.meta.url));
  const provider = spawn(process.execPath, [script], { stdio: ["ignore", "pipe", "inherit"] });
  const [baseUrl] = (await once(createInterface({ input: provider.stdout }), "line")) as [string];
  const runtime = await openRuntime({ store: `sqlite:${join(folder, "reeve.db")}` });
  const gateway = await openGateway({ upstreams: { anthropic: { baseUrl, apiKey: "key" } } });
  const measured: Row[] = [];
  const agent = gateway.program("bench", async ({ url, token }) => {
    const direct = client(baseUrl, "key");
    const metered = client(url, token);
    // The first requests compile the code and open the connections.
    for (let round = 0; round < 5; round++) await Promise.all([direct(), metered()]);
    const one: Record<"direct" | "metered", Taken[]> = { direct: [], metered: [] };
    for (let round = 0; round < rounds; round++) {
      one.direct.push(await direct());
      one.metered.push(await metered());
    }
    const of = (side: "direct" | "metered", figure: keyof Taken): number =>
      median(one[side].map((taken) => taken[figure]));
    measured.push(
      {
        name: "first byte of a request of 85 kB, beyond the direct one",
        value: of("metered", "firstByteMs") - of("direct", "firstByteMs"),
        unit: "ms",
        against: null,
        goal: { atMost: 10 },
      },
      {
        name: "whole stream of a request of 85 kB, against the direct one",
        value: of("metered", "wholeMs"),
        unit: "ms",
        against: of("direct", "wholeMs"),
        goal: { atMost: 1.1 },
      },
    );
    const many = async (send: () => Promise<Taken>): Promise<number> => {
      const begun = performance.now();
      await Promise.all(Array.from({ length: streams }, send));
      return performance.now() - begun;
    };
    const both: Record<"direct" | "metered", number[]> = { direct: [], metered: [] };
    for (let round = 0; round < 5; round++) {
      both.direct.push(await many(direct));
      both.metered.push(await many(metered));
    }
    measured.push({
      name: `${streams} streams of 85 kB at once, against direct ones`,
      value: median(both.metered),
      unit: "ms",
      against: median(both.direct),
      goal: { atMost: 1.2 },
    });
    return null;
  });
  try {
    const { status, error } = await (await runtime.submit(agent, null)).result();
    if (status !== "completed") throw new Error(`the program ended ${status}: ${error?.message}`);
    yield* measured;
  } finally {
    await gateway.close();
    await runtime.close();
    provider.kill();
    await rm(folder, { recursive: true, force: true });
  }
}

/** Returns what sends the request and reads the answer to its end. */
function client(url: string, key: string): () => Promise<Taken> {
  const agent = new Agent({ keepAlive: true });
  const headers = {
    "x-api-key": key,
    "content-type": "application/json",
    "content-length": Buffer.byteLength(body),
  };
  return () =>
    new Promise((resolve, reject) => {
      const begun = performance.now();
      let firstByteMs = 0;
      const outgoing = request(`${url}/v1/messages`, { method: "POST", headers, agent }, (answer) => {
        if (answer.statusCode !== 200) reject(new Error(`the answer has the status ${answer.statusCode}`));
        answer.once("data", () => (firstByteMs = performance.now() - begun));
        answer
          .on("data", () => undefined)
          .once("end", () => resolve({ firstByteMs, wholeMs: performance.now() - begun }));
      });
      outgoing.once("error", reject).end(body);
    });
}
