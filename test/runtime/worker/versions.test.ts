import { expect, it } from "vitest";
import {
  formatTaskId,
  modelTimeouts,
  retrySettings,
  type HostedAgent,
  type Lease,
  type DriveResult,
  type Store,
} from "../../../src/kernel/index.ts";
import { newRun } from "../../../src/runtime/journal/new-run.ts";
import { LocalEngine } from "../../../src/runtime/worker/local-engine.ts";
import { memoryStore, sha256 } from "../../../src/runtime/index.ts";
import type { WorkerContext, VersionPolicy } from "../../../src/runtime/process/worker-context.ts";
import { StoredRunHandle } from "../../../src/runtime/client/run-handle.ts";
import { RunOwner } from "../../../src/runtime/run/run-owner.ts";
import { runRetry } from "../../../src/runtime/process/run-retry.ts";
import { CapQueue } from "../../../src/runtime/process/cap-queue.ts";
import { Attendance } from "../../../src/runtime/process/attendance.ts";
import { CallTimeouts } from "../../../src/runtime/process/call-timeouts.ts";
import { IdleFlusher } from "../../../src/runtime/process/idle-flusher.ts";
import { ContentHashes } from "../../../src/runtime/process/content-hashes.ts";
import { KeptHomes } from "../../../src/runtime/process/kept-homes.ts";
import { SizeLimit } from "../../../src/runtime/process/size-limit.ts";
import { systemEventLoop } from "../../../src/runtime/process/system-sources.ts";
import { TaskSlots } from "../../../src/runtime/process/task-slots.ts";
import { FakeClock, sequentialIds } from "../../../src/testing/index.ts";
import { agent, settle } from "../runtime-setup.ts";

interface Hosting {
  readonly store: Store;
  readonly clock: FakeClock;
  readonly policy: VersionPolicy;
}

function makeWorker({ store, clock, policy }: Hosting, name: string, ...hosted: HostedAgent[]) {
  const claims: string[] = [];
  const worker: WorkerContext = {
    store,
    clock,
    eventLoop: systemEventLoop,
    host: "here",
    homes: new KeptHomes({ store, hash: sha256, host: "here", onError: () => undefined }),
    ids: sequentialIds(name),
    hash: sha256,
    random: { next: () => 0.5 },
    prices: { find: () => null },
    unknownPrice: "refuse",
    capWaitMs: 0,
    capQueue: new CapQueue(clock),
    modelTimeouts: modelTimeouts("test"),
    retry: retrySettings(),
    runRetry: runRetry(),
    slots: new TaskSlots(8),
    attendance: new Attendance(),
    callTimeouts: new CallTimeouts(clock, systemEventLoop),
    idleFlusher: new IdleFlusher(systemEventLoop),
    contentHashes: new ContentHashes(sha256),
    sizes: new SizeLimit(),
    stopGraceMs: 0,
    suspendAfterMs: 1_000,
    crashLoopLimit: 5,
    versionPolicy: policy,
    onError: () => undefined,
    agents: new Map(hosted.map((each) => [each.id, each])),
  };
  const engine = new LocalEngine({
    leases: store.leases,
    clock,
    eventLoop: systemEventLoop,
    workerId: name,
    host: "here",
    concurrency: 8,
    agents: () =>
      hosted.map(({ id: agentId, version = null }) => ({ agentId, ...(policy === "pin" && { version }) })),
    pollMs: 100,
    onError: () => undefined,
  });
  store.onChange((change) => engine.wake(change));
  const drive = async (lease: Lease): Promise<DriveResult> => {
    claims.push(lease.runId);
    return (await RunOwner.load(worker, lease)).runUntilReleased();
  };
  return { worker, claims, start: () => engine.start({ drive }), stop: () => engine.stop() };
}

async function setUp(policy: VersionPolicy) {
  const clock = new FakeClock();
  const store = memoryStore({ hash: sha256 });
  const version = (text: string): HostedAgent => agent("clerk", async () => text, { version: text });
  const hosting = { store, clock, policy };
  const old = makeWorker(hosting, "old", version("1"));
  const current = makeWorker(hosting, "current", version("2"));
  const { record, first } = newRun(old.worker, version("1"), null, {});
  await store.journal.create(record, first);
  const handle = new StoredRunHandle({ store, clock, ids: sequentialIds("h"), record });
  return { clock, old, current, handle };
}

it("J9: with versionPolicy resume, a worker resumes a run of another version", async () => {
  const { current, handle } = await setUp("resume");
  await current.start();
  expect((await handle.result()).output).toBe("2");
});

it("J9: with versionPolicy pin, a worker does not claim a run of another version", async () => {
  const { clock, old, current, handle } = await setUp("pin");
  await current.start();
  await settle();
  await clock.advance(1_000);
  expect(current.claims).toEqual([]);
  await old.start();
  await clock.advance(1_000);
  expect((await handle.result()).output).toBe("1");
});

it("J9: with versionPolicy refuse, a worker fails a run of another version with version_mismatch", async () => {
  const { current, handle } = await setUp("refuse");
  await current.start();
  const { status, error: failure } = await handle.result();
  expect({ status, code: failure?.code }).toEqual({ status: "failed", code: "version_mismatch" });
});

/**
 * A run whose root has the same version everywhere, and whose suspended child has the version of a worker that has
 * stopped.
 */
async function setUpChild(policy: VersionPolicy) {
  const clock = new FakeClock();
  const store = memoryStore({ hash: sha256 });
  const helper = (version: string): HostedAgent =>
    agent("helper", async (ctx) => ctx.waitForSignal("go").then(() => version), { version });
  const lead = agent("lead", async (ctx) => {
    const spawned = await ctx.spawn(helper("1").id, null);
    return spawned.kind === "spawned" ? (await ctx.join(spawned.handle)).output : null;
  });
  const hosting = { store, clock, policy };
  const old = makeWorker(hosting, "old", lead, helper("1"));
  const { record, first } = newRun(old.worker, lead, null, {});
  await store.journal.create(record, first);
  const handle = new StoredRunHandle({ store, clock, ids: sequentialIds("h"), record });
  await old.start();
  await settle();
  await clock.advance(2_000);
  await old.stop();
  await handle.signal("go", null, formatTaskId(1));
  return {
    clock,
    handle,
    restarted: makeWorker(hosting, "old", lead, helper("1")),
    current: makeWorker(hosting, "current", lead, helper("2")),
  };
}

it("J9: with versionPolicy resume, a worker resumes a run whose child has another version", async () => {
  const { current, handle } = await setUpChild("resume");
  await current.start();
  expect((await handle.result()).output).toBe("2");
});

it("J9: with versionPolicy pin, a worker claims a run whose child has another version once, and leaves it to that version", async () => {
  const { clock, current, restarted, handle } = await setUpChild("pin");
  await current.start();
  await settle();
  await clock.advance(5_000);
  expect(current.claims).toHaveLength(1);
  await restarted.start();
  await clock.advance(1_000);
  expect((await handle.result()).output).toBe("1");
});

it("J9: with versionPolicy refuse, a worker fails a run whose child has another version with version_mismatch", async () => {
  const { current, handle } = await setUpChild("refuse");
  await current.start();
  const { status, error: failure } = await handle.result();
  expect({ status, code: failure?.code }).toEqual({ status: "failed", code: "version_mismatch" });
});
