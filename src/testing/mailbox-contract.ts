import { formatRunId, type Mail, type RunId } from "../kernel/index.ts";
import type { ContractHarness } from "./contract-harness.ts";
import { createRun, ownRun, rootTask } from "./store-fixtures.ts";

/** What every `Mailbox` must do. */
export function mailboxContract({ test, expect, open }: ContractHarness): void {
  const mail = (runId: RunId, id: string, from = "someone"): Mail => ({
    id,
    runId,
    from,
    at: 1,
    body: { type: "resolve", taskId: rootTask, wait: id, value: null },
  });

  test("P1: the same mail twice is one mail, also after it was consumed", async () => {
    const store = await open();
    const lease = await ownRun(store);
    expect(await store.mailbox.put(mail(lease.runId, "a"))).toBe(true);
    expect(await store.mailbox.put(mail(lease.runId, "a"))).toBe(false);
    const [first] = await store.mailbox.read(lease.runId);
    await store.journal.append(lease, { number: 1, at: 2, mailThrough: first?.place ?? -1 });
    expect(await store.mailbox.put(mail(lease.runId, "a"))).toBe(false);
    expect(await store.mailbox.read(lease.runId)).toEqual([]);
  });

  test("P2: mail is read in the order of arrival, each with its place", async () => {
    const store = await open();
    const runId = await createRun(store);
    const sent = [mail(runId, "a", "ann"), mail(runId, "b", "bob"), mail(runId, "c", "ann")];
    for (const each of sent) await store.mailbox.put(each);
    const read = await store.mailbox.read(runId);
    expect(read.map(({ place: _place, ...each }) => each)).toEqual(sent);
    expect(read.map(({ place }) => place)).toEqual([0, 1, 2]);
  });

  test("P3: mail is consumed by the commit that names its place, and not by one that is refused", async () => {
    const store = await open();
    const lease = await ownRun(store);
    for (const id of ["a", "b", "c"]) await store.mailbox.put(mail(lease.runId, id));
    const gap = store.journal.append(lease, { number: 7, at: 2, mailThrough: 2 });
    await expect(gap).rejects.toMatchObject({ code: "invalid_argument" });
    expect((await store.mailbox.read(lease.runId)).length).toBe(3);
    await store.journal.append(lease, { number: 1, at: 2, mailThrough: 1 });
    expect((await store.mailbox.read(lease.runId)).map(({ id }) => id)).toEqual(["c"]);
    await store.mailbox.put(mail(lease.runId, "d"));
    expect((await store.mailbox.read(lease.runId)).map(({ id, place }) => [id, place])).toEqual([
      ["c", 2],
      ["d", 3],
    ]);
  });

  test("P4: mail to a run that does not exist is refused", async () => {
    const store = await open();
    const nobody = formatRunId("nobody");
    await expect(store.mailbox.put(mail(nobody, "a"))).rejects.toMatchObject({ code: "not_found" });
    await expect(store.mailbox.read(nobody)).rejects.toMatchObject({ code: "not_found" });
  });

  test("runs do not see each other's mail", async () => {
    const store = await open();
    const one = await createRun(store, "one");
    const other = await createRun(store, "other");
    await store.mailbox.put(mail(one, "a"));
    expect(await store.mailbox.put(mail(other, "a"))).toBe(true);
    expect((await store.mailbox.read(one)).length).toBe(1);
  });
}
