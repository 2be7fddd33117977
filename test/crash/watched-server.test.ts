import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, inject, test } from "vitest";
import { openSse } from "../surfaces/server/sse-client.ts";

const script = new URL("watched-worker.mjs", inject("crashWorkers"));
const runs = 20;
const clients = 50;
/** The server is killed each time the clients have received this share of all events. */
const kills = [0.02, 0.2, 0.45, 0.7];
/** run_start, task_start, 40 step_end, task_end, run_end. */
const eventsPerRun = 44;

/** A server that is killed and started again at the same port. */
class KilledServer {
  #child: ChildProcess | undefined;
  #up = Promise.withResolvers<void>();
  #port = 0;
  starts = 0;

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Resolves while the server is up. */
  get up(): Promise<void> {
    return this.#up.promise;
  }

  async start(store: string): Promise<void> {
    const child = spawn(process.execPath, [fileURLToPath(script), store, String(this.#port)], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    this.#child = child;
    const [port] = (await once(child.stdout, "data")) as [Buffer];
    this.#port = Number(port.toString());
    this.starts++;
    this.#up.resolve();
  }

  async kill(): Promise<void> {
    this.#up = Promise.withResolvers();
    this.#child?.kill("SIGKILL");
    if (this.#child?.exitCode === null && this.#child.signalCode === null) await once(this.#child, "exit");
  }
}

test(`${clients} clients that watch ${runs} runs resume after each of ${kills.length} kills of the server and see each event once`, async () => {
  const folder = await mkdtemp(join(tmpdir(), "reeve-watched-"));
  const store = join(folder, "reeve.db");
  const server = new KilledServer();
  let received = 0;
  let left = [...kills];
  let restarting: Promise<void> | undefined;
  const restart = async (): Promise<void> => {
    await server.kill();
    await server.start(store);
    restarting = undefined;
  };
  /** Counts an event, and kills the server when its share is reached. */
  const count = (): void => {
    received++;
    const [share] = left;
    if (share === undefined || restarting !== undefined || received < share * clients * eventsPerRun) return;
    left = left.slice(1);
    restarting = restart();
  };
  /** Watches a run in the same way as an EventSource: it reconnects with the last id until the stream ends by itself. */
  const watch = async (runId: string): Promise<readonly number[]> => {
    const seen: number[] = [];
    for (;;) {
      await server.up;
      try {
        const last = seen.at(-1);
        const options = last === undefined ? {} : { lastEventId: String(last) };
        const stream = await openSse(`${server.url}/api/runs/${runId}/stream`, options);
        if (stream.status === 204) return seen;
        for await (const { id, event } of stream) {
          if (event === "end") return seen;
          if (id === undefined) continue;
          seen.push(Number(id));
          count();
        }
      } catch (error) {
        // The connection broke, because the server was killed.
        if (!(error instanceof TypeError)) throw error;
      }
      await restarting;
    }
  };
  try {
    await server.start(store);
    const ids: string[] = [];
    for (let at = 0; at < runs; at++) {
      const response = await fetch(`${server.url}/api/runs`, {
        method: "POST",
        headers: { "content-type": "application/json", "idempotency-key": `run ${at}` },
        body: JSON.stringify({ agent: "walker", input: at }),
      });
      ids.push(((await response.json()) as { run: { runId: string } }).run.runId);
    }
    const all = await Promise.all(
      Array.from({ length: clients }, (_each, at) => watch(ids[at % runs] ?? "")),
    );
    await restarting;
    expect(server.starts).toBe(kills.length + 1);
    for (const [at, seen] of all.entries()) {
      const response = await fetch(`${server.url}/api/runs/${ids[at % runs]}/events?limit=5000`);
      const { events } = (await response.json()) as { events: { seq: number; type: string }[] };
      expect(events.at(-1)?.type).toBe("run_end");
      expect(seen).toEqual(events.map(({ seq }) => seq));
    }
  } finally {
    await server.kill();
    await rm(folder, { recursive: true, force: true, maxRetries: 10 });
  }
});
