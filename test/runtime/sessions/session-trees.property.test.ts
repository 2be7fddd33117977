import fc from "fast-check";
import { expect, test } from "vitest";
import {
  Fault,
  formatRunId,
  formatTaskId,
  leafOf,
  pathTo,
  rootLeafOf,
  sessionContext,
  userMessage,
  type EntryVisibility,
  type SessionChange,
  type SessionEntry,
  type Store,
} from "../../../src/kernel/index.ts";
import { memoryStore, sha256 } from "../../../src/runtime/index.ts";
import { agentId, sessionId } from "../../../src/testing/contracts/store-fixtures.ts";
import { propertyRuns } from "../../effort.ts";
import { removeStoresAfterEach, twoStores } from "../two-stores.ts";

removeStoresAfterEach();

const names = ["a", "b", "c", "d", "e", "x/0", "x/1", "x/2", "x/3"];
const name = fc.constantFrom(...names);
const runs = [formatRunId("a"), formatRunId("b")];
const step = fc.record({
  kind: fc.constantFrom("message", "message", "message", "leaf", "compaction", "label", "reveal", "remove"),
  id: name,
  other: name,
  atLeaf: fc.boolean(),
  task: fc.nat(1),
  run: fc.nat(1),
  visibility: fc.constantFrom<EntryVisibility[]>("visible", "visible", "visible", "pending", "hidden"),
});
type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;

function changeOf({ kind, id, other, atLeaf, task, run, visibility }: Step): SessionChange {
  const runId = runs[run] as (typeof runs)[number];
  if (kind === "reveal" || kind === "remove") return { type: kind, sessionId, runId };
  const base = { id, parentId: atLeaf ? null : other, at: 1, runId, taskId: formatTaskId(task) };
  const entry: SessionEntry =
    kind === "leaf"
      ? { ...base, type: "leaf", targetId: other }
      : kind === "label"
        ? { ...base, type: "label", targetId: other, label: "x" }
        : kind === "compaction"
          ? { ...base, type: "compaction", summary: id, firstKeptEntryId: other, tokensBefore: 1 }
          : { ...base, type: "message", message: userMessage(id) };
  return {
    type: "append",
    sessionId,
    agentId,
    entry,
    visibility,
    ...(atLeaf && { atLeaf }),
  };
}

async function compareWithOracle({ sessions }: Store): Promise<void> {
  const entries = (await sessions.read(sessionId)).map(({ entry }) => entry);
  const found = await sessions.find(sessionId);
  expect(found?.leafId ?? null).toBe(rootLeafOf(entries));
  for (const [ofChild, leafId] of [
    [false, rootLeafOf(entries)],
    [true, leafOf(entries)],
  ] as const) {
    const path = await sessions.readPath(sessionId, { ofChild });
    expect(path).toEqual({ leafId, entries: pathTo(entries, leafId) ?? [] });
    const short = await sessions.readPath(sessionId, { ofChild, from: "compaction" });
    expect(sessionContext(short?.entries ?? [])).toEqual(sessionContext(path?.entries ?? []));
  }
  for (const id of names) {
    const expected = pathTo(entries, id);
    const path = await sessions.readPath(sessionId, { leafId: id });
    expect(path?.entries).toEqual(expected);
  }
  const all = await sessions.read(sessionId, { includeHidden: true });
  const unseen = await sessions.read(sessionId, { onlyUnseen: true });
  expect(unseen).toEqual(all.filter(({ visibility }) => visibility !== "visible"));
  expect(found?.entries ?? 0).toBe(all.length);
}

test.each(twoStores)(
  "N2, N5: after any changes, current entry and paths of a %s store are those that a scan of all entries finds",
  async (_name, prepare) => {
    const open = await prepare();
    const store = await open();
    const property = fc.asyncProperty(fc.array(step, { maxLength: 14 }), async (steps) => {
      await store.sessions.delete(sessionId);
      for (const each of steps)
        await store.sessions.apply([changeOf(each)]).catch((error: unknown) => {
          if (Fault.from(error).code !== "not_found") throw error;
        });
      await compareWithOracle(store);
    });
    await expect(fc.assert(property, { numRuns: propertyRuns(1_000) })).resolves.toBeUndefined();
    await store.close();
  },
);

const value = fc.oneof(
  fc.string(),
  fc.constantFrom<unknown>(null, undefined, NaN, Infinity, -0, 1n, "", "\0", "\ud800", {}, [], Symbol("x")),
  fc.double(),
  fc.integer(),
  fc.jsonValue(),
);
const types = ["message", "leaf", "label", "compaction", "custom", "session_info", "branch_summary", "poem"];
const fuzzed = fc
  .record(
    {
      type: fc.oneof({ weight: 9, arbitrary: fc.constantFrom(...types) }, value),
      id: fc.oneof({ weight: 4, arbitrary: name }, value),
      parentId: fc.oneof({ weight: 4, arbitrary: fc.constant(null) }, { weight: 2, arbitrary: name }, value),
      at: fc.oneof({ weight: 4, arbitrary: fc.nat() }, value),
      runId: fc.oneof({ weight: 4, arbitrary: fc.constantFrom(null, ...runs) }, value),
      taskId: fc.oneof({ weight: 4, arbitrary: fc.constantFrom(null, "t0", "t1") }, value),
      message: fc.oneof({ weight: 2, arbitrary: fc.constant(userMessage("hi")) }, value),
      targetId: fc.oneof(name, value),
      label: value,
      summary: fc.oneof(fc.string(), value),
      firstKeptEntryId: fc.oneof(name, value),
      fromId: fc.oneof(name, value),
      tokensBefore: fc.oneof(fc.nat(), value),
      customType: fc.oneof(fc.string({ minLength: 1 }), value),
      data: value,
      name: fc.oneof(fc.string(), value),
      extra: value,
    },
    { requiredKeys: ["type", "id", "parentId", "at", "runId", "taskId"] },
  )
  .map((entry) => entry as unknown as SessionEntry);

test.each(twoStores)(
  "a random session entry is stored unchanged or refused with a fault that says why, in a %s store",
  async (_name, prepare) => {
    const open = await prepare();
    const store = await open();
    const twin = memoryStore({ hash: sha256 });
    const codes = new Map<string, number>();
    const apply = ({ sessions }: Store, entry: SessionEntry): Promise<string> =>
      sessions.apply([{ type: "append", sessionId, agentId, entry, visibility: "visible" }]).then(
        () => "stored",
        (error: unknown) => Fault.from(error).code,
      );
    await fc.assert(
      fc.asyncProperty(fuzzed, async (entry) => {
        await Promise.all([store, twin].map((each) => each.sessions.delete(sessionId)));
        const outcome = await apply(store, entry);
        codes.set(outcome, (codes.get(outcome) ?? 0) + 1);
        expect(await apply(twin, entry)).toBe(outcome);
        const read = await store.sessions.read(sessionId);
        expect(["stored", "invalid_argument", "not_json", "not_found"]).toContain(outcome);
        expect(read.map((each) => each.entry)).toEqual(
          outcome === "stored" ? [JSON.parse(JSON.stringify(entry)) as SessionEntry] : [],
        );
      }),
      { numRuns: propertyRuns(10_000) },
    );
    expect(codes.get("stored") ?? 0).toBeGreaterThan(0);
    await store.close();
  },
);
