import {
  maxRecordBytes,
  type JsonValue,
  type RecordDraft,
  type RecordQuery,
  type Records,
  type StoredRecord,
} from "../../kernel/index.ts";
import type { ContractHarness } from "./contract-harness.ts";

const namespace = "tokens";

function draft(key: string, value: JsonValue = 1, more: Partial<RecordDraft> = {}): RecordDraft {
  return { namespace, key, value, ...more };
}

/** Creates a record that does not exist yet and returns its version. */
async function create(records: Records, record: RecordDraft): Promise<number> {
  const written = await records.put(record, "absent");
  if (written.kind === "conflict") throw new Error(`the record ${record.key} exists already`);
  return written.version;
}

/** Reads all pages of a query and returns the keys. */
async function keysOf(records: Records, query: RecordQuery): Promise<string[]> {
  const keys: string[] = [];
  let { after } = query;
  do {
    const page = await records.list({ ...query, after });
    keys.push(...page.records.map(({ key }) => key));
    after = page.next ?? undefined;
  } while (after !== undefined);
  return keys;
}

/** Reads all pages of a query and returns tenants and keys. */
async function placesOf(records: Records, query: RecordQuery): Promise<[string | null, string][]> {
  const places: [string | null, string][] = [];
  let { after } = query;
  do {
    const page = await records.list({ ...query, after });
    places.push(...page.records.map(({ tenantId, key }): [string | null, string] => [tenantId, key]));
    after = page.next ?? undefined;
  } while (after !== undefined);
  return places;
}

/** Adds 1 to the value of a record until no other writer interferes. Returns the number of attempts. */
async function increment(records: Records, key: string): Promise<number> {
  for (let attempts = 1; ; attempts++) {
    const current = await records.get({ namespace, key });
    const value = Number(current?.value ?? 0) + 1;
    const written = await records.put(draft(key, value), current?.version ?? "absent");
    if (written.kind === "stored") return attempts;
  }
}

/** Tests of the rules that every implementation of `Records` must keep. */
export function recordContract(harness: ContractHarness): void {
  compareAndSet(harness);
  reading(harness);
  refusing(harness);
}

function compareAndSet({ test, expect, open, reopen }: ContractHarness): void {
  test("R1: get() returns the value, the due time and the version that put() stored", async () => {
    const { records } = await open();
    const value = { list: [1, "two", null, { deep: true }], text: "ü\u0000\u{1f600}" };
    const version = await create(records, draft("a", value, { dueAt: 7, tenantId: "acme" }));
    const stored: StoredRecord = { namespace, key: "a", tenantId: "acme", value, dueAt: 7, version };
    expect(await records.get({ namespace, key: "a", tenantId: "acme" })).toEqual(stored);
    expect(await records.get({ namespace, key: "b", tenantId: "acme" })).toBeUndefined();
  });

  test("R1: a change to an object that was put, or that get() returned, does not change the record", async () => {
    const { records } = await open();
    const value = { list: [1] };
    await create(records, draft("a", value));
    value.list.push(2);
    const first = await records.get({ namespace, key: "a" });
    if (first !== undefined) (first.value as { list: number[] }).list.push(3);
    expect((await records.get({ namespace, key: "a" }))?.value).toEqual({ list: [1] });
  });

  test("R2: put() with the current version replaces value and due time, and an absent due time removes it", async () => {
    const { records } = await open();
    const first = await create(records, draft("a", 1, { dueAt: 5 }));
    const second = await records.put(draft("a", 2), first);
    expect(second.kind).toBe("stored");
    const { value, dueAt } = (await records.get({ namespace, key: "a" })) ?? {};
    expect([value, dueAt]).toEqual([2, null]);
    expect(await records.nextDueAt(namespace)).toBeUndefined();
  });

  test("R2: put() with another version, or with `absent` for a record that exists, changes nothing and returns the record", async () => {
    const { records } = await open();
    const version = await create(records, draft("a"));
    const current = await records.get({ namespace, key: "a" });
    for (const expected of ["absent", version + 1] as const)
      expect(await records.put(draft("a", 2), expected)).toEqual({ kind: "conflict", current });
    expect(await records.put(draft("b", 2), version)).toEqual({ kind: "conflict", current: undefined });
    expect(await records.get({ namespace, key: "a" })).toEqual(current);
    expect(await records.get({ namespace, key: "b" })).toBeUndefined();
  });

  test("R2: of two connections that put the same record with the same expectation at once, exactly one succeeds", async () => {
    const [one, other] = [(await open()).records, (await reopen()).records];
    let expected: number | "absent" = "absent";
    for (let round = 0; round < 20; round++) {
      const outcomes = await Promise.all([
        one.put(draft("a", `one ${round}`), expected),
        other.put(draft("a", `other ${round}`), expected),
      ]);
      expect(outcomes.map(({ kind }) => kind).toSorted()).toEqual(["conflict", "stored"]);
      const current = await one.get({ namespace, key: "a" });
      expect(await other.get({ namespace, key: "a" })).toEqual(current);
      expected = current?.version ?? "absent";
    }
  });

  test("R2: a counter that two connections increment with compare-and-set loses no increment", async () => {
    const [one, other] = [(await open()).records, (await reopen()).records];
    const work = Array.from({ length: 10 }, () => [increment(one, "n"), increment(other, "n")]).flat();
    await Promise.all(work);
    expect((await one.get({ namespace, key: "n" }))?.value).toBe(20);
  });

  test("R3: delete() deletes a record with the expected version and leaves a record with another version", async () => {
    const { records } = await open();
    const version = await create(records, draft("a"));
    const current = await records.get({ namespace, key: "a" });
    const key = { namespace, key: "a" };
    expect(await records.delete(key, version + 1)).toEqual({ kind: "conflict", current });
    expect(await records.delete(key, version)).toEqual({ kind: "deleted" });
    expect(await records.get(key)).toBeUndefined();
    expect(await records.delete(key, version)).toEqual({ kind: "conflict", current: undefined });
  });

  test("R4: a record that is deleted and created again has a new version, so that an old version never matches", async () => {
    const { records } = await open();
    const versions: number[] = [];
    for (let round = 0; round < 5; round++) {
      const version = await create(records, draft("a", "same"));
      versions.push(version);
      await records.delete({ namespace, key: "a" }, version);
    }
    await create(records, draft("a", "same"));
    expect(new Set(versions).size).toBe(5);
    for (const version of versions)
      expect((await records.put(draft("a", "late"), version)).kind).toBe("conflict");
  });
}

function reading({ test, expect, open }: ContractHarness): void {
  test("R5: list() returns the records with a prefix in ascending order of their keys, page by page", async () => {
    const { records } = await open();
    const keys = ["b/2", "a", "b/10", "b", "B/1", "b0", "b/~", "c"];
    for (const key of keys) await create(records, draft(key, key));
    for (const limit of [1, 2, 3, 100]) {
      expect(await keysOf(records, { namespace, limit })).toEqual(keys.toSorted());
      expect(await keysOf(records, { namespace, limit, prefix: "b/" })).toEqual(["b/10", "b/2", "b/~"]);
    }
    expect((await records.list({ namespace, prefix: "b/" })).records.map(({ value }) => value)).toEqual([
      "b/10",
      "b/2",
      "b/~",
    ]);
    expect(await records.list({ namespace, prefix: "x" })).toEqual({ records: [], next: null });
  });

  test("R5: list() returns each record that stays on exactly one page if records are written and deleted between pages", async () => {
    const { records } = await open();
    for (const key of ["a", "c", "e", "g"]) await create(records, draft(key));
    const first = await records.list({ namespace, limit: 2 });
    const read = first.records.map(({ key }) => key);
    await records.delete({ namespace, key: "a" }, first.records[0]?.version ?? 0);
    for (const key of ["b", "d"]) await create(records, draft(key));
    read.push(...(await keysOf(records, { namespace, limit: 2, after: first.next ?? "" })));
    for (const key of ["c", "e", "g"]) expect(read.filter((each) => each === key)).toEqual([key]);
  });

  test("R5: list() with allTenants returns the records of every tenant once, ordered by tenant and key, page by page", async () => {
    const { records } = await open();
    const places: readonly [string | null, string][] = [
      [null, "a"],
      [null, "x/b"],
      ["-", "a"],
      ["acme", "a"],
      ["acme", "x/c"],
      ["zen ü", "x/a"],
    ];
    for (const [tenantId, key] of places.toReversed()) await create(records, draft(key, 1, { tenantId }));
    await create(records, { ...draft("a"), namespace: "schedules", tenantId: "acme" });
    for (const limit of [1, 2, 3, 100]) {
      expect(await placesOf(records, { namespace, allTenants: true, limit })).toEqual(places);
      expect(await placesOf(records, { namespace, allTenants: true, limit, prefix: "x/" })).toEqual(
        places.filter(([, key]) => key.startsWith("x/")),
      );
    }
    const misused: readonly RecordQuery[] = [
      { namespace, allTenants: true, tenantId: "acme" },
      { namespace, allTenants: true, after: "a" },
      { namespace, allTenants: true, after: 'a "' },
    ];
    for (const query of misused)
      await expect(records.list(query)).rejects.toMatchObject({ code: "invalid_argument" });
  });

  test("R6: due() returns the records of all tenants that are due, the earliest first, up to the limit", async () => {
    const { records } = await open();
    const due: readonly [string, number, string | null][] = [
      ["late", 30, null],
      ["first", 10, "acme"],
      ["second", 20, null],
      ["future", 41, null],
    ];
    for (const [key, dueAt, tenantId] of due) await create(records, draft(key, 1, { dueAt, tenantId }));
    await create(records, draft("never"));
    const keys = (found: readonly StoredRecord[]): string[] => found.map(({ key }) => key);
    expect(keys(await records.due(namespace, 40))).toEqual(["first", "second", "late"]);
    expect(keys(await records.due(namespace, 20, 1))).toEqual(["first"]);
    expect(keys(await records.due(namespace, 9))).toEqual([]);
    expect(keys(await records.due("schedules", 99))).toEqual([]);
  });

  test("R6: nextDueAt() returns the earliest due time of the namespace and changes with the records", async () => {
    const { records } = await open();
    expect(await records.nextDueAt(namespace)).toBeUndefined();
    const late = await create(records, draft("late", 1, { dueAt: 30 }));
    const early = await create(records, draft("early", 1, { dueAt: 10, tenantId: "acme" }));
    await create(records, draft("never"));
    expect(await records.nextDueAt(namespace)).toBe(10);
    expect(await records.nextDueAt(namespace, 9)).toBe(10);
    expect(await records.nextDueAt(namespace, 10)).toBe(30);
    expect(await records.nextDueAt(namespace, 30)).toBeUndefined();
    await records.delete({ namespace, key: "early", tenantId: "acme" }, early);
    expect(await records.nextDueAt(namespace)).toBe(30);
    await records.put(draft("late", 1, { dueAt: 50 }), late);
    expect(await records.nextDueAt(namespace)).toBe(50);
    expect(await records.nextDueAt("schedules")).toBeUndefined();
  });

  test("R8: records under the same key in other namespaces and of other tenants are independent", async () => {
    const { records } = await open();
    const places = [
      { namespace, key: "a", tenantId: null },
      { namespace, key: "a", tenantId: "acme" },
      { namespace, key: "a", tenantId: "-" },
      { namespace: "schedules", key: "a", tenantId: "acme" },
    ];
    const versions = await Promise.all(
      places.map((place, index) => create(records, { ...place, value: index })),
    );
    await records.delete({ namespace, key: "a", tenantId: "acme" }, versions[1] ?? 0);
    const values = await Promise.all(places.map(async (place) => (await records.get(place))?.value));
    expect(values).toEqual([0, undefined, 2, 3]);
    expect((await records.list({ namespace, tenantId: "-" })).records.length).toBe(1);
    expect((await records.list({ namespace, tenantId: "acme" })).records).toEqual([]);
  });
}

function refusing({ test, expect, open, reopen }: ContractHarness): void {
  test("R7: an invalid namespace, key, tenant, version, time, limit or cursor is refused and nothing is written", async () => {
    const { records } = await open();
    const invalid: readonly (() => Promise<unknown>)[] = [
      ...["", "Upper", "1", "a b", "x".repeat(65)].map(
        (name) => () => records.put({ ...draft("a"), namespace: name }, "absent"),
      ),
      ...["", "a b", "ü", "a\n", "x".repeat(513)].map((key) => () => records.put(draft(key), "absent")),
      ...["", "x".repeat(1_025)].map((tenantId) => () => records.put(draft("a", 1, { tenantId }), "absent")),
      ...[-1, 1.5, Number.NaN, Infinity].flatMap((number) => [
        () => records.put(draft("a", 1, { dueAt: number }), "absent"),
        () => records.put(draft("a"), number),
        () => records.delete({ namespace, key: "a" }, number),
        () => records.due(namespace, number),
        () => records.due(namespace, 1, number),
        () => records.nextDueAt(namespace, number),
        () => records.list({ namespace, limit: number }),
      ]),
      () => records.list({ namespace, limit: 0 }),
      () => records.list({ namespace, after: "ü" }),
      () => records.list({ namespace, prefix: "a b" }),
      () => records.nextDueAt("No"),
      () => records.get({ namespace: "no!", key: "a" }),
    ];
    for (const call of invalid) await expect(call()).rejects.toMatchObject({ code: "invalid_argument" });
    expect((await records.list({ namespace })).records).toEqual([]);
  });

  test("R7: an option that does not exist is refused with the nearest one", async () => {
    const { records } = await open();
    const misspelt = { ...draft("a"), duAt: 5 };
    await expect(records.put(misspelt, "absent")).rejects.toMatchObject({
      code: "invalid_argument",
      message: 'unknown option "duAt" of a record: use "dueAt"',
    });
  });

  test("R7: a value that is not JSON, or larger than the limit, is refused and the record keeps its value", async () => {
    const { records } = await open();
    const version = await create(records, draft("a"));
    const notJson = { when: Number.NaN };
    await expect(records.put(draft("a", notJson), version)).rejects.toMatchObject({ code: "not_json" });
    const largest = "x".repeat(maxRecordBytes - 2);
    await expect(records.put(draft("a", `${largest}x`), version)).rejects.toMatchObject({
      code: "too_large",
    });
    await expect(records.put(draft("a", "ü".repeat(maxRecordBytes / 2)), version)).rejects.toMatchObject({
      code: "too_large",
    });
    expect((await records.get({ namespace, key: "a" }))?.value).toBe(1);
    expect((await records.put(draft("a", largest), version)).kind).toBe("stored");
  });

  test("R9: onChange() announces a write and a deletion of a record with its namespace, and no conflict", async () => {
    const store = await open();
    const { records } = store;
    const seen: unknown[] = [];
    const forget = store.onChange((change) => seen.push(change));
    const version = await create(records, draft("a"));
    await records.put(draft("a"), "absent");
    await records.delete({ namespace, key: "a" }, version);
    // Listeners are called in a microtask.
    await Promise.resolve();
    forget();
    const change = { kind: "record", namespace };
    expect(seen).toEqual([change, change]);
  });

  test("R10: put() with maxRecords limits the records of a tenant in a namespace, and replaces existing records", async () => {
    const [one, other] = [(await open()).records, (await reopen()).records];
    const of = (key: string, tenantId: string | null = "acme") => ({ ...draft(key), tenantId });
    const outcomes = await Promise.all(
      Array.from({ length: 12 }, (_each, at) => (at % 2 === 0 ? one : other).put(of(`k${at}`), "absent", 5)),
    );
    const full = { kind: "conflict", current: undefined, isFull: true };
    expect(outcomes.filter(({ kind }) => kind === "conflict")).toEqual(Array.from({ length: 7 }, () => full));
    const { records } = await one.list({ namespace, tenantId: "acme" });
    expect(records.length).toBe(5);
    const [first] = records;
    if (first === undefined) throw new Error("the list is empty");
    expect((await other.put(of(first.key), first.version, 5)).kind).toBe("stored");
    expect(await other.put(of("new"), "absent", 5)).toEqual(full);
    expect((await other.put(of("new", "zen"), "absent", 5)).kind).toBe("stored");
    expect((await other.put({ ...of("new"), namespace: "others" }, "absent", 5)).kind).toBe("stored");
    expect((await other.put(of("new"), "absent", 6)).kind).toBe("stored");
    await expect(one.put(of("more"), "absent", 0)).rejects.toMatchObject({ code: "invalid_argument" });
  });

  test("records written through one connection are visible through another at once", async () => {
    const [one, other] = [(await open()).records, (await reopen()).records];
    const version = await create(one, draft("a", "hello", { dueAt: 3 }));
    expect((await other.get({ namespace, key: "a" }))?.value).toBe("hello");
    expect((await other.due(namespace, 3)).length).toBe(1);
    await other.delete({ namespace, key: "a" }, version);
    expect(await one.get({ namespace, key: "a" })).toBeUndefined();
  });
}
