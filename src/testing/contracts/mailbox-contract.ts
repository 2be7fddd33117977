import { formatRunId, formatSessionId, type Mail, type RunId } from "../../kernel/index.ts";
import type { ContractHarness } from "./contract-harness.ts";
import { createRun, ownRun, placed, rootTask, runRecord } from "./store-fixtures.ts";

/** The id of the promise `a` of the task `t0` of `run_a`. */
const promiseId = "prm_WyJydW5fYSIsInQwIiwiYSJd";

/** Tests of the rules that every implementation of `Mailbox` must keep. */
export function mailboxContract({ test, expect, open }: ContractHarness): void {
  const mail = (runId: RunId, id: string, from = "someone"): Mail => ({
    id,
    runId,
    from,
    at: 1,
    body: { type: "resolve", taskId: rootTask, wait: id, value: null },
  });

  test("P1: putting the same mail twice stores it once, also after it was consumed", async () => {
    const store = await open();
    const lease = await ownRun(store);
    expect(await store.mailbox.put(mail(lease.runId, "a"))).toBe(true);
    expect(await store.mailbox.put(mail(lease.runId, "a"))).toBe(false);
    const [first] = await store.mailbox.read(lease.runId);
    await store.journal.append(lease, { number: 1, at: 2, mailThrough: first?.place ?? -1 });
    expect(await store.mailbox.put(mail(lease.runId, "a"))).toBe(false);
    expect(await store.mailbox.read(lease.runId)).toEqual([]);
  });

  test("P7: a commit that reopens a durable promise deletes the mail that settled this promise, and no other mail", async () => {
    const store = await open();
    const lease = await ownRun(store);
    const { runId } = lease;
    for (const id of ["promise t0 a", "promise t0 b"]) await store.mailbox.put(mail(runId, id));
    const data = { id: promiseId, mailId: "promise t0 a" };
    await store.journal.append(lease, {
      number: 1,
      at: 2,
      mailThrough: 1,
      events: [placed(runId, 1, { type: "promise_reopen", data })],
    });
    expect(await store.mailbox.put(mail(runId, "promise t0 b"))).toBe(false);
    expect(await store.mailbox.put(mail(runId, "promise t0 a"))).toBe(true);
    expect(await store.mailbox.put(mail(runId, "promise t0 a"))).toBe(false);
    expect((await store.mailbox.read(runId)).map(({ id, place }) => [id, place])).toEqual([
      ["promise t0 a", 2],
    ]);
  });

  test("P2: mail is read in order of arrival, each with its position", async () => {
    const store = await open();
    const runId = await createRun(store);
    const body = { type: "steer", input: "go", metadata: { message: "m1" } } as const;
    const sent = [mail(runId, "a", "ann"), { ...mail(runId, "b", "bob"), body }, mail(runId, "c", "ann")];
    for (const each of sent) await store.mailbox.put(each);
    const read = await store.mailbox.read(runId);
    expect(read.map(({ place: _place, ...each }) => each)).toEqual(sent);
    expect(read.map(({ place }) => place)).toEqual([0, 1, 2]);
  });

  test("P3: mail is consumed by the commit that names its position; a refused commit consumes nothing", async () => {
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

  test("P3: listeners of the store learn of consumed mail after its commit", async () => {
    const store = await open();
    const lease = await ownRun(store);
    await store.mailbox.put(mail(lease.runId, "a"));
    const left: Promise<number>[] = [];
    const unsubscribe = store.onChange((change) => {
      if (change.kind === "consumed" && change.runId === lease.runId)
        left.push(Promise.resolve(store.mailbox.read(lease.runId)).then(({ length }) => length));
    });
    await store.journal.append(lease, { number: 1, at: 2 });
    await store.journal.append(lease, { number: 2, at: 3, mailThrough: 0 });
    unsubscribe();
    expect(await Promise.all(left)).toEqual([0]);
  });

  test("P4: put() refuses mail to a run that does not exist", async () => {
    const store = await open();
    const nobody = formatRunId("nobody");
    await expect(store.mailbox.put(mail(nobody, "a"))).rejects.toMatchObject({ code: "not_found" });
    await expect(store.mailbox.read(nobody)).rejects.toMatchObject({ code: "not_found" });
  });

  test("P5: receiverOf() finds the run that received the mail of a submission, also after the mail was consumed", async () => {
    const store = await open();
    const lease = await ownRun(store);
    await createRun(store);
    await store.mailbox.put(mail(lease.runId, "submit run_other"));
    await store.mailbox.put(mail(lease.runId, "a"));
    expect(await store.mailbox.receiverOf("submit run_other")).toBe(lease.runId);
    await store.journal.append(lease, { number: 1, at: 2, mailThrough: 1 });
    expect(await store.mailbox.receiverOf("submit run_other")).toBe(lease.runId);
    for (const unknown of ["a", "submit run_unknown", ""])
      expect(await store.mailbox.receiverOf(unknown)).toBeUndefined();
  });

  test("P6: the mail of a commit reaches, once, a run that a submission of the same commit creates", async () => {
    const store = await open();
    const lease = await ownRun(store);
    const run = { ...runRecord("b"), sessionId: formatSessionId("other") };
    const cancel = mail(run.runId, "cancel");
    const submissions = [{ run, first: { number: 0, at: 2 } }];
    for (let time = 0; time < 2; time++)
      await store.journal.append(lease, { number: 1, at: 2, mail: [cancel] }, submissions);
    expect((await store.mailbox.read(run.runId)).map(({ id }) => id)).toEqual(["cancel"]);
    const claimed = await store.leases.claim({ workerId: "w2", limit: 9, now: 3 });
    expect(claimed.map(({ runId }) => runId)).toEqual([run.runId]);
  });

  test("a run does not see the mail of another run", async () => {
    const store = await open();
    const one = await createRun(store, "one");
    const other = await createRun(store, "other");
    await store.mailbox.put(mail(one, "a"));
    expect(await store.mailbox.put(mail(other, "a"))).toBe(true);
    expect((await store.mailbox.read(one)).length).toBe(1);
  });
}
