import {
  agentNameOf,
  eventDraft,
  formatAgentId,
  formatSessionId,
  noUsage,
  type RunPage,
  type RunQuery,
  type RunRecord,
  type Store,
} from "../../kernel/index.ts";
import type { ContractHarness } from "./contract-harness.ts";
import { ownRun, placed, runRecord } from "./store-fixtures.ts";

/** Tests of the filters of `list` that every implementation of `Journal` must keep. */
export function runFilterContract({ test, expect, open }: ContractHarness): void {
  const create = async (store: Store, name: string, more: Partial<RunRecord> = {}): Promise<RunRecord> => {
    const record = { ...runRecord(name), ...more };
    await store.journal.create(record, { number: 0, at: 1 });
    return record;
  };

  const namesOf = ({ runs }: RunPage): string[] => runs.map(({ runId }) => runId.slice("run_".length));

  const names = async (store: Store, query: RunQuery): Promise<string[]> =>
    namesOf(await store.journal.list(query));

  test("K2: list() selects runs by user, and null selects the runs without a user", async () => {
    const store = await open();
    await create(store, "a", { userId: "ann" });
    await create(store, "b", { userId: "bob" });
    await create(store, "c");
    await create(store, "d", { userId: "ann", tenantId: "acme" });
    expect(await names(store, { userId: "ann" })).toEqual(["d", "a"]);
    expect(await names(store, { userId: "ann", tenantId: "acme" })).toEqual(["d"]);
    expect(await names(store, { userId: "ann", tenantId: null })).toEqual(["a"]);
    expect(await names(store, { userId: null })).toEqual(["c"]);
    expect(await names(store, { userId: "" })).toEqual([]);
  });

  test("K2: list() selects runs by kind", async () => {
    const store = await open();
    await create(store, "a");
    await create(store, "b", { kind: "compaction", sessionId: formatSessionId("compacted") });
    expect(await names(store, { kind: "compaction" })).toEqual(["b"]);
    expect(await names(store, { kind: "invocation" })).toEqual(["a"]);
  });

  test("K2: list() selects runs by the top-level strings of their metadata, all of which must match", async () => {
    const store = await open();
    await create(store, "a", { metadata: { ticket: "42", team: "red" } });
    await create(store, "b", { metadata: { ticket: "42", team: "blue" } });
    await create(store, "c", { metadata: { ticket: 42, nested: { ticket: "42" } } });
    await create(store, "d", { metadata: { "": "", 'it\'s "here"': "%_\\" } });
    expect(await names(store, { metadata: { ticket: "42" } })).toEqual(["b", "a"]);
    expect(await names(store, { metadata: { ticket: "42", team: "red" } })).toEqual(["a"]);
    expect(await names(store, { metadata: { team: "red" }, status: "pending" })).toEqual(["a"]);
    expect(await names(store, { metadata: { team: "green" } })).toEqual([]);
    expect(await names(store, { metadata: { "": "" } })).toEqual(["d"]);
    expect(await names(store, { metadata: { 'it\'s "here"': "%_\\" } })).toEqual(["d"]);
    expect(await names(store, { metadata: { constructor: "x" } })).toEqual([]);
    expect(await names(store, { metadata: {} })).toEqual(["d", "c", "b", "a"]);
  });

  test("K2: a deleted run is in no list by metadata, user, kind or time", async () => {
    const store = await open();
    const { runId } = await create(store, "a", { kind: "compaction", userId: "ann", metadata: { x: "1" } });
    await store.journal.delete(runId);
    for (const query of [
      { metadata: { x: "1" } },
      { userId: "ann" },
      { kind: "compaction" },
      { createdAfter: 0 },
    ] as const)
      expect(await names(store, query)).toEqual([]);
  });

  test("K2: list() with a time returns the runs created between both times, newest createdAt first, page by page", async () => {
    const store = await open();
    // Workers whose clocks differ store runs in another order than that of `createdAt`.
    const times = { a: 10, b: 30, c: 20, d: 20, e: 40 };
    for (const [name, createdAt] of Object.entries(times)) await create(store, name, { createdAt });
    expect(await names(store, { createdAfter: 10 })).toEqual(["e", "b", "d", "c"]);
    expect(await names(store, { createdBefore: 30 })).toEqual(["d", "c", "a"]);
    expect(await names(store, { createdAfter: 10, createdBefore: 40 })).toEqual(["b", "d", "c"]);
    expect(await names(store, { createdAfter: 20, createdBefore: 30 })).toEqual([]);
    const seen: string[] = [];
    let after: string | null = null;
    do {
      const page: RunPage = await store.journal.list({
        createdAfter: 0,
        limit: 2,
        status: ["pending", "completed"],
        ...(after !== null && { after }),
      });
      seen.push(...namesOf(page));
      after = page.next;
    } while (after !== null);
    expect(seen).toEqual(["e", "b", "d", "c", "a"]);
  });

  test("K2: list() returns the same runs as a filter over all runs, for combinations of filters and pages", async () => {
    const store = await open();
    const records: RunRecord[] = [];
    const bob = formatAgentId({ name: "bob" });
    const talk = formatSessionId("talk");
    for (let index = 0; index < 24; index++) {
      const more: Partial<RunRecord> = {
        createdAt: 100 + ((index * 7) % 24),
        userId: [null, "ann", "bob"][index % 3] ?? null,
        tenantId: index % 4 === 0 ? "acme" : null,
        metadata: index % 2 === 0 ? { team: index % 6 === 0 ? "red" : "blue" } : {},
        startAt: index % 8 === 0 ? 9_999 : null,
      };
      // S5: a compaction has its session for itself.
      const compacted =
        index % 5 === 0 && ({ kind: "compaction", sessionId: formatSessionId(`c${index}`) } as const);
      const agentId = index % 2 === 0 ? bob : formatAgentId({ name: "bob", key: "k" });
      const place = { ...(index % 3 === 0 && { agentId }), ...(index % 7 === 0 && { sessionId: talk }) };
      records.push(await create(store, String(index), { ...more, ...place, ...compacted }));
    }
    const filters: readonly RunQuery[] = [
      { userId: "ann" },
      { userId: null },
      { tenantId: "acme" },
      { kind: "compaction" },
      { createdAfter: 106, createdBefore: 118 },
      { metadata: { team: "red" } },
      { agentId: bob },
      { agentName: "bob" },
      { sessionId: talk },
      { status: "pending" },
    ];
    for (const one of filters)
      for (const other of filters) {
        const query = { ...one, ...other };
        const expected = records.filter((record) => fits(record, query));
        const sorted = expected.toReversed().toSorted((first, second) => second.createdAt - first.createdAt);
        const found: string[] = [];
        for (let after: string | null = ""; after !== null;) {
          const page: RunPage = await store.journal.list({ ...query, limit: 3, ...(after && { after }) });
          found.push(...page.runs.map(({ runId }) => runId));
          after = page.next;
        }
        expect({ query, found }).toEqual({ query, found: sorted.map(({ runId }) => runId) });
        expect({ query, count: await store.journal.count(query) }).toEqual({ query, count: sorted.length });
      }
  });

  const spent = async (
    store: Store,
    name: string,
    costUsd: number | null,
    more: Partial<RunRecord> = {},
  ): Promise<void> => {
    await create(store, name, more);
    const [lease] = await store.leases.claim({ workerId: "w1", limit: 1, now: 1 });
    if (lease === undefined) throw new Error(`run ${name} cannot be claimed`);
    const data = { status: "failed", usage: noUsage, costUsd, turns: 1 } as const;
    const events = [placed(lease.runId, 0, eventDraft("run_end", data))];
    await store.journal.append(lease, { number: 1, at: 100 + Number(name), events });
    await store.leases.release(lease, { kind: "ended" });
  };

  test("K2: list() sorts runs by cost, the highest first and unknown costs last, page by page", async () => {
    const store = await open();
    await store.leases.enlist("w1");
    const costs = [0.5, 2, null, 0, 2, 0.000_000_1, 12.25];
    for (const [index, costUsd] of costs.entries())
      await spent(store, String(index), costUsd, { createdAt: 10, userId: index < 5 ? "ann" : "bob" });
    const all: string[] = [];
    for (let after: string | null = ""; after !== null;) {
      const page: RunPage = await store.journal.list({
        sort: "costliest",
        limit: 2,
        ...(after && { after }),
      });
      all.push(...namesOf(page));
      after = page.next;
    }
    expect(all).toEqual(["6", "4", "1", "0", "5", "3", "2"]);
    expect(await names(store, { sort: "costliest", userId: "ann" })).toEqual(["4", "1", "0", "3", "2"]);
    expect(await names(store, { sort: "costliest", status: "failed", limit: 1 })).toEqual(["6"]);
  });

  test("K2: list() and count() select runs by cost and by the time of their end", async () => {
    const store = await open();
    await store.leases.enlist("w1");
    for (const [index, costUsd] of [0.5, 2, null, 0].entries()) await spent(store, String(index), costUsd);
    await create(store, "open");
    const cases: readonly (readonly [RunQuery, readonly string[]])[] = [
      [{ costAbove: 0.5 }, ["1"]],
      [{ costBelow: 2 }, ["open", "3", "0"]],
      [{ costAbove: 0, costBelow: 2 }, ["0"]],
      [{ costAbove: -5 }, ["open", "3", "1", "0"]],
      [{ endedAfter: 101 }, ["3", "2"]],
      [{ endedBefore: 101 }, ["0"]],
      [{ endedAfter: 100, endedBefore: 103, costAbove: 1 }, ["1"]],
      [{ endedAfter: 0, sort: "costliest" }, ["1", "0", "3", "2"]],
    ];
    for (const [query, expected] of cases) {
      expect({ query, found: await names(store, query) }).toEqual({ query, found: expected });
      const { sort: _sort, ...counted } = query;
      expect(await store.journal.count(counted)).toBe(expected.length);
    }
    expect(await store.journal.count({ limit: 3 })).toBe(3);
  });

  test("K5: changes() returns the present state of each run that changed after the given position", async () => {
    const store = await open();
    await create(store, "early");
    let { runs, next } = await store.journal.changes();
    expect(runs).toEqual([]);
    const changed = async (name: string): Promise<unknown> => {
      ({ runs, next } = await store.journal.changes(next));
      const run = runs.find(({ runId }) => runId === `run_${name}`);
      return run && [run.status, run.updatedAt];
    };
    await create(store, "a");
    expect(await changed("a")).toEqual(["pending", 1]);
    const lease = await ownRun(store, "b");
    expect(await changed("b")).toEqual(["running", 1]);
    await store.journal.append(lease, { number: 1, at: 77 });
    expect(await changed("b")).toEqual(["running", 77]);
    await store.leases.release(lease, { kind: "suspended", wakeAt: null });
    expect(await changed("b")).toEqual(["waiting", 77]);
    await store.mailbox.put({ id: "m", runId: lease.runId, from: "x", at: 1, body: { type: "pause" } });
    expect(await changed("b")).toEqual(["pending", 77]);
    await store.journal.delete(lease.runId);
    expect(await changed("b")).toBeUndefined();
    await create(store, "c");
    expect(await changed("c")).toEqual(["pending", 1]);
  });

  test("K5: changes() returns the runs that a dead worker left", async () => {
    const store = await open();
    const lease = await ownRun(store, "a");
    const { next } = await store.journal.changes();
    await store.leases.dismiss("w1");
    const { runs } = await store.journal.changes(next);
    expect(runs.find(({ runId }) => runId === lease.runId)?.status).toBe("pending");
  });

  test("K5: changes() refuses a position that no call has returned", async () => {
    const store = await open();
    for (const position of ["", "x", "-1", "1.5", 7 as unknown as string])
      await expect(store.journal.changes(position)).rejects.toMatchObject({ code: "invalid_argument" });
  });

  const bad: readonly (readonly [what: string, query: object])[] = [
    ["NaN as createdAfter", { createdAfter: Number.NaN }],
    ["Infinity as createdBefore", { createdBefore: Infinity }],
    ["a text as createdAfter", { createdAfter: "yesterday" }],
    ["a number as userId", { userId: 7 }],
    ["an object as tenantId", { tenantId: {} }],
    ["an unknown kind", { kind: "fork" }],
    ["a text as metadata", { metadata: "team" }],
    ["an array as metadata", { metadata: ["team"] }],
    ["null as metadata", { metadata: null }],
    ["a number in metadata", { metadata: { team: 1 } }],
    ["a string of 1 MB in metadata", { metadata: { team: "x".repeat(1_000_000) } }],
    ["half of a surrogate pair in metadata", { metadata: { team: "\uD800" } }],
    ["NaN as endedAfter", { endedAfter: Number.NaN }],
    ["a text as costAbove", { costAbove: "1" }],
    ["an unknown order", { sort: "cheapest" }],
    ["a cursor without a time", { after: "5" }],
    ["a cursor of the newest runs in the order of costs", { sort: "costliest", after: "5@7" }],
    ["a cursor of the costliest runs in the order of time", { after: "5$7" }],
  ];
  for (const [what, query] of bad)
    test(`K2: list() refuses the filter ${what}`, async () => {
      const store = await open();
      const refused = store.journal.list(query);
      await expect(refused).rejects.toMatchObject({ code: "invalid_argument" });
    });
}

function fits(record: RunRecord, query: RunQuery): boolean {
  const { createdAfter = 0, createdBefore = Infinity, metadata = {} } = query;
  return (
    record.createdAt > createdAfter &&
    record.createdAt < createdBefore &&
    (query.userId === undefined || record.userId === query.userId) &&
    (query.tenantId === undefined || record.tenantId === query.tenantId) &&
    (query.kind === undefined || record.kind === query.kind) &&
    (query.agentId === undefined || record.agentId === query.agentId) &&
    (query.agentName === undefined || agentNameOf(record.agentId) === query.agentName) &&
    (query.sessionId === undefined || record.sessionId === query.sessionId) &&
    Object.entries(metadata).every(([name, value]) => record.metadata[name] === value)
  );
}
