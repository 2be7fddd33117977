import {
  assistantMessage,
  contentThreshold,
  eventDraft,
  toolMessage,
  type Commit,
  type Event,
  type JsonValue,
  type Lease,
  type RunId,
  type SessionChange,
  type SessionEntry,
  type Store,
} from "../../kernel/index.ts";
import type { ContractHarness } from "./contract-harness.ts";
import {
  agentId,
  all,
  createRun,
  ownRun,
  placed,
  rootTask,
  runEnd,
  runRecord,
  sessionEntry,
  sessionId,
  stepRecord,
} from "./store-fixtures.ts";

const bytes = (size: number): Uint8Array =>
  Uint8Array.from({ length: size }, (_, index) => (index * 31) % 256);

/** Returns a text that is large enough to be stored as a content. */
const long = (name: string, length = 3 * contentThreshold): string =>
  name.repeat(Math.ceil(length / name.length));

function appended(entry: SessionEntry, visibility: "hidden" | "visible" = "visible"): SessionChange {
  return { type: "append", sessionId, agentId, entry, visibility };
}

/** Returns a commit whose record, event and entry contain the same tool output. */
function toolCommit(runId: RunId, text: string): Commit {
  const output = { type: "text", text } as const;
  const result = { output, isError: false };
  const part = { type: "tool_result", callId: "c", toolName: "look", ...result } as const;
  const draft = eventDraft("tool_execution_end", {
    callId: "c",
    toolName: "look",
    result,
    durationMs: 1,
    status: "ok",
  });
  return {
    number: 1,
    at: 2,
    steps: [{ ...stepRecord(0, result), kind: "tool" }],
    events: [placed(runId, 1, draft)],
    sessions: [appended({ ...sessionEntry("e", null), runId, message: toolMessage([part]) } as SessionEntry)],
  };
}

async function stepValues(store: Store, runId: RunId): Promise<readonly JsonValue[]> {
  const commits = await all(store.journal.read(runId));
  return commits.flatMap(({ steps = [] }) =>
    steps.flatMap(({ outcome }) => (outcome.kind === "ok" ? [outcome.value] : [])),
  );
}

/** Tests of the rules that every implementation of `Contents` must keep, and of large values in the other contracts. */
export function contentContract(harness: ContractHarness): void {
  ownershipContract(harness);
  largeValueContract(harness);
}

function ownershipContract({ test, expect, open }: ContractHarness): void {
  const withSession = async (store: Store): Promise<{ readonly sessionId: typeof sessionId }> => {
    await store.sessions.apply([appended({ ...sessionEntry("first", null), runId: null })]);
    return { sessionId };
  };

  test("V1: a content is read back byte for byte, and equal bytes get the same hash", async () => {
    const store = await open();
    const owner = { runId: await createRun(store) };
    const content = bytes(600_000);
    const hash = await store.contents.put(owner, content);
    expect(await store.contents.put(owner, content)).toBe(hash);
    content[0] = 255;
    const stored = await store.contents.get(owner, hash);
    expect(Array.from(stored ?? [])).toEqual(Array.from(bytes(600_000)));
    expect((await store.contents.put(owner, bytes(3))) === hash).toBe(false);
    expect((await store.contents.get(owner, await store.contents.put(owner, bytes(0))))?.length).toBe(0);
  });

  test("V1: equal bytes have the same hash for a run and for a session", async () => {
    const store = await open();
    const run = { runId: await createRun(store) };
    const session = await withSession(store);
    expect(await store.contents.put(session, bytes(5_000))).toBe(await store.contents.put(run, bytes(5_000)));
  });

  test("get() returns undefined for a content that does not exist", async () => {
    const store = await open();
    const owner = { runId: await createRun(store) };
    expect(await store.contents.get(owner, "nothing")).toBeUndefined();
  });

  test("V2: a content is deleted with its last owner and not before", async () => {
    const store = await open();
    const one = { runId: await createRun(store, "one") };
    const other = { runId: await createRun(store, "other") };
    const hash = await store.contents.put(one, bytes(10));
    await store.contents.put(other, bytes(10));
    await store.journal.delete(one.runId);
    expect(await store.contents.get(one, hash)).toBeUndefined();
    expect((await store.contents.get(other, hash))?.length).toBe(10);
    await store.journal.delete(other.runId);
    await createRun(store, "other");
    expect(await store.contents.get(other, hash)).toBeUndefined();
  });

  test("V2: a content of a session is deleted with the session", async () => {
    const store = await open();
    const session = await withSession(store);
    const hash = await store.contents.put(session, bytes(10));
    expect((await store.contents.get(session, hash))?.length).toBe(10);
    await store.sessions.delete(sessionId);
    expect(await store.contents.get(session, hash)).toBeUndefined();
    await withSession(store);
    expect(await store.contents.get(session, hash)).toBeUndefined();
  });

  test("V2: put() and share() refuse an owner that does not exist", async () => {
    const store = await open();
    const owner = { runId: await createRun(store) };
    const hash = await store.contents.put(owner, bytes(3));
    const missing = { code: "not_found" };
    for (const to of [{ runId: runRecord("none").runId }, { sessionId }]) {
      await expect(store.contents.put(to, bytes(3))).rejects.toMatchObject(missing);
      await expect(store.contents.share(hash, { from: owner, to })).rejects.toMatchObject(missing);
    }
    await store.journal.delete(owner.runId);
    await expect(store.contents.put(owner, bytes(3))).rejects.toMatchObject(missing);
  });

  test("V2: a shared content survives the owner that put it", async () => {
    const store = await open();
    const from = { runId: await createRun(store) };
    const to = await withSession(store);
    const hash = await store.contents.put(from, bytes(300_000));
    await store.contents.share(hash, { from, to });
    await store.contents.share(hash, { from, to });
    await store.journal.delete(from.runId);
    expect(Array.from((await store.contents.get(to, hash)) ?? [])).toEqual(Array.from(bytes(300_000)));
  });

  test("V2: release() ends the ownership of one owner only, and a second call changes nothing", async () => {
    const store = await open();
    const one = { runId: await createRun(store, "one") };
    const other = { runId: await createRun(store, "other") };
    const hash = await store.contents.put(one, bytes(10));
    await store.contents.share(hash, { from: one, to: other });
    await store.contents.release(one, hash);
    await store.contents.release(one, hash);
    await store.contents.release(one, "nothing");
    expect(await store.contents.get(one, hash)).toBeUndefined();
    expect((await store.contents.get(other, hash))?.length).toBe(10);
    await store.contents.release(other, hash);
    expect(await store.contents.get(other, hash)).toBeUndefined();
    expect(await store.contents.put(one, bytes(10))).toBe(hash);
    expect((await store.contents.get(one, hash))?.length).toBe(10);
  });

  test("V2: owners() returns the runs and sessions that share a content, to its owners only", async () => {
    const store = await open();
    const run = { runId: await createRun(store, "one") };
    const stranger = { runId: await createRun(store, "other") };
    const session = await withSession(store);
    const hash = await store.contents.put(run, bytes(10));
    await store.contents.share(hash, { from: run, to: session });
    const names = (await store.contents.owners(session, hash)).map((each) => JSON.stringify(each));
    expect(names.toSorted()).toEqual([JSON.stringify(run), JSON.stringify(session)]);
    expect(await store.contents.owners(stranger, hash)).toEqual([]);
  });

  test("V3: only the owners of a content can read or share it", async () => {
    const store = await open();
    const owner = { runId: await createRun(store, "one") };
    const stranger = { runId: await createRun(store, "other") };
    const hash = await store.contents.put(owner, bytes(10));
    expect(await store.contents.get(stranger, hash)).toBeUndefined();
    await expect(store.contents.share(hash, { from: stranger, to: stranger })).rejects.toMatchObject({
      code: "not_found",
    });
    await store.contents.release(stranger, hash);
    expect((await store.contents.get(owner, hash))?.length).toBe(10);
  });

  test("V3: tenants have separate contents, and share() does not cross them", async () => {
    const store = await open();
    const owners = ["acme", "other"].map((tenantId) => ({ ...runRecord(tenantId), tenantId }));
    for (const record of owners) await store.journal.create(record, { number: 0, at: 1 });
    const [one, other] = owners.map(({ runId }) => ({ runId }));
    if (one === undefined || other === undefined) throw new Error("two runs were created");
    const hash = await store.contents.put(one, bytes(10));
    await expect(store.contents.share(hash, { from: one, to: other })).rejects.toMatchObject({
      code: "not_found",
    });
    expect(await store.contents.put(other, bytes(10))).toBe(hash);
    expect((await store.contents.owners(other, hash)).length).toBe(1);
    await store.journal.delete(one.runId);
    expect((await store.contents.get(other, hash))?.length).toBe(10);
  });
}

function largeValueContract({ test, expect, open }: ContractHarness): void {
  test("V4: a large value in a record, an event and a session entry is read back unchanged from each of them", async () => {
    const store = await open();
    const lease = await ownRun(store);
    const { runId } = lease;
    const commit = toolCommit(runId, long("result "));
    await store.journal.append(lease, commit);
    expect((await all(store.journal.read(runId)))[1]).toEqual(commit);
    const replayed: Commit[] = [];
    await store.journal.replay(runId, (each) => void replayed.push(each));
    expect(replayed[1]).toEqual(commit);
    expect(await all(store.events.read(runId, 1))).toEqual(commit.events);
    const [change] = commit.sessions ?? [];
    const [stored] = await store.sessions.read(sessionId);
    expect(stored?.entry).toEqual(change?.type === "append" && change.entry);
    expect((await store.events.keep(runId))()[1]).toEqual(commit.events?.[0]);
    expect((await store.events.verify(runId)).ok).toBe(true);
  });

  const around = [-1, 0, 1].map((more) => long("x", contentThreshold - 2 + more));
  const values: readonly [string, JsonValue][] = [
    ["texts around the threshold", around],
    ["a text of characters of several bytes", long("größer ✓ ", 300_000)],
    ["a text with half a surrogate pair", `${long("y")}\ud800`],
    ["a list of many small values", Array.from({ length: 5_000 }, (_, index) => index)],
    ["large values inside a large value", { texts: [long("a"), long("b"), long("a")], many: around }],
    ["a member named __proto__", JSON.parse(`{"__proto__":${JSON.stringify(long("p"))}}`) as JsonValue],
    ["a value that looks like a reference", [["hash", "steps", 0], long("z")]],
    ["members in their order", { z: long("z"), a: 1, m: [long("m")] }],
  ];
  for (const [what, value] of values)
    test(`V4: a step value is read back unchanged: ${what}`, async () => {
      const store = await open();
      const lease = await ownRun(store);
      await store.journal.append(lease, { number: 1, at: 2, steps: [stepRecord(0, value)] });
      const [stored] = await stepValues(store, lease.runId);
      expect(JSON.stringify(stored)).toBe(JSON.stringify(value));
      expect((await store.events.verify(lease.runId)).ok).toBe(true);
    });

  test("V4: large messages, failures and resolutions are read back unchanged, in the first commit of a run too", async () => {
    const store = await open();
    const record = runRecord();
    const commit = (number: number): Commit => ({
      number,
      at: 1,
      events: [
        placed(record.runId, number, eventDraft("message_end", { message: assistantMessage(long("m")) })),
      ],
      steps: [
        {
          ...stepRecord(number, null),
          outcome: { kind: "failed", failure: { code: "internal", message: long("f") } },
        },
      ],
      resolves: [{ taskId: rootTask, wait: `w${number}`, value: { answer: long("r") } }],
    });
    await store.journal.create(record, commit(0));
    await store.leases.enlist("w1");
    const lease = (await store.leases.seize(record.runId, "w1")) as Lease;
    await store.journal.append(lease, commit(1));
    expect(await all(store.journal.read(record.runId))).toEqual([commit(0), commit(1)]);
  });

  test("V4: a commit of very many small values is read back unchanged", async () => {
    const store = await open();
    const lease = await ownRun(store);
    const steps = Array.from({ length: 2_000 }, (_, index) => stepRecord(index, `value ${index}`));
    await store.journal.append(lease, { number: 1, at: 2, steps });
    expect(await stepValues(store, lease.runId)).toEqual(steps.map((_, index) => `value ${index}`));
    expect((await store.events.verify(lease.runId)).ok).toBe(true);
  });

  test("V4: a visible entry keeps its large values after its run is deleted, and a run keeps them after its session is deleted", async () => {
    const store = await open();
    const lease = await ownRun(store);
    const text = long("kept ");
    const commit = toolCommit(lease.runId, text);
    await store.journal.append(lease, commit);
    const twin = await ownRun(store, "twin");
    const result = { output: { type: "text", text }, isError: false };
    await store.journal.append(twin, { number: 1, at: 2, steps: [stepRecord(0, result)] });
    await store.journal.delete(lease.runId);
    expect(JSON.stringify(await store.sessions.read(sessionId)).includes(text)).toBe(true);
    await store.journal.append(twin, { number: 2, at: 3, events: [runEnd(twin.runId, 1)] });
    await store.leases.release(twin, { kind: "ended" });
    expect(await store.sessions.delete(sessionId)).toBeUndefined();
    expect(await stepValues(store, twin.runId)).toEqual([result]);
  });

  test("V4: an entry that is removed and then appended again still has its large value", async () => {
    const store = await open();
    const lease = await ownRun(store);
    const [append] = toolCommit(lease.runId, long("again ")).sessions ?? [];
    if (append?.type !== "append") throw new Error("the commit appends an entry");
    await store.sessions.apply([append]);
    await store.sessions.apply([{ type: "remove", sessionId, runId: lease.runId }]);
    await store.sessions.apply([append]);
    expect((await store.sessions.read(sessionId)).map(({ entry }) => entry)).toEqual([append.entry]);
  });

  test("V4: a pending session entry keeps its large value when it moves behind the current entry", async () => {
    const store = await open();
    const lease = await ownRun(store);
    const { runId } = lease;
    const [append] = toolCommit(runId, long("waits ")).sessions ?? [];
    if (append?.type !== "append") throw new Error("the commit appends an entry");
    const later = appended({ ...sessionEntry("later", null), runId: null });
    await store.sessions.apply([{ ...append, visibility: "pending" }, later]);
    await store.sessions.apply([{ type: "reveal", sessionId, runId }]);
    const stored = (await store.sessions.read(sessionId)).map(({ entry }) => entry);
    expect(stored[1]).toEqual({ ...append.entry, parentId: "later" });
    await store.journal.delete(runId);
    expect((await store.sessions.read(sessionId))[1]?.entry).toEqual({ ...append.entry, parentId: "later" });
  });

  test("V2: a commit keeps its large value although an owner puts and releases the same content", async () => {
    const store = await open();
    const lease = await ownRun(store);
    const owner = { runId: lease.runId };
    const value = long("both ");
    await store.journal.append(lease, { number: 1, at: 2, steps: [stepRecord(0, value)] });
    const hash = await store.contents.put(owner, new TextEncoder().encode(JSON.stringify(value)));
    await store.contents.release(owner, hash);
    expect(await store.contents.get(owner, hash)).toBeUndefined();
    expect(await stepValues(store, lease.runId)).toEqual([value]);
  });

  test("J1: a commit with large values changes nothing if a commit with its number is already stored", async () => {
    const store = await open();
    const lease = await ownRun(store);
    const commit = (value: JsonValue): Commit => ({ number: 1, at: 2, steps: [stepRecord(0, value)] });
    await store.journal.append(lease, commit(long("first ")));
    expect(await store.journal.append(lease, commit(long("second ")))).toEqual(commit(long("first ")));
    await expect(
      Promise.resolve(
        store.journal.append({ ...lease, epoch: lease.epoch - 1 }, { ...commit(long("z")), number: 2 }),
      ),
    ).rejects.toMatchObject({ code: "lease_lost" });
    expect(await stepValues(store, lease.runId)).toEqual([long("first ")]);
  });

  test("V5: no reader gets the large values of an erased task, and the values of other runs stay", async () => {
    const store = await open();
    const lease = await ownRun(store);
    const secret = long("secret ");
    const { sessions: _sessions, ...commit } = toolCommit(lease.runId, secret);
    await store.journal.append(lease, commit);
    const other = await ownRun(store, "other");
    await store.journal.append(other, { number: 1, at: 2, steps: [stepRecord(0, secret)] });
    const events: readonly Event[] = [runEnd(lease.runId, 2)];
    await store.journal.append(lease, { number: 2, at: 3, events, erases: [{ taskId: rootTask, agentId }] });
    const left = JSON.stringify([
      await all(store.journal.read(lease.runId)),
      await all(store.events.read(lease.runId)),
    ]);
    expect(left.includes("secret")).toBe(false);
    expect((await store.events.verify(lease.runId)).ok).toBe(true);
    expect(await stepValues(store, other.runId)).toEqual([secret]);
    expect((await store.events.verify(other.runId)).ok).toBe(true);
  });
}
