import {
  formatAgentId,
  formatSessionId,
  type Creation,
  type RunRecord,
  type SingleFlight,
  type Store,
  type MaybePromise,
} from "../../kernel/index.ts";
import type { ContractHarness } from "./contract-harness.ts";
import { createRun, ownRun, runEnd, runRecord } from "./store-fixtures.ts";

/** Tests of S5: the result of `create` in every `Journal` while the agent has an unfinished run in the session. */
export function singleFlightContract({ test, expect, open }: ContractHarness): void {
  const flight = (name: string, always = false): SingleFlight => ({
    steering: { id: `submit run_${name}`, from: "ann", at: 2, body: { type: "steer", input: name } },
    always,
  });

  const submit = (store: Store, name: string, more: Partial<RunRecord> = {}): MaybePromise<Creation> =>
    store.journal.create({ ...runRecord(name), ...more }, { number: 0, at: 2 }, flight(name));

  const mailOf = async (store: Store): Promise<unknown[]> =>
    (await store.mailbox.read(runRecord("a").runId)).map(({ body }) => body);

  test("S5: create() refuses a second run of an agent in a session and returns the unfinished run", async () => {
    const store = await open();
    const runId = await createRun(store);
    const pending = await submit(store, "b");
    expect(pending.kind === "busy" && [pending.run.runId, pending.run.status]).toEqual([runId, "pending"]);
    await store.leases.enlist("w1");
    await store.leases.seize(runId, "w1");
    const running = await submit(store, "b");
    expect(running.kind === "busy" && running.run.status).toBe("running");
    expect(await store.journal.find(runRecord("b").runId)).toBeUndefined();
    expect(await mailOf(store)).toEqual([]);
  });

  test("S5: runs of another agent, in another session, or after a finished run are created", async () => {
    const store = await open();
    const lease = await ownRun(store);
    const created = { kind: "created" };
    expect(await submit(store, "b", { agentId: formatAgentId({ name: "bob" }) })).toEqual(created);
    expect(await submit(store, "c", { sessionId: formatSessionId("other") })).toEqual(created);
    await store.journal.append(lease, { number: 1, at: 2, events: [runEnd(lease.runId, 1)] });
    expect(await submit(store, "d")).toEqual(created);
  });

  test("S5: submissions to a suspended run become steering of that run and make it claimable", async () => {
    const store = await open();
    const lease = await ownRun(store);
    await store.leases.release(lease, { kind: "suspended", wakeAt: null });
    const steered = { kind: "steered", runId: lease.runId };
    expect(await submit(store, "b")).toEqual(steered);
    expect(await submit(store, "c")).toEqual(steered);
    expect(await mailOf(store)).toEqual([
      { type: "steer", input: "b" },
      { type: "steer", input: "c" },
    ]);
    expect((await store.leases.claim({ workerId: "w1", limit: 9, now: 0 })).length).toBe(1);
  });

  test("S5: a submission of another user or tenant never becomes steering of the run", async () => {
    const store = await open();
    const lease = await ownRun(store);
    const others = [{ userId: "bob" }, { tenantId: "elsewhere" }];
    const always = (name: string, more: Partial<RunRecord>): MaybePromise<Creation> =>
      store.journal.create({ ...runRecord(name), ...more }, { number: 0, at: 2 }, flight(name, true));
    for (const [index, more] of others.entries()) expect((await always(`b${index}`, more)).kind).toBe("busy");
    await store.leases.release(lease, { kind: "suspended", wakeAt: null });
    for (const [index, more] of others.entries())
      expect((await submit(store, `c${index}`, more)).kind).toBe("busy");
    expect(await mailOf(store)).toEqual([]);
    expect(await submit(store, "d")).toEqual({ kind: "steered", runId: lease.runId });
  });

  test("S5: a submission becomes steering of a running run if the caller asks for it", async () => {
    const store = await open();
    const { runId } = await ownRun(store);
    const creation = await store.journal.create(runRecord("b"), { number: 0, at: 2 }, flight("b", true));
    expect(creation).toEqual({ kind: "steered", runId });
    expect((await mailOf(store)).length).toBe(1);
  });

  test("S5: a submission that became steering has no effect when repeated, even after the run has ended", async () => {
    const store = await open();
    const lease = await ownRun(store);
    await store.leases.release(lease, { kind: "suspended", wakeAt: null });
    const steered = { kind: "steered", runId: lease.runId };
    expect(await submit(store, "b")).toEqual(steered);
    expect(await submit(store, "b")).toEqual(steered);
    expect((await mailOf(store)).length).toBe(1);
    const next = await store.leases.seize(lease.runId, "w1");
    if (next === undefined) throw new Error("the run could not be seized");
    const events = [runEnd(lease.runId, 1)];
    await store.journal.append(next, { number: 1, at: 2, mailThrough: 0, events });
    expect(await submit(store, "b")).toEqual(steered);
  });

  test("S5: of several concurrent submissions, exactly one creates a run", async () => {
    const store = await open();
    const creations = await Promise.all(["a", "b", "c", "d", "e"].map(async (name) => submit(store, name)));
    expect(
      creations
        .map(({ kind }) => kind)
        .toSorted()
        .join(),
    ).toBe("busy,busy,busy,busy,created");
  });

  test("S5: of two submissions in the last commit of a run, the first creates a run and the second steers that run, once", async () => {
    const store = await open();
    const lease = await ownRun(store);
    const submissions = ["b", "c"].map((name) => ({
      run: runRecord(name),
      first: { number: 0, at: 2 },
      flight: flight(name, true),
    }));
    const end = { number: 1, at: 2, events: [runEnd(lease.runId, 1)] };
    const [b, c] = [runRecord("b").runId, runRecord("c").runId];
    await expect(store.journal.append({ ...lease, epoch: 0 }, end, submissions)).rejects.toMatchObject({
      code: "lease_lost",
    });
    expect(await store.journal.find(b)).toBeUndefined();
    for (let time = 0; time < 2; time++) await store.journal.append(lease, end, submissions);
    expect(await store.journal.find(b)).toEqual(runRecord("b"));
    expect(await store.journal.find(c)).toBeUndefined();
    expect((await store.mailbox.read(b)).map(({ body }) => body)).toEqual([{ type: "steer", input: "c" }]);
    await store.leases.release(lease, { kind: "ended" });
    const claimed = await store.leases.claim({ workerId: "w1", limit: 9, now: 0 });
    expect(claimed.map(({ runId }) => runId)).toEqual([b]);
  });

  test("a submission without the option flight in a run's last commit creates its run once, also beside a run of its agent", async () => {
    const store = await open();
    const lease = await ownRun(store);
    await store.journal.create({ ...runRecord("b") }, { number: 0, at: 2 });
    const [c, d] = [runRecord("c"), { ...runRecord("d"), sessionId: formatSessionId("other") }];
    const submissions = [c, d].map((run) => ({ run, first: { number: 0, at: 2 } }));
    const end = { number: 1, at: 2, events: [runEnd(lease.runId, 1)] };
    await expect(store.journal.append({ ...lease, epoch: 0 }, end, submissions)).rejects.toMatchObject({
      code: "lease_lost",
    });
    expect(await store.journal.find(c.runId)).toBeUndefined();
    for (let time = 0; time < 2; time++) await store.journal.append(lease, end, submissions);
    expect(await store.journal.find(c.runId)).toEqual(c);
    expect(await store.journal.find(d.runId)).toEqual(d);
  });

  test("S5: a compaction in a run's last commit is created, because that run has ended", async () => {
    const store = await open();
    const lease = await ownRun(store);
    const run = { ...runRecord("b"), kind: "compaction" as const };
    const end = { number: 1, at: 2, events: [runEnd(lease.runId, 1)] };
    await store.journal.append(lease, end, [{ run, first: { number: 0, at: 2 } }]);
    expect(await store.journal.find(run.runId)).toEqual(run);
    await store.leases.release(lease, { kind: "ended" });
    const claimed = await store.leases.claim({ workerId: "w1", limit: 9, now: 0 });
    expect(claimed.map(({ runId }) => runId)).toEqual([run.runId]);
  });

  test("S5: of two submissions with isAlone in one session, only the first creates a run, until that run has ended", async () => {
    const store = await open();
    const lease = await ownRun(store);
    const sessionId = formatSessionId("reviews");
    const [b, c, d] = ["b", "c", "d"].map((name) => ({ ...runRecord(name), sessionId })) as [
      RunRecord,
      RunRecord,
      RunRecord,
    ];
    const alone = (run: RunRecord) => ({ run, first: { number: 0, at: 2 }, isAlone: true });
    await store.journal.append(lease, { number: 1, at: 2 }, [alone(b), alone(c)]);
    expect(await store.journal.find(b.runId)).toEqual(b);
    expect(await store.journal.find(c.runId)).toBeUndefined();
    const [review] = await store.leases.claim({ workerId: "w1", limit: 1, now: 0 });
    if (review === undefined) throw new Error("the review is not ready");
    await store.journal.append(review, { number: 1, at: 3, events: [runEnd(b.runId, 0)] });
    await store.journal.append(lease, { number: 2, at: 3 }, [alone(d)]);
    expect(await store.journal.find(d.runId)).toEqual(d);
  });

  test("create() without a flight creates a run regardless of other runs in the session", async () => {
    const store = await open();
    await createRun(store);
    expect(await store.journal.create(runRecord("b"), { number: 0, at: 2 })).toEqual({ kind: "created" });
  });
}
