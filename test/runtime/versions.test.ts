import { expect, it } from "vitest";
import { defaultRetrySettings, type Agent, type Store } from "../../src/kernel/index.ts";
import { newRun } from "../../src/runtime/activation.ts";
import { LocalEngine } from "../../src/runtime/engines/local/engine.ts";
import { memoryStore, sha256 } from "../../src/runtime/index.ts";
import type { OwnerContext, VersionPolicy } from "../../src/runtime/owner-context.ts";
import { StoredRunHandle } from "../../src/runtime/run-handle.ts";
import { RunOwner } from "../../src/runtime/run-owner.ts";
import { defaultRunRetry } from "../../src/runtime/run-retry.ts";
import { Slots } from "../../src/runtime/slots.ts";
import { FakeClock, sequentialIds } from "../../src/testing/index.ts";
import { agent, settle } from "./bench-runtime.ts";

function worker(store: Store, clock: FakeClock, name: string, hosted: Agent, versionPolicy: VersionPolicy) {
  const owner: OwnerContext = {
    store,
    clock,
    ids: sequentialIds(name),
    hash: sha256,
    random: { next: () => 0.5 },
    prices: { find: () => null },
    unknownPrice: "refuse",
    retry: defaultRetrySettings,
    runRetry: defaultRunRetry,
    slots: new Slots(8),
    suspendAfterMs: 1_000,
    versionPolicy,
    onError: () => undefined,
    findAgent: (agentId) => (agentId === hosted.id ? hosted : undefined),
  };
  const engine = new LocalEngine({
    leases: store.leases,
    clock,
    workerId: name,
    concurrency: 8,
    agentIds: () => [hosted.id],
    pollMs: 100,
    onError: () => undefined,
  });
  store.onChange((runId) => engine.wake(runId));
  return {
    owner,
    start: () => engine.start({ drive: async (lease) => (await RunOwner.load(owner, lease)).drive() }),
  };
}

async function setUp(policy: VersionPolicy) {
  const clock = new FakeClock();
  const store = memoryStore({ hash: sha256 });
  const version = (which: string): Agent => agent("clerk", async () => which, { version: which });
  const [old, young] = [
    worker(store, clock, "old", version("1"), policy),
    worker(store, clock, "young", version("2"), policy),
  ];
  const { record, first } = newRun(old.owner, version("1"), null, {});
  await store.journal.create(record, first);
  const handle = new StoredRunHandle({ store, clock, ids: sequentialIds("h"), record });
  return { clock, old, young, handle };
}

it("resumes a run of another version where the policy says so (J9)", async () => {
  const { young, handle } = await setUp("resume");
  await young.start();
  expect((await handle.result()).output).toBe("2");
});

it("leaves a pinned run for a worker of its version (J9)", async () => {
  const { clock, old, young, handle } = await setUp("pin");
  await young.start();
  await settle();
  await clock.advance(1_000);
  await old.start();
  await clock.advance(1_000);
  expect((await handle.result()).output).toBe("1");
});

it("fails a run of another version where the policy refuses it (J9)", async () => {
  const { young, handle } = await setUp("refuse");
  await young.start();
  const { status, failure } = await handle.result();
  expect({ status, code: failure?.code }).toEqual({ status: "failed", code: "version_mismatch" });
});
