import {
  eventDraft,
  formatAgentId,
  formatSessionId,
  nothingSpent,
  noUsage,
  type Lease,
  type RunQuery,
  type RunRecord,
  type RunSpend,
  type SessionChange,
  type Store,
  type TaskChange,
  type Commit,
  type MaybePromise,
  runSummaryStatuses,
  unfinishedRuns,
  type RunId,
  type RunStanding,
  type WaitCause,
} from "../../kernel/index.ts";
import type { ContractHarness } from "./contract-harness.ts";
import {
  agentId,
  ownRun,
  placed,
  rootTask,
  runEnd,
  runRecord,
  sessionId,
  turnStart,
} from "./store-fixtures.ts";

/** Tests of the rules for `list` and `collect` that every implementation of `Journal` must keep. */
export function runListContract({ test, expect, open }: ContractHarness): void {
  const create = async (store: Store, name: string, more: Partial<RunRecord> = {}): Promise<void> => {
    await store.journal.create({ ...runRecord(name), ...more }, { number: 0, at: 1 });
  };

  const names = async (store: Store, query: RunQuery = {}): Promise<string[]> =>
    (await store.journal.list(query)).runs.map(({ runId }) => runId.slice("run_".length));

  const standing = async (store: Store): Promise<string | undefined> =>
    (await store.journal.list()).runs[0]?.status;

  test("K2: list() returns the newest run first, with all its fields", async () => {
    const store = await open();
    const record = { ...runRecord("b"), userId: "ann", tenantId: "acme", agentVersion: "2", createdAt: 7 };
    await create(store, "a");
    await store.journal.create(record, { number: 0, at: 9 });
    const { runs, next } = await store.journal.list();
    const unstarted = { ...nothingSpent, status: "pending", waitsFor: ["worker"], endedAt: null };
    expect(runs).toEqual([
      { ...record, ...unstarted, updatedAt: 9 },
      { ...runRecord("a"), ...unstarted, updatedAt: 1 },
    ]);
    expect(next).toBe(null);
  });

  test("K1: summary() returns a run as list() does, and undefined for an unknown run", async () => {
    const store = await open();
    const lease = await ownRun(store);
    await create(store, "b");
    const summaries = async (): Promise<unknown[]> => [
      await store.journal.summary(lease.runId),
      await store.journal.summary(runRecord("b").runId),
    ];
    expect(await summaries()).toEqual((await store.journal.list()).runs.toReversed());
    await store.journal.append(lease, { number: 1, at: 2, events: [runEnd(lease.runId, 1)] });
    await release(store, lease);
    expect(await summaries()).toEqual((await store.journal.list()).runs.toReversed());
    expect(await store.journal.summary(runRecord("unknown").runId)).toBeUndefined();
  });

  test("K2: list() returns the runs that match all given filters", async () => {
    const store = await open();
    const bob = formatAgentId({ name: "bob" });
    const talk = formatSessionId("talk");
    await create(store, "a");
    await create(store, "b", { agentId: bob });
    await create(store, "c", { sessionId: talk, tenantId: "acme" });
    await create(store, "d", { sessionId: talk, agentId: bob });
    expect(await names(store, { agentId: bob })).toEqual(["d", "b"]);
    expect(await names(store, { sessionId: talk })).toEqual(["d", "c"]);
    expect(await names(store, { tenantId: "acme" })).toEqual(["c"]);
    expect(await names(store, { tenantId: null })).toEqual(["d", "b", "a"]);
    expect(await names(store, { sessionId: talk, agentId: bob, tenantId: null, status: "pending" })).toEqual([
      "d",
    ]);
    expect(await names(store, { agentId: bob, status: ["completed", "running"] })).toEqual([]);
    expect(await names(store, { agentId: bob, status: ["completed", "pending"] })).toEqual(["d", "b"]);
  });

  test("K2: the next page continues after the previous one, also when runs were created or deleted meanwhile", async () => {
    const store = await open();
    for (const name of ["a", "b", "c", "d", "e"]) await create(store, name);
    const first = await store.journal.list({ limit: 2 });
    expect(first.runs.map(({ runId }) => runId)).toEqual(["run_e", "run_d"]);
    await create(store, "f");
    await store.journal.delete(runRecord("d").runId);
    await store.journal.delete(runRecord("b").runId);
    const second = await store.journal.list({ limit: 2, ...(first.next !== null && { after: first.next }) });
    expect(second.runs.map(({ runId }) => runId)).toEqual(["run_c", "run_a"]);
    expect(second.next).toBe(null);
  });

  test("K2: list() refuses an invalid limit or page token", async () => {
    const store = await open();
    for (const query of [{ limit: 0 }, { limit: 1.5 }, { after: "run_a" }, { after: "-1" }]) {
      await expect(store.journal.list(query)).rejects.toMatchObject({ code: "invalid_argument" });
    }
  });

  test("K1: a claimed run is running, a suspended one waiting, and one with new mail pending", async () => {
    const store = await open();
    const lease = await ownRun(store);
    expect(await standing(store)).toBe("running");
    await store.leases.release(lease, { kind: "suspended", wakeAt: null });
    expect(await standing(store)).toBe("waiting");
    expect(await names(store, { status: "waiting" })).toEqual(["a"]);
    const body = { type: "pause" } as const;
    await store.mailbox.put({ id: "m", runId: lease.runId, from: "x", at: 1, body });
    expect(await standing(store)).toBe("pending");
    expect(await names(store, { status: "waiting" })).toEqual([]);
    expect(await names(store, { status: "pending" })).toEqual(["a"]);
  });

  test("K1: a run that its dead owner left is pending and waits for a worker; a run that was waiting still waits", async () => {
    const store = await open();
    const [left, waits] = [await ownRun(store, "a"), await ownRun(store, "b")];
    await store.journal.append(waits, {
      number: 1,
      at: 2,
      standing: { status: "waiting", waitsFor: ["person"] },
    });
    const statusesOf = async (): Promise<unknown> => {
      const found: unknown[] = [];
      for (const { runId } of [left, waits]) {
        const { status, waitsFor } = (await store.journal.summary(runId)) ?? {};
        found.push([status, waitsFor]);
      }
      for (const status of ["running", "pending", "waiting"] as const)
        found.push((await store.journal.list({ status })).runs.map(({ runId }) => runId));
      return found;
    };
    const asking = ["waiting", ["person"]];
    expect(await statusesOf()).toEqual([["running", []], asking, [left.runId], [], [waits.runId]]);
    await store.leases.dismiss("w1");
    expect(await statusesOf()).toEqual([["pending", ["worker"]], asking, [], [left.runId], [waits.runId]]);
  });

  test("K1: a run ends with the commit of its run_end and is running again with the commit that reopens it", async () => {
    const store = await open();
    const lease = await ownRun(store);
    const put = (number: number, ...tasks: TaskChange[]): MaybePromise<Commit> =>
      store.journal.append(lease, {
        number,
        at: number * 10,
        ...(tasks.length > 0 ? { tasks } : {}),
        events: [tasks.length > 0 ? turnStart(lease.runId, number) : runEnd(lease.runId, number)],
      });
    await put(1);
    const [ended] = (await store.journal.list({ status: "completed" })).runs;
    expect([ended?.status, ended?.endedAt, ended?.updatedAt]).toEqual(["completed", 10, 10]);
    expect(await names(store, { status: "running" })).toEqual([]);
    await put(2, { type: "reopen", taskId: rootTask });
    const [open_] = (await store.journal.list({ status: "running" })).runs;
    expect([open_?.status, open_?.endedAt, open_?.updatedAt]).toEqual(["running", null, 20]);
    await put(3);
    await release(store, lease);
    expect(await names(store, { status: ["running", "pending", "waiting"] })).toEqual([]);
    expect(await standing(store)).toBe("completed");
  });

  test("K1: a run whose first commit reopens a copy of an ended run has not ended", async () => {
    const store = await open();
    const record = runRecord("copy");
    const { runId } = record;
    await store.journal.create(record, {
      number: 0,
      at: 10,
      events: [runEnd(runId, 0), turnStart(runId, 1)],
      tasks: [{ type: "reopen", taskId: rootTask }],
    });
    const summary = await store.journal.summary(runId);
    expect([summary?.status, summary?.endedAt]).toEqual(["pending", null]);
    expect(await names(store, { status: "completed" })).toEqual([]);
    const [lease] = await store.leases.claim({ workerId: "w", limit: 1, now: 10 });
    expect(lease?.runId).toBe(runId);
  });

  test("K1: a run that ended as paused is listed as paused, and is not among the unfinished runs", async () => {
    const store = await open();
    await create(store, "b");
    const { runId, ...lease } = await ownRun(store);
    const data = { status: "paused", usage: noUsage, costUsd: 0, turns: 0 } as const;
    const end = placed(runId, 1, eventDraft("run_end", data));
    await store.journal.append({ ...lease, runId }, { number: 1, at: 2, events: [end] });
    expect(await names(store, { status: "paused" })).toEqual(["a"]);
    const unfinished: string[] = [];
    for await (const run of unfinishedRuns(store.journal)) unfinished.push(run.runId);
    expect(unfinished).toEqual(["run_b"]);
  });

  test("K1: list() and summary() report the standing of a run that its last commit with a standing states", async () => {
    const store = await open();
    const lease = await ownRun(store);
    let number = 1;
    const stand = async (status: RunStanding["status"], ...waitsFor: WaitCause[]): Promise<void> => {
      await store.journal.append(lease, { number, at: ++number, standing: { status, waitsFor } });
    };
    const shown = async (): Promise<unknown> => {
      const summary = await store.journal.summary(lease.runId);
      const listed = await names(store, summary === undefined ? {} : { status: summary.status });
      expect(listed).toEqual(["a"]);
      for (const status of ["pending", "running", "waiting", "paused"] as const)
        if (status !== summary?.status) expect(await names(store, { status })).toEqual([]);
      return [summary?.status, summary?.waitsFor];
    };
    expect(await shown()).toEqual(["running", []]);
    await stand("waiting", "person", "time");
    expect(await shown()).toEqual(["waiting", ["person", "time"]]);
    await store.journal.append(lease, { number, at: ++number });
    expect(await shown()).toEqual(["waiting", ["person", "time"]]);
    await stand("running");
    expect(await shown()).toEqual(["running", []]);
    await stand("paused", "crash_loop");
    expect(await shown()).toEqual(["paused", ["crash_loop"]]);
    await stand("paused");
    expect(await shown()).toEqual(["paused", []]);
    await store.leases.release(lease, { kind: "suspended", wakeAt: null });
    expect(await shown()).toEqual(["paused", []]);
    const body = { type: "resume" } as const;
    await store.mailbox.put({ id: "m", runId: lease.runId, from: "x", at: 9, body });
    expect(await shown()).toEqual(["paused", []]);
  });

  test("K1: a waiting run keeps what it waits for after its release, and waits for a worker once mail arrives", async () => {
    const store = await open();
    const lease = await ownRun(store);
    const waiting: RunStanding = { status: "waiting", waitsFor: ["signal"] };
    await store.journal.append(lease, { number: 1, at: 2, standing: waiting });
    await store.leases.release(lease, { kind: "suspended", wakeAt: null });
    const shown = async (): Promise<unknown> => {
      const summary = await store.journal.summary(lease.runId);
      return { status: summary?.status, waitsFor: summary?.waitsFor };
    };
    expect(await shown()).toEqual(waiting);
    const body = { type: "pause" } as const;
    await store.mailbox.put({ id: "m", runId: lease.runId, from: "x", at: 9, body });
    expect(await shown()).toEqual({ status: "pending", waitsFor: ["worker"] });
  });

  const spend = (turns: number): RunSpend => ({
    usage: { ...noUsage, inputTokens: 10 * turns, outputTokens: turns, costUsd: turns / 8 },
    costUsd: turns / 4,
    unreported: { tokens: 5 * turns, costUsd: turns / 8 },
    turns,
  });

  const spentBy = async (store: Store, runId: RunId): Promise<RunSpend | undefined> => {
    const summary = await store.journal.summary(runId);
    expect((await store.journal.list()).runs[0]).toEqual(summary);
    if (summary === undefined) return undefined;
    const { usage, costUsd, unreported, turns } = summary;
    return { usage, costUsd, unreported, turns };
  };

  test("K3: list() and summary() report the spending of a run that its last commit with `spent` or run_end states", async () => {
    const store = await open();
    const lease = await ownRun(store);
    const { runId } = lease;
    expect(await spentBy(store, runId)).toEqual(nothingSpent);
    const waiting: RunStanding = { status: "waiting", waitsFor: ["person"] };
    await store.journal.append(lease, { number: 1, at: 2, standing: waiting, spent: spend(1) });
    expect(await spentBy(store, runId)).toEqual(spend(1));
    await store.journal.append(lease, { number: 2, at: 3, standing: { status: "running", waitsFor: [] } });
    await store.journal.append(lease, { number: 3, at: 4, spent: spend(2) });
    expect(await spentBy(store, runId)).toEqual(spend(2));
    const { usage, costUsd, unreported: lost, turns } = spend(3);
    const data = { status: "completed", usage, costUsd, turns, lost } as const;
    const end = placed(runId, 1, eventDraft("run_end", data));
    await store.journal.append(lease, { number: 4, at: 5, events: [end] });
    expect(await spentBy(store, runId)).toEqual(spend(3));
    await release(store, lease);
    expect(await spentBy(store, runId)).toEqual(spend(3));
  });

  test("K3: a run that ends and is released in one transaction reports what it has used", async () => {
    const store = await open();
    const lease = await ownRun(store);
    const { usage, costUsd, unreported: lost, turns } = { ...spend(1), costUsd: null };
    const data = { status: "failed", usage, costUsd, turns, lost } as const;
    const commit = { number: 1, at: 5, events: [placed(lease.runId, 1, eventDraft("run_end", data))] };
    await (store.journal.appendAndRelease?.(lease, commit, undefined, { kind: "ended" }) ??
      store.journal.append(lease, commit));
    expect(await spentBy(store, lease.runId)).toEqual({ ...spend(1), costUsd: null });
  });

  test("K3: a refused commit does not change what a run has used", async () => {
    const store = await open();
    const lost = await ownRun(store);
    await store.leases.seize(lost.runId, "w2");
    const late = store.journal.append(lost, { number: 1, at: 2, spent: spend(1) });
    await expect(late).rejects.toMatchObject({ code: "lease_lost" });
    expect(await spentBy(store, lost.runId)).toEqual(nothingSpent);
  });

  test("K2: list() refuses an unknown status and names the nearest one", async () => {
    const store = await open();
    const refused = store.journal.list({ status: "wating" as never });
    await expect(refused).rejects.toMatchObject({
      code: "invalid_argument",
      message: `invalid status "wating" of list(): expected one of ${runSummaryStatuses.join(", ")}; use "waiting"`,
    });
  });

  test("K1: an ended run that can be resumed is listed as completed and not as waiting", async () => {
    const store = await open();
    const lease = await ownRun(store);
    await store.journal.append(lease, { number: 1, at: 2, events: [runEnd(lease.runId, 1)] });
    await store.leases.release(lease, { kind: "suspended", wakeAt: null });
    expect(await names(store, { status: "waiting" })).toEqual([]);
    expect(await names(store, { status: "completed" })).toEqual(["a"]);
  });

  test("collect() deletes runs that ended before a time with their data and keeps visible session entries", async () => {
    const store = await open();
    const lease = await ownRun(store, "old");
    const entry = (id: string, visibility: "pending" | "visible"): SessionChange => ({
      type: "append",
      sessionId,
      agentId,
      entry: {
        type: "session_info",
        id,
        parentId: null,
        at: 1,
        runId: lease.runId,
        taskId: rootTask,
        name: id,
      },
      visibility,
    });
    const hash = await store.contents.put({ runId: lease.runId }, new Uint8Array([1]));
    const events = [runEnd(lease.runId, 1)];
    const sessions = [entry("said", "visible"), entry("unsaid", "pending")];
    await store.journal.append(lease, { number: 1, at: 10, events, sessions });
    await store.leases.release(lease, { kind: "suspended", wakeAt: null });
    const young = await ownRun(store, "young");
    await store.journal.append(young, { number: 1, at: 20, events: [runEnd(young.runId, 1)] });
    await store.leases.release(young, { kind: "ended" });
    await create(store, "unfinished");
    expect(await store.journal.collect({ endedBefore: 10 })).toBe(0);
    expect(await store.journal.collect({ endedBefore: 11 })).toBe(1);
    expect(await names(store)).toEqual(["unfinished", "young"]);
    expect(await store.contents.get({ runId: lease.runId }, hash)).toBeUndefined();
    const left = await store.sessions.read(sessionId, { includeHidden: true });
    expect(left.map((each) => each.entry.id)).toEqual(["said"]);
    expect(await store.journal.collect({ endedBefore: 1e15 })).toBe(1);
  });

  test("collect() keeps the runs that except() returns", async () => {
    const store = await open();
    const runIds: RunId[] = [];
    for (const name of ["a", "b"]) {
      const lease = await ownRun(store, name);
      await store.journal.append(lease, { number: 1, at: 2, events: [runEnd(lease.runId, 1)] });
      await store.leases.release(lease, { kind: "ended" });
      runIds.push(lease.runId);
    }
    expect(await store.journal.collect({ endedBefore: 9, except: () => runIds.slice(0, 1) })).toBe(1);
    expect(await names(store)).toEqual(["a"]);
  });

  test("collect() with `only` deletes those of the given runs that have ended and have no owner", async () => {
    const store = await open();
    const leases: Lease[] = [];
    for (const name of ["a", "b", "c", "d"]) {
      const lease = await ownRun(store, name);
      if (name !== "d")
        await store.journal.append(lease, { number: 1, at: 2, events: [runEnd(lease.runId, 1)] });
      leases.push(lease);
      if (name !== "c") await store.leases.release(lease, { kind: "suspended", wakeAt: null });
    }
    const only = leases.slice(1).map(({ runId }) => runId);
    expect(await store.journal.collect({ endedBefore: 9, only: [] })).toBe(0);
    expect(await store.journal.collect({ endedBefore: 9, only })).toBe(1);
    expect(await names(store)).toEqual(["d", "c", "a"]);
  });

  test("collect() keeps a run that a worker owns and a run with unread mail", async () => {
    const store = await open();
    const lease = await ownRun(store);
    await store.journal.append(lease, { number: 1, at: 2, events: [runEnd(lease.runId, 1)] });
    expect(await store.journal.collect({ endedBefore: 9 })).toBe(0);
    await store.leases.release(lease, { kind: "suspended", wakeAt: null });
    const body = { type: "resume" } as const;
    await store.mailbox.put({ id: "m", runId: lease.runId, from: "x", at: 3, body });
    expect(await store.journal.collect({ endedBefore: 9 })).toBe(0);
    expect(await names(store)).toEqual(["a"]);
  });

  const release = (store: Store, lease: Lease): Promise<void> | undefined =>
    store.leases.release(lease, { kind: "ended" });
}
