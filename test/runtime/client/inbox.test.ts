import { expect, onTestFinished, test } from "vitest";
import { openStore, sha256 } from "../../../src/entries/index.ts";
import { StoredInbox } from "../../../src/runtime/client/stored-inbox.ts";
import { createRuntime } from "../../../src/runtime/local-runtime.ts";
import { FakeClock } from "../../../src/testing/index.ts";
import { newPath } from "../stores/sqlite/store-files.ts";

const ada = { userId: "ada" };

async function opened(store = "memory:") {
  const clock = new FakeClock();
  const runtime = await createRuntime({ store: store as "memory:", clock });
  onTestFinished(() => runtime.close());
  return { clock, inbox: runtime.inbox, runtime };
}

test("an inbox item that a person has hidden is hidden for this person only, until it is restored", async () => {
  const { inbox, clock } = await opened();
  await inbox.hide({ id: "run_1", change: "5" }, ada);
  const item = { id: "run_1", change: "5", until: null, at: clock.now() };
  expect(await inbox.hidden(ada)).toEqual([item]);
  expect(await inbox.hidden({ userId: "bob" })).toEqual([]);
  expect(await inbox.hidden({ userId: "ada", tenantId: "acme" })).toEqual([]);
  expect(await inbox.restore("run_1", ada)).toBe(true);
  expect(await inbox.restore("run_1", ada)).toBe(false);
  expect(await inbox.hidden(ada)).toEqual([]);
});

/** An inbox without a runtime, whose timers would follow the clock. */
async function storedInbox(most?: number) {
  const clock = new FakeClock();
  const store = await openStore("memory:");
  onTestFinished(() => store.close());
  const options = { records: store.records, clock, hash: sha256, check: () => undefined };
  const inbox = new StoredInbox({
    ...options,
    own: (_owner, owner) => owner,
    ...(most !== undefined && { most }),
  });
  return { clock, inbox };
}

test("a snoozed inbox item comes back at its time, and a closed item is forgotten after 90 days", async () => {
  const { inbox, clock } = await storedInbox();
  await inbox.hide({ id: "a", change: "1", until: clock.now() + 1_000 }, ada);
  await inbox.hide({ id: "b", change: "1" }, ada);
  await clock.advance(1_000);
  expect((await inbox.hidden(ada)).map(({ id }) => id)).toEqual(["b"]);
  await clock.advance(90 * 24 * 3_600_000);
  expect(await inbox.hidden(ada)).toEqual([]);
});

test("hidden inbox items survive the process, and hiding an item again replaces what was stored", async () => {
  const store = `sqlite:${await newPath()}`;
  const { inbox, runtime } = await opened(store);
  await inbox.hide({ id: "run_1:approval 1", change: "1" }, ada);
  await inbox.hide({ id: "run_1:approval 1", change: "2" }, ada);
  await runtime.close();
  const { inbox: later } = await opened(store);
  expect(await later.hidden(ada)).toMatchObject([{ id: "run_1:approval 1", change: "2" }]);
});

test("the inbox item that was hidden first is shown again if a person hides more than the limit", async () => {
  const { inbox, clock } = await storedInbox(3);
  for (const id of ["one", "two", "three", "four"]) {
    await inbox.hide({ id, change: "" }, ada);
    await clock.advance(1);
  }
  const ids = (await inbox.hidden(ada)).map(({ id }) => id);
  expect(ids.toSorted()).toEqual(["four", "three", "two"]);
});

test("S6: a tenant view has an inbox of its own and refuses the inbox of another tenant", async () => {
  const { inbox, runtime } = await opened();
  const view = runtime.forTenant({ tenantId: "acme", userId: "ada" });
  await view.inbox.hide({ id: "run_1", change: "1" });
  expect(await view.inbox.hidden()).toHaveLength(1);
  expect(await inbox.hidden(ada)).toEqual([]);
  expect(await inbox.hidden({ tenantId: "acme", userId: "ada" })).toHaveLength(1);
  await expect(view.inbox.hidden({ tenantId: "other" })).rejects.toThrow(/this view is for "acme"/);
});

test("hiding inbox items refuses a time in the past, an empty id and an unknown option", async () => {
  const { inbox } = await opened();
  const item = { id: "run_1", change: "1" };
  await expect(inbox.hide({ ...item, until: 0 })).rejects.toThrow(/invalid until 0 of inbox.hide\(\)/);
  await expect(inbox.hide({ ...item, id: "" })).rejects.toThrow(/invalid id "" of inbox.hide\(\)/);
  await expect(inbox.hide({ ...item, till: 5 } as never)).rejects.toThrow(/till/);
});

test("several inbox items are hidden at once, and older hidden items make room for all of them", async () => {
  const { inbox, clock } = await storedInbox(3);
  await inbox.hide({ id: "first", change: "" }, ada);
  await clock.advance(1);
  await inbox.hide(
    ["one", "two", "three"].map((id) => ({ id, change: "1" })),
    ada,
  );
  const ids = (await inbox.hidden(ada)).map(({ id }) => id);
  expect(ids.toSorted()).toEqual(["one", "three", "two"]);
  const bad = [
    { id: "four", change: "1" },
    { id: "", change: "1" },
  ];
  await expect(inbox.hide(bad, ada)).rejects.toThrow(/invalid id "" of inbox.hide\(\)/);
  expect(await inbox.hidden(ada)).toHaveLength(3);
});
