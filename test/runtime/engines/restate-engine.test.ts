import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import {
  formatRunId,
  type EnginePort,
  type Lease,
  type RunHost,
  type RunId,
  type Store,
} from "../../../src/kernel/index.ts";
import { Ingress } from "../../../src/runtime/engines/restate/ingress.ts";
import { RestateEngine } from "../../../src/runtime/engines/restate/restate-engine.ts";
import type { Slice } from "../../../src/runtime/engines/restate/run-object.ts";
import { memoryStore, sha256 } from "../../../src/runtime/index.ts";
import { systemEventLoop } from "../../../src/runtime/process/system-sources.ts";
import { FakeClock } from "../../../src/testing/index.ts";
import { agentId, runRecord } from "../../../src/testing/contracts/store-fixtures.ts";

interface Bench {
  readonly engine: RestateEngine;
  readonly store: Store;
  readonly clock: FakeClock;
  /** The leases with which the host was asked to execute a run. */
  readonly driven: Lease[];
}

/** An engine that sends its wake-ups to `ingressUrl`. The port is that of a worker which hosts the agent of the runs. */
async function newBench(
  change: (port: EnginePort) => Partial<EnginePort> = () => ({}),
  ingressUrl = "http://127.0.0.1:9",
): Promise<Bench> {
  const store = memoryStore({ hash: sha256 });
  const clock = new FakeClock();
  const port: EnginePort = {
    leases: store.leases,
    clock,
    eventLoop: systemEventLoop,
    workerId: "here",
    host: "here",
    concurrency: 2,
    pollMs: 1_000,
    agents: () => [{ agentId }],
    onError: () => undefined,
  };
  const engine = new RestateEngine(
    { ...port, ...change(port) },
    {
      ingress: new Ingress(ingressUrl, "runs"),
      endpoint: undefined,
      sliceMs: 30_000,
      sweepMs: 1_000_000_000,
      isIngressRequired: false,
    },
  );
  const driven: Lease[] = [];
  const host: RunHost = {
    drive: async (lease) => {
      driven.push(lease);
      return { rest: { kind: "ready" }, isReleased: false };
    },
  };
  await engine.start(host);
  onTestFinished(() => engine.stop());
  return { engine, store, clock, driven };
}

function sliceOf(runId: RunId, signal: AbortSignal): Slice {
  return { runId, wake: { at: null }, isRepeated: true, signal };
}

async function newRun({ journal }: Store, name = "a"): Promise<RunId> {
  await journal.create(runRecord(name), { number: 0, at: 1 });
  return formatRunId(name);
}

it("a slice that Restate has given up does not take the run away from its owner", async () => {
  const { engine, store, clock, driven } = await newBench();
  const runId = await newRun(store);
  await store.leases.enlist("there");
  const [lease] = await store.leases.claim({ workerId: "there", limit: 1, now: clock.now() });
  await expect(engine.slice(sliceOf(runId, AbortSignal.abort()))).rejects.toMatchObject({ code: "closed" });
  expect(driven).toEqual([]);
  await store.leases.check(lease as Lease);
});

it("a slice that Restate gives up while it claims the run releases the run at once and does not execute it", async () => {
  const attempt = new AbortController();
  const { engine, store, clock, driven } = await newBench(({ leases }) => ({
    leases: {
      enlist: (workerId, options) => leases.enlist(workerId, options),
      dismiss: (workerId) => leases.dismiss(workerId),
      seize: (runId, workerId) => leases.seize(runId, workerId),
      check: (lease) => leases.check(lease),
      release: (lease, rest) => leases.release(lease, rest),
      nextWakeAt: (now) => leases.nextWakeAt(now),
      isConfirmed: (workerId) => leases.isConfirmed(workerId),
      countReady: (now, limit) => leases.countReady(now, limit),
      haveEnded: (owners) => leases.haveEnded(owners),
      findReady: (options) => leases.findReady(options),
      claim: async (options) => {
        const claimed = await leases.claim(options);
        attempt.abort();
        return claimed;
      },
    },
  }));
  const runId = await newRun(store);
  await expect(engine.slice(sliceOf(runId, attempt.signal))).rejects.toMatchObject({ code: "closed" });
  expect(driven).toEqual([]);
  expect(await store.leases.findReady({ now: clock.now(), limit: 1 })).toEqual([runId]);
});

it("a Restate worker that hosts no agent yet refuses a slice, so that Restate repeats the slice", async () => {
  const hosted: { agentId: typeof agentId }[] = [];
  const { engine, store, driven } = await newBench(() => ({ agents: () => hosted }));
  const runId = await newRun(store);
  const { signal } = new AbortController();
  await expect(engine.slice(sliceOf(runId, signal))).rejects.toMatchObject({ code: "closed" });
  hosted.push({ agentId });
  expect(await engine.slice(sliceOf(runId, signal))).toMatchObject({ isOwned: true });
  expect(driven).toMatchObject([{ runId }]);
});

it("after a sweep that Restate refused in the middle, the next sweep sends the remaining wake-ups", async () => {
  const woken = new Set<string>();
  let requests = 0;
  const restate = createServer((request, response) => {
    if (++requests === 10) response.writeHead(503);
    else woken.add(request.url ?? "");
    response.end();
  });
  restate.listen(0, "127.0.0.1");
  await once(restate, "listening");
  onTestFinished(() => {
    restate.closeAllConnections();
    restate.close();
  });
  const { port } = restate.address() as AddressInfo;
  const { store, clock } = await newBench(undefined, `http://127.0.0.1:${port}`);
  const names = Array.from({ length: 300 }, (_, index) => `r${index}`);
  for (const name of names) await newRun(store, name);
  const sweep = async (): Promise<number> => {
    await clock.advance(1_000);
    return woken.size;
  };
  await expect.poll(sweep).toBe(names.length);
});
