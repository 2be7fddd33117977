import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Agent, openRuntime, sha256, tool } from "reeve";
import type { PriceTable, Runtime } from "reeve/kernel";
import { createServer, listen, type Listening } from "reeve/server";
import { sqliteStore } from "reeve/sqlite";
import { crowd } from "../test/page/crowd.ts";

const pageFolder = fileURLToPath(new URL("../dist/page", import.meta.url));
const tickMs = 5;
const mostLateMs = 250;
const prices: PriceTable = { find: () => ({ inputUsd: 2e-5, outputUsd: 1e-4 }) };

const convert = tool({
  name: "convert",
  description: "Converts a module",
  inputSchema: { type: "object", properties: { module: { type: "string" } }, required: ["module"] },
  execute: async ({ module }) => `converted ${module}, 14 tests pass`,
});

/** A server with the page and one run of many agents, which take their turns at a steady pace. */
export class PageCompany {
  readonly #folder = mkdtempSync(join(tmpdir(), "reeve-bench-page-"));
  readonly #agents: number;
  readonly #waiting: (() => void)[] = [];
  #parts: { readonly runtime: Runtime; readonly listening: Listening } | undefined;
  #pace: ReturnType<typeof setInterval> | undefined;

  constructor(agents: number) {
    this.#agents = agents;
  }

  /** Starts the server and the run, and resolves when every agent has been hired. Returns the address of the run. */
  async start(): Promise<string> {
    const store = await sqliteStore({ path: join(this.#folder, "reeve.db"), hash: sha256 });
    const runtime = await openRuntime({ store, prices, concurrency: 2 * this.#agents });
    const company = crowd({
      agents: this.#agents,
      worker: (name, model) => new Agent({ name, model, tools: [convert], maxTurns: 1_000 }),
      turn: () => new Promise((resolve) => void this.#waiting.push(resolve)),
    });
    const server = createServer(runtime, {
      agents: [company],
      tokens: null,
      page: pageFolder,
      limits: { requestsPerSecond: 1_000, requestBurst: 1_000 },
    });
    const listening = await listen(server, { port: 0 });
    this.#parts = { runtime, listening };
    const run = await runtime.submit(company, `Port ${this.#agents.toLocaleString("en-US")} packages`);
    let hired = 1;
    for await (const event of run.events({ types: ["spawn_start"] }))
      if (event.type === "spawn_start" && ++hired === this.#agents) break;
    return `${listening.url}/runs/${run.runId}`;
  }

  /**
   * Lets agents take turns, as many as are needed for so many events per second. A turn writes six events. Turns that a
   * busy machine did not take within `mostLateMs` are dropped: if they ran together later, they would delay the next
   * turns too.
   */
  work(eventsPerSecond: number): void {
    clearInterval(this.#pace);
    const turnMs = 6_000 / eventsPerSecond;
    let nextAt = performance.now();
    this.#pace = setInterval(() => {
      const at = performance.now();
      for (nextAt = Math.max(nextAt, at - mostLateMs); nextAt <= at; nextAt += turnMs)
        this.#waiting.shift()?.();
    }, tickMs);
  }

  async stop(): Promise<void> {
    clearInterval(this.#pace);
    await this.#parts?.listening.close();
    await this.#parts?.runtime.close();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
