import type { ContractHarness } from "./contract-harness.ts";
import { createRun } from "./store-fixtures.ts";

/** Tests of the rules that every implementation of `Blobs` must keep. */
export function blobContract({ test, expect, open }: ContractHarness): void {
  const bytes = (size: number): Uint8Array =>
    Uint8Array.from({ length: size }, (_, index) => (index * 31) % 256);

  test("V1: a blob is read back byte for byte, and equal bytes get the same id", async () => {
    const store = await open();
    const runId = await createRun(store);
    const blob = bytes(200_000);
    const id = await store.blobs.put(runId, blob);
    expect(await store.blobs.put(runId, blob)).toBe(id);
    blob[0] = 255;
    const got = await store.blobs.get(runId, id);
    expect(Array.from(got ?? [])).toEqual(Array.from(bytes(200_000)));
    expect((await store.blobs.put(runId, bytes(3))) === id).toBe(false);
  });

  test("V2: deleting a run's blobs keeps the same bytes of another run", async () => {
    const store = await open();
    const one = await createRun(store, "one");
    const other = await createRun(store, "other");
    const id = await store.blobs.put(one, bytes(10));
    await store.blobs.put(other, bytes(10));
    await store.journal.delete(one);
    expect(await store.blobs.get(one, id)).toBeUndefined();
    expect((await store.blobs.get(other, id))?.length).toBe(10);
  });

  test("V2: put() refuses a blob for a run that does not exist", async () => {
    const store = await open();
    const runId = await createRun(store);
    await store.journal.delete(runId);
    await expect(store.blobs.put(runId, bytes(3))).rejects.toMatchObject({ code: "not_found" });
  });

  test("get() returns undefined for a blob that does not exist", async () => {
    const store = await open();
    const runId = await createRun(store);
    expect(await store.blobs.get(runId, "nothing")).toBeUndefined();
  });
}
