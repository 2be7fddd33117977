import { expect, it, vi } from "vitest";
import { Agent } from "../../../src/assembly/agent.ts";
import type { RunSummary } from "../../../src/kernel/index.ts";
import { openRuntime } from "../../../src/assembly/open-runtime.ts";
import { memoryStore, sha256 } from "../../../src/runtime/index.ts";
import { RunChanges } from "../../../src/surfaces/http/streams/run-changes.ts";
import { endlessModel } from "../protocols/endless-model.ts";

const echo = new Agent({ name: "echo", model: endlessModel(() => "Done.") });
const never = 3_600_000;

/** Number of reads of the store in one look, after which each reader has received a change of its tenant. */
async function readsOfOneLook(ended: number, readers: number): Promise<number> {
  const store = memoryStore({ hash: sha256 });
  await using runtime = await openRuntime({ store, unknownPrice: "ignore" });
  const changes = new RunChanges(runtime, never, (error) => expect.fail(String(error)));
  const leave = new AbortController();
  const tenants = Array.from({ length: readers }, (_, index) => `tenant-${index}`);
  const run = async (tenantId: string): Promise<void> => {
    const started = await runtime.forTenant({ tenantId }).submit(echo, "Hi");
    await started.result();
  };
  for (let count = 0; count < ended; count++) await run("old");
  const received = tenants.map(() => Promise.withResolvers<readonly RunSummary[]>());
  await Promise.all(
    tenants.map((tenantId, index) =>
      changes.listen((changed) => received[index]?.resolve(changed), leave.signal, { tenantId }),
    ),
  );
  for (const tenantId of tenants) await run(tenantId);
  const spies = (["changes", "list", "find", "summary"] as const).map((name) =>
    vi.spyOn(store.journal, name),
  );
  changes.poke();
  const seen = await Promise.all(received.map(({ promise }) => promise));
  const reads = spies.reduce((sum, spy) => sum + spy.mock.calls.length, 0);
  for (const spy of spies) spy.mockRestore();
  leave.abort();
  expect(seen.map((changed) => changed.map(({ tenantId }) => tenantId))).toEqual(
    tenants.map((each) => [each]),
  );
  return reads;
}

it("the stream of all runs reads the same for one reader and for many tenants, with and without ended runs", async () => {
  const reads = await readsOfOneLook(0, 1);
  expect(reads).toBe(1);
  expect(await readsOfOneLook(0, 20)).toBe(reads);
  expect(await readsOfOneLook(250, 1)).toBe(reads);
  expect(await readsOfOneLook(250, 20)).toBe(reads);
});

it("all runs that were created since the last poll reach a reader, also if they have ended and are more than a page", async () => {
  await using runtime = await openRuntime({ unknownPrice: "ignore" });
  const changes = new RunChanges(runtime, never, (error) => expect.fail(String(error)));
  const leave = new AbortController();
  await (await runtime.submit(echo, "Before")).result();
  const received = Promise.withResolvers<readonly RunSummary[]>();
  await changes.listen((changed) => received.resolve(changed), leave.signal);
  const created: string[] = [];
  for (let count = 0; count < 150; count++) {
    const run = await runtime.submit(echo, "Hi");
    await run.result();
    created.push(run.runId);
  }
  changes.poke();
  const changed = (await received.promise).map(({ runId }) => runId);
  leave.abort();
  expect(changed.toSorted()).toEqual(created.toSorted());
});
