import { expect, test } from "vitest";
import { formatAgentId, formatRunId, type Store } from "../../src/kernel/index.ts";
import { memoryStore, sha256 } from "../../src/runtime/index.ts";
import { dyingStore, type Death, type DyingStore } from "../../src/testing/index.ts";

interface Setup {
  readonly inner: Store;
  readonly store: DyingStore;
  readonly deaths: string[];
}

function setup(death: Death): Setup {
  const inner = memoryStore({ hash: sha256 });
  const deaths: string[] = [];
  return { inner, deaths, store: dyingStore(inner, { ...death, die: (write) => void deaths.push(write) }) };
}

const agentId = formatAgentId({ name: "a" });
const message = (id: string) => ({ id, from: null, to: agentId, body: null, sentAt: 1 });

async function waiting({ inbox }: Store): Promise<readonly string[]> {
  return (await inbox.peek(agentId)).map(({ message: { id } }) => id);
}

/** Returns whether the promise settles before all work that is currently possible is done. */
async function settles(work: Promise<unknown>): Promise<boolean> {
  const turn = new Promise<false>((resolve) => setImmediate(() => resolve(false)));
  return Promise.race([work.then(() => true), turn]);
}

test("a dying store that dies before its n-th write does not write it, and the call never settles", async () => {
  const { inner, store, deaths } = setup({ at: 2, when: "before" });
  await store.inbox.deliver(message("first"));
  expect(await settles(store.inbox.deliver(message("second")))).toBe(false);
  expect(await waiting(inner)).toEqual(["first"]);
  expect(deaths).toEqual(["before write 2: inbox.deliver second"]);
});

test("a dying store that dies after its n-th write has written it, and the call never settles", async () => {
  const { inner, store, deaths } = setup({ at: 2, when: "after" });
  await store.inbox.deliver(message("first"));
  expect(await settles(store.inbox.deliver(message("second")))).toBe(false);
  expect(await waiting(inner)).toEqual(["first", "second"]);
  expect(deaths).toEqual(["after write 2: inbox.deliver second"]);
});

test("a dying store writes nothing after its death", async () => {
  const { inner, store } = setup({ at: 1, when: "before" });
  expect(await settles(store.inbox.deliver(message("first")))).toBe(false);
  expect(await settles(store.inbox.deliver(message("second")))).toBe(false);
  expect(await waiting(inner)).toEqual([]);
});

test("a dying store does not count a read, or a claim that returns no lease, as a write", async () => {
  const { store } = setup({ at: 10, when: "before" });
  await store.leases.enlist("w");
  await store.leases.claim({ workerId: "w", limit: 1, now: 1 });
  await store.journal.find(formatRunId("none"));
  await store.inbox.peek(agentId);
  expect(store.writes).toBe(1);
});
