import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer as createHttpServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as setTimeoutPromise } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { openRuntime } from "reeve";
import {
  formatAgentId,
  formatRunId,
  formatSessionId,
  Priority,
  type HostedAgent,
  type RunHandle,
  type RunRecord,
  type Runtime,
} from "reeve/kernel";
import { createServer, listen, type Server } from "reeve/server";
import { sqliteStore } from "reeve/sqlite";
import { runEval, withBundledPackage } from "./bundled-package.ts";
import { cpuMs } from "./cpu-time.ts";
import { median, type Row } from "./row.ts";

const client = fileURLToPath(new URL("stream-client.ts", import.meta.url));
const rounds = 5;
const imports = 41;
const eventsPerStep = 50;
const steps = 2_000;
const liveSteps = 400;

/** Writes 100,000 events. */
const writer: HostedAgent = {
  id: formatAgentId({ name: "writer" }),
  run: async (ctx) => {
    for (let step = 0; step < steps; step++) {
      for (let at = 0; at < eventsPerStep; at++)
        ctx.emitEvent({
          type: "architecture_event",
          data: { architecture: "bench", name: "note", data: { step, at, text: "x".repeat(100) } },
        });
      await ctx.step("s", async () => step);
    }
  },
};

/** Waits for its watchers, then works for some seconds. */
const worker: HostedAgent = {
  id: formatAgentId({ name: "worker" }),
  run: async (ctx) => {
    await ctx.waitForSignal("go");
    for (let step = 0; step < liveSteps; step++)
      await ctx.step("s", () => new Promise<number>((resolve) => void setTimeout(() => resolve(step), 5)));
  },
};

interface Client {
  readonly opened: Promise<unknown>;
  readonly result: Promise<{ readonly ms: number; readonly bytes: number }>;
}

function startClient(url: string, count: number): Client {
  const child = spawn(process.execPath, [client, url, String(count)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const opened = lines.next();
  const result = opened.then(async () => {
    const { value } = await lines.next();
    return JSON.parse(String(value)) as { readonly ms: number; readonly bytes: number };
  });
  return { opened, result };
}

/** Serves the events of a run as simply as possible: one write per event. */
async function plainWriter(run: RunHandle): Promise<{ readonly url: string; close(): void }> {
  const http = createHttpServer((_request, response) => {
    const write = async (): Promise<void> => {
      for await (const event of run.events())
        if ("seq" in event && !response.write(`id: ${event.seq}\ndata: ${JSON.stringify(event)}\n\n`))
          await once(response, "drain");
      response.end();
    };
    write().catch((error: unknown) => response.destroy(error as Error));
  });
  await once(http.listen(0, "127.0.0.1"), "listening");
  return { url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/`, close: () => void http.close() };
}

function perSecond(ms: number): number {
  return Math.round((steps * eventsPerStep * 1000) / ms);
}

async function tail(runtime: Runtime, base: string): Promise<Row> {
  const run = await runtime.submit(writer, null);
  await run.result();
  const plain = await plainWriter(run);
  const ours: number[] = [];
  const theirs: number[] = [];
  for (let round = 0; round < rounds; round++) {
    ours.push((await startClient(`${base}/api/runs/${run.runId}/stream`, 1).result).ms);
    theirs.push((await startClient(plain.url, 1).result).ms);
  }
  plain.close();
  return {
    name: "tail of 100,000 events over SSE, against a plain writer",
    value: perSecond(median(ours)),
    unit: "events/s",
    against: perSecond(median(theirs)),
    goal: { atLeast: 0.6 },
  };
}

/** The processor time in which a server refuses a body of 200,000 values, against parsing it. */
async function refused(server: Server): Promise<Row> {
  const input = Object.fromEntries(Array.from({ length: 200_000 }, (_each, at) => [`key-${at}-abc`, at]));
  const body = JSON.stringify({ agent: "worker", input });
  const headers = { "content-type": "application/json" };
  // A server without tokens answers only requests of its own machine.
  const sender = { incoming: { socket: { remoteAddress: "127.0.0.1" } } };
  const parsing: number[] = [];
  const refusing: number[] = [];
  for (let round = 0; round < rounds; round++) {
    parsing.push(await cpuMs(async () => void JSON.parse(body)));
    refusing.push(
      await cpuMs(async () => {
        const request = new Request("http://localhost/api/runs", { method: "POST", headers, body });
        const { status } = await server.fetch(request, sender);
        if (status !== 413) throw new Error(`the server answered ${status}`);
      }),
    );
  }
  return {
    name: "CPU of refusing a body of 200,000 values, against parsing it",
    value: median(refusing),
    unit: "ms",
    against: median(parsing),
    goal: { atMost: 1 },
  };
}

async function watched(runtime: Runtime, base: string, watchers: number): Promise<number> {
  const run = await runtime.submit(worker, null);
  const clients = startClient(`${base}/api/runs/${run.runId}/stream`, watchers);
  await clients.opened;
  const used = await cpuMs(async () => {
    await run.signal("go");
    await clients.result;
  });
  return used;
}

/** Imports its argument in a new process and prints the processor time that this took, in milliseconds. */
const importer = `
  const before = process.cpuUsage();
  await import(process.argv[1]);
  const { user, system } = process.cpuUsage(before);
  process.stdout.write(String((user + system) / 1_000));
`;

/**
 * Processor time of importing `reeve`, against importing `reeve/kernel` alone. Before the server existed, the ratio was
 * 4.6 (median of three runs on a busy machine); a tenth more is allowed.
 */
async function* importing(folder: string): AsyncIterable<Row> {
  const whole: number[] = [];
  const kernel: number[] = [];
  for (let round = 0; round < imports; round++) {
    whole.push(Number(await runEval(folder, importer, "reeve")));
    kernel.push(Number(await runEval(folder, importer, "reeve/kernel")));
  }
  yield {
    name: "CPU of importing reeve, against importing its kernel",
    value: median(whole),
    unit: "ms",
    against: median(kernel),
    goal: { atMost: 5.06 },
  };
}

/** How long an idle server is watched, in milliseconds. It looks for changes twice per second. */
const idleMs = 10_000;

/** Processor time of a server that does nothing, with one open page and so many runs that wait. */
async function idle(waiting: number): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), "reeve-idle-"));
  const path = join(folder, "store.db");
  try {
    await createRuns(path, waiting, waits);
    const runtime = await openRuntime({ store: `sqlite:${path}` });
    const server = createServer(runtime, { agents: [worker], tokens: null });
    const listening = await listen(server, { port: 0 });
    const leave = new AbortController();
    try {
      const { body } = await fetch(`${listening.url}/api/stream`, { signal: leave.signal });
      await body?.getReader().read();
      const used: number[] = [];
      for (let round = 0; round < 3; round++) used.push(await cpuMs(() => setTimeoutPromise(idleMs)));
      return median(used);
    } finally {
      leave.abort();
      await listening.close();
      await runtime.close();
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** How often an open page reads the facts while runs change. It does so at most twice per second. */
const readings = 20;

/** Processor time of reading the facts again and again, while one run works, with so many runs that ended today. */
async function busy(ended: number): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), "reeve-busy-"));
  const path = join(folder, "store.db");
  try {
    await createRuns(path, ended, endedNow);
    const runtime = await openRuntime({ store: `sqlite:${path}` });
    const server = createServer(runtime, { agents: [worker], tokens: null });
    const listening = await listen(server, { port: 0 });
    const facts = async (): Promise<unknown> => (await fetch(`${listening.url}/api/facts`)).json();
    try {
      const run = await runtime.submit(worker, null);
      await facts();
      await run.signal("go");
      const used: number[] = [];
      for (let round = 0; round < 3; round++)
        used.push(
          await cpuMs(async () => {
            for (let reading = 0; reading < readings; reading++) await facts();
          }),
        );
      await run.cancel();
      return median(used);
    } finally {
      await listening.close();
      await runtime.close();
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** What a worker leaves in the row of a run that it has suspended, and of one that has ended. */
const waits = "state = 2, epoch = 1, standing = 'waiting signal'";
const endedNow = "state = 3, epoch = 1, ended = 0, ended_at = created_at";

/** Creates runs of today, and brings their rows into a state. */
async function createRuns(path: string, count: number, state: string): Promise<void> {
  const now = Date.now();
  const store = await sqliteStore({ path });
  for (let from = 0; from < count; from += 100)
    await Promise.all(
      Array.from({ length: 100 }, async (_each, index) => {
        const number = from + index;
        const run: RunRecord = {
          runId: formatRunId(`waiting-${number}`),
          kind: "invocation",
          agentId: worker.id,
          sessionId: formatSessionId(`waiting-${number}`),
          tenantId: null,
          userId: null,
          priority: Priority.NORMAL,
          agentVersion: null,
          title: `Run ${number}`,
          metadata: {},
          createdAt: now - number,
          startAt: null,
          recoveries: 0,
        };
        return store.journal.create(run, { number: 0, at: now - number });
      }),
    );
  await store.close();
  const db = new DatabaseSync(path);
  db.exec(`UPDATE runs SET ${state}`);
  db.close();
}

export async function* rows(): AsyncIterable<Row> {
  yield {
    name: "CPU of an idle server with a page and 20,000 waiting runs in 10 s, against 100 runs",
    value: await idle(20_000),
    unit: "ms",
    against: await idle(100),
    goal: { atMost: 2 },
  };
  yield {
    name: "CPU of 20 readings of the facts with 20,000 runs that ended today, against 100 runs",
    value: await busy(20_000),
    unit: "ms",
    against: await busy(100),
    goal: { atMost: 2 },
  };
  yield* withBundledPackage(importing);
  const runtime = await openRuntime();
  const server = createServer(runtime, {
    agents: [writer, worker],
    tokens: null,
    limits: { maxStreamsPerToken: 1_000, requestsPerSecond: 1_000, requestBurst: 1_000 },
  });
  const listening = await listen(server, { port: 0 });
  try {
    yield await tail(runtime, listening.url);
    yield await refused(server);
    const few: number[] = [];
    const many: number[] = [];
    for (let round = 0; round < rounds; round++) {
      few.push(await watched(runtime, listening.url, 50));
      many.push(await watched(runtime, listening.url, 500));
    }
    yield {
      name: "CPU of a run with 500 watchers, against 50",
      value: median(many),
      unit: "ms",
      against: median(few),
      goal: { atMost: 2 },
    };
  } finally {
    await listening.close();
    await runtime.close();
  }
}
