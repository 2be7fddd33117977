import {
  formatSessionId,
  type Creation,
  type Delivery,
  type Message,
  type RunId,
  type RunRecord,
  type SingleFlight,
  type Store,
  type TenantScope,
} from "../../kernel/index.ts";
import type { ContractHarness } from "./contract-harness.ts";
import {
  agentId,
  appendEntry as append,
  runEnd,
  runRecord,
  sessionEntry as entry,
  sessionId,
} from "./store-fixtures.ts";

const ann: TenantScope = { tenantId: "acme", userId: "ann" };
const acme: TenantScope = { tenantId: "acme" };
/** Scopes that see nothing of ann. */
const others: readonly TenantScope[] = [
  { tenantId: "acme", userId: "bob" },
  { tenantId: "other" },
  { tenantId: "other", userId: "ann" },
  { tenantId: "-" },
  { tenantId: "" },
];

/** Tests of S6: for a caller with a scope, the runs, sessions and dead letters of other users do not exist. */
export function scopeContract({ test, expect, open }: ContractHarness): void {
  const owner = { tenantId: "acme", userId: "ann" };
  const record = (name: string, more: Partial<RunRecord> = owner): RunRecord => ({
    ...runRecord(name),
    ...more,
  });
  const flight = (name: string, scope: TenantScope): SingleFlight => ({
    steering: { id: `submit run_${name}`, from: "x", at: 2, body: { type: "steer", input: name } },
    always: true,
    scope,
  });
  /** Submits a run in the name of the scope. */
  const submit = async (store: Store, name: string, scope: TenantScope): Promise<Creation> => {
    const { tenantId, userId = null } = scope;
    const run = record(name, { tenantId, userId });
    return store.journal.create(run, { number: 0, at: 2 }, flight(name, scope));
  };
  const createRun = async (store: Store, name = "a"): Promise<RunId> => {
    const run = record(name);
    await store.journal.create(run, { number: 0, at: 1 });
    return run.runId;
  };
  const createSession = (store: Store): Promise<unknown> =>
    store.sessions.apply([append(entry("a", null))], { owner });

  test("S6: find() returns a run to its user and its tenant, and to no other scope", async () => {
    const store = await open();
    const runId = await createRun(store);
    for (const scope of [ann, acme, undefined])
      expect((await store.journal.find(runId, scope))?.runId).toBe(runId);
    for (const scope of others) expect(await store.journal.find(runId, scope)).toBeUndefined();
  });

  test("S6: a run without a tenant and a user exists in no scope", async () => {
    const store = await open();
    await store.journal.create(runRecord("a"), { number: 0, at: 1 });
    for (const scope of [ann, acme, ...others])
      expect(await store.journal.find(runRecord("a").runId, scope)).toBeUndefined();
  });

  test("S6: put() refuses mail of another scope with not_found and stores nothing", async () => {
    const store = await open();
    const runId = await createRun(store);
    const mail = { id: "m", runId, from: "x", at: 1, body: { type: "pause" } } as const;
    for (const scope of others)
      await expect(store.mailbox.put(mail, scope)).rejects.toMatchObject({ code: "not_found" });
    expect(await store.mailbox.read(runId)).toEqual([]);
    expect(await store.mailbox.put(mail, ann)).toBe(true);
  });

  test("S6: collect() deletes the ended runs of its scope only", async () => {
    const store = await open();
    for (const [name, whose] of [
      ["a", owner],
      ["b", { tenantId: "other", userId: null }],
    ] as const) {
      const { runId } = record(name, whose);
      await store.journal.create(record(name, whose), { number: 0, at: 1, events: [runEnd(runId, 0)] });
      await store.leases.enlist("w");
      const lease = await store.leases.seize(runId, "w");
      if (lease !== undefined) await store.leases.release(lease, { kind: "ended" });
    }
    expect(await store.journal.collect({ endedBefore: 9, scope: { tenantId: "acme", userId: "bob" } })).toBe(
      0,
    );
    expect(await store.journal.collect({ endedBefore: 9, scope: acme })).toBe(1);
    expect(await store.journal.find(record("a").runId)).toBeUndefined();
    expect((await store.journal.find(record("b").runId))?.tenantId).toBe("other");
  });

  test("S6: find(), read() and readPath() treat a session of others as a session that does not exist", async () => {
    const { sessions } = await open();
    await sessions.apply([append(entry("a", null))], { owner });
    for (const scope of others) {
      expect(await sessions.find(sessionId, scope)).toBeUndefined();
      expect(await sessions.read(sessionId, { scope })).toEqual([]);
      expect(await sessions.readPath(sessionId, { scope })).toEqual({ leafId: null, entries: [] });
      expect(await sessions.readPath(sessionId, { scope, leafId: "a" })).toBeUndefined();
    }
    for (const scope of [ann, acme]) {
      expect((await sessions.find(sessionId, scope))?.userId).toBe("ann");
      expect((await sessions.read(sessionId, { scope })).length).toBe(1);
      expect((await sessions.readPath(sessionId, { scope }))?.leafId).toBe("a");
    }
  });

  test("S6: apply() refuses a change to a session of others with not_found and changes nothing", async () => {
    const store = await open();
    await createSession(store);
    const other = formatSessionId("2");
    for (const scope of others) {
      const whose = { tenantId: scope.tenantId, userId: scope.userId ?? null };
      const changes = [append(entry("x", null), "visible", other), append(entry("b", "a"))];
      await expect(store.sessions.apply(changes, { owner: whose, scope })).rejects.toMatchObject({
        code: "not_found",
      });
    }
    expect((await store.sessions.read(sessionId)).map((each) => each.entry.id)).toEqual(["a"]);
    expect(await store.sessions.find(other)).toBeUndefined();
    await store.sessions.apply([append(entry("b", "a"))], { owner, scope: ann });
    expect((await store.sessions.find(sessionId))?.leafId).toBe("b");
  });

  test("S6: delete() leaves a session of others alone", async () => {
    const store = await open();
    await createSession(store);
    for (const scope of others) expect(await store.sessions.delete(sessionId, scope)).toBeUndefined();
    expect((await store.sessions.find(sessionId))?.entries).toBe(1);
    await store.sessions.delete(sessionId, acme);
    expect(await store.sessions.find(sessionId)).toBeUndefined();
  });

  test("S6: create() starts no run in a session of others", async () => {
    const store = await open();
    await createSession(store);
    for (const [index, scope] of others.entries()) {
      expect(await submit(store, `b${index}`, scope)).toEqual({ kind: "foreign" });
      expect(await store.journal.find(record(`b${index}`).runId)).toBeUndefined();
    }
    expect(await submit(store, "c", ann)).toEqual({ kind: "created" });
  });

  test("S6: create() neither steers nor reveals an unfinished run of others in a session without entries", async () => {
    const store = await open();
    const runId = await createRun(store);
    for (const [index, scope] of others.entries())
      expect(await submit(store, `b${index}`, scope)).toEqual({ kind: "foreign" });
    expect(await store.mailbox.read(runId)).toEqual([]);
    expect(await submit(store, "c", ann)).toEqual({ kind: "steered", runId });
  });

  test("S6: create() does not reveal the run of others that took a submission with the same id", async () => {
    const store = await open();
    const runId = await createRun(store);
    expect(await submit(store, "c", ann)).toEqual({ kind: "steered", runId });
    const elsewhere = formatSessionId("2");
    for (const scope of others) {
      const run = record("c", {
        tenantId: scope.tenantId,
        userId: scope.userId ?? null,
        sessionId: elsewhere,
      });
      const creation = await store.journal.create(run, { number: 0, at: 3 }, flight("c", scope));
      expect(creation).toEqual({ kind: "foreign" });
    }
  });

  test("S6: deadLetters() and redeliver() reach messages whose sender is in the scope", async () => {
    const store = await open();
    const send = (id: string, sender?: { tenantId: string | null; userId: string | null }): Message => ({
      id,
      from: agentId,
      to: agentId,
      body: id,
      sentAt: 1,
      ...(sender !== undefined && { sender: { ...sender, runId: record("s").runId, metadata: {} } }),
    });
    await store.inbox.deliver(send("ann", owner));
    await store.inbox.deliver(send("bob", { tenantId: "acme", userId: "bob" }));
    await store.inbox.deliver(send("outside"));
    const { maxDeliveries } = store.inbox.settings;
    for (let round = 0; round < maxDeliveries; round++)
      await store.inbox.nack(agentId, ["ann", "bob", "outside"]);
    const idsOf = (letters: readonly Delivery[]): readonly string[] =>
      letters.map(({ message }) => message.id);
    expect(idsOf(await store.inbox.deadLetters(agentId, ann))).toEqual(["ann"]);
    expect(idsOf(await store.inbox.deadLetters(undefined, acme))).toEqual(["ann", "bob"]);
    expect(idsOf(await store.inbox.deadLetters(undefined, { tenantId: "other" }))).toEqual([]);
    expect(idsOf(await store.inbox.deadLetters())).toEqual(["ann", "bob", "outside"]);
    expect(await store.inbox.redeliver(agentId, ["bob", "outside"], ann)).toBe(0);
    expect(await store.inbox.redeliver(agentId, undefined, ann)).toBe(1);
    expect(idsOf(await store.inbox.deadLetters())).toEqual(["bob", "outside"]);
  });
}
