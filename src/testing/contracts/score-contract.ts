import {
  maxScores,
  type RunQuery,
  type ScoreDraft,
  type Store,
  type TenantScope,
} from "../../kernel/index.ts";
import type { ContractHarness } from "./contract-harness.ts";
import { agentId, ownRun, rootTask, runEnd, runRecord } from "./store-fixtures.ts";

/** Tests of the rules that every implementation of `Scores` must keep. */
export function scoreContract({ test, expect, open }: ContractHarness): void {
  const { runId } = runRecord();

  const score = (more: Partial<ScoreDraft> = {}): ScoreDraft => ({
    name: "thumbs",
    value: 1,
    by: "ann",
    comment: null,
    at: 10,
    ...more,
  });

  const create = async (store: Store, name: string, scope: Partial<TenantScope> = {}): Promise<void> => {
    const record = { ...runRecord(name), ...scope };
    await store.journal.create(record, { number: 0, at: 1 });
  };

  const names = async (store: Store, query: RunQuery): Promise<string[]> =>
    (await store.journal.list(query)).runs.map((run) => run.runId.slice("run_".length));

  const fault = (call: Promise<unknown>): Promise<string> =>
    call.then(
      () => "no fault",
      (error: { readonly code: string }) => error.code,
    );

  test("Z1: a later score of the same name and author replaces the former one, and an equal one changes nothing", async () => {
    const store = await open();
    await create(store, "a");
    await store.scores.put(runId, score({ comment: "good" }));
    await store.scores.put(runId, score({ comment: "good", at: 20 }));
    await store.scores.put(runId, score({ value: 0, comment: "bad", at: 30 }));
    await store.scores.put(runId, score({ by: "bob", value: 0.5, at: 40 }));
    expect(await store.scores.list(runId)).toEqual([
      { name: "thumbs", value: 1, by: "ann", comment: "good", at: 10, replacedAt: 30 },
      { name: "thumbs", value: 0, by: "ann", comment: "bad", at: 30, replacedAt: null },
      { name: "thumbs", value: 0.5, by: "bob", comment: null, at: 40, replacedAt: null },
    ]);
    expect((await store.journal.summary(runId))?.scores).toEqual([
      { name: "thumbs", value: 0, by: "ann", at: 30 },
      { name: "thumbs", value: 0.5, by: "bob", at: 40 },
    ]);
  });

  test("Z1: of several scores of one name and author that are put at once, one counts", async () => {
    const store = await open();
    await create(store, "a");
    await Promise.all(
      Array.from({ length: 8 }, (_each, index) => store.scores.put(runId, score({ value: index / 8 }))),
    );
    const all = await store.scores.list(runId);
    expect([all.length, all.filter(({ replacedAt }) => replacedAt === null).length]).toEqual([8, 1]);
    expect((await store.journal.summary(runId))?.scores?.length).toBe(1);
  });

  test("Z3: lists, summaries and changes of runs contain the scores that count, without comments", async () => {
    const store = await open();
    await create(store, "a");
    await create(store, "b");
    const { next } = await store.journal.changes();
    await store.scores.put(runId, score({ comment: "good" }));
    const listed = [{ name: "thumbs", value: 1, by: "ann", at: 10 }];
    const { runs } = await store.journal.list();
    expect(runs.map((run) => run.scores)).toEqual([undefined, listed]);
    const changed = (await store.journal.changes(next)).runs;
    expect(changed.find((run) => run.runId === runId)?.scores).toEqual(listed);
  });

  test("Z4: list() and count() select runs by a score that counts, and by its bounds", async () => {
    const store = await open();
    for (const name of ["a", "b", "c", "d"]) await create(store, name);
    const idOf = (name: string): typeof runId => runRecord(name).runId;
    await store.scores.put(idOf("a"), score({ value: 0 }));
    await store.scores.put(idOf("b"), score({ value: 0.5 }));
    await store.scores.put(idOf("b"), score({ value: 1, at: 20 }));
    await store.scores.put(idOf("c"), score({ name: "exactMatch", value: 0.2 }));
    expect(await names(store, { score: { name: "thumbs" } })).toEqual(["b", "a"]);
    expect(await names(store, { score: { name: "thumbs", below: 0.7 } })).toEqual(["a"]);
    expect(await names(store, { score: { name: "thumbs", above: 0.7 } })).toEqual(["b"]);
    expect(await names(store, { score: { name: "thumbs", above: 0, below: 1 } })).toEqual([]);
    expect(await names(store, { score: { name: "thumbs" }, sort: "costliest", status: "pending" })).toEqual([
      "b",
      "a",
    ]);
    expect(await store.journal.count({ score: { name: "exactMatch" } })).toBe(1);
    expect(await names(store, { score: { name: "other" } })).toEqual([]);
  });

  test("Z4: list() refuses a filter of scores without a name, with an unknown member and with a bound that is no number", async () => {
    const store = await open();
    for (const wrong of [{}, { name: "a", over: 1 }, { name: "a", above: "1" }])
      expect(await fault(store.journal.list({ score: wrong as never }))).toBe("invalid_argument");
  });

  test("Z5: a run that has ended can be scored", async () => {
    const store = await open();
    const lease = await ownRun(store);
    await store.journal.append(lease, { number: 1, at: 2, events: [runEnd(runId, 1)] });
    await store.leases.release(lease, { kind: "ended" });
    await store.scores.put(runId, score());
    const summary = await store.journal.summary(runId);
    expect([summary?.status, summary?.scores?.length]).toEqual(["completed", 1]);
  });

  test("Z5: a run that does not exist, or is outside the scope, is neither scored nor read", async () => {
    const store = await open();
    await create(store, "a", { tenantId: "acme", userId: "ann" });
    for (const scope of [{ tenantId: "other" }, { tenantId: "acme", userId: "bob" }, { tenantId: "-" }]) {
      expect(await fault(store.scores.put(runId, score(), scope))).toBe("not_found");
      expect(await fault(store.scores.list(runId, scope))).toBe("not_found");
    }
    expect(await fault(store.scores.put(runRecord("b").runId, score()))).toBe("not_found");
    await store.scores.put(runId, score(), { tenantId: "acme", userId: "ann" });
    expect((await store.scores.list(runId, { tenantId: "acme" })).length).toBe(1);
  });

  test("Z6: a run has at most maxScores scores that count, and a score that it has can still be replaced", async () => {
    const store = await open();
    await create(store, "a");
    for (let index = 0; index < maxScores; index++)
      await store.scores.put(runId, score({ by: `user ${index}` }));
    expect(await fault(store.scores.put(runId, score({ by: "one more" })))).toBe("too_large");
    await store.scores.put(runId, score({ by: "user 7", value: 0, at: 20 }));
    expect((await store.scores.list(runId)).length).toBe(maxScores + 1);
    expect((await store.journal.summary(runId))?.scores?.length).toBe(maxScores);
  });

  test("Z7: the erasure of the root removes comments, and a later score keeps its value without one", async () => {
    const store = await open();
    const lease = await ownRun(store);
    await store.scores.put(runId, score({ comment: "he said he is ill" }));
    const erases = [{ taskId: rootTask, agentId }];
    await store.journal.append(lease, { number: 1, at: 2, events: [runEnd(runId, 1)], erases });
    await store.scores.put(runId, score({ by: "bob", value: 0.5, comment: "he is ill", at: 20 }));
    expect((await store.scores.list(runId)).map(({ by, value, comment }) => [by, value, comment])).toEqual([
      ["ann", 1, null],
      ["bob", 0.5, null],
    ]);
  });

  test("Z7: a deleted run is in no list by score, and a new run with the same id has no scores", async () => {
    const store = await open();
    await create(store, "a");
    await store.scores.put(runId, score());
    await store.journal.delete(runId);
    expect(await names(store, { score: { name: "thumbs" } })).toEqual([]);
    await create(store, "a");
    expect(await store.scores.list(runId)).toEqual([]);
    expect((await store.journal.summary(runId))?.scores).toBeUndefined();
  });
}
