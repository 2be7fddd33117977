import { expect, test } from "vitest";
import { auditLog } from "../../../src/runtime/index.ts";
import type { ScoreOptions } from "../../../src/kernel/index.ts";
import { agent, setUp } from "../runtime-setup.ts";

test("score() scores an ended run under the name of the handle, and a later score of the same name and author replaces it", async () => {
  const { runtime, store } = await setUp();
  const run = await runtime.submit(
    agent("worker", async () => "done"),
    null,
    { userId: "ann" },
  );
  await run.result();
  const first = await run.score({ name: "thumbs", value: true, comment: "good" });
  expect(first).toMatchObject({ name: "thumbs", value: 1, by: "ann" });
  await run.as("bob").score({ name: "thumbs", value: 0.25 });
  await run.score({ name: "thumbs", value: false, comment: "wrong after all" });
  await run.score({ name: "exactMatch", value: 1, by: "nightly" });
  expect((await run.summary()).scores?.map(({ name, by, value }) => [name, by, value])).toEqual([
    ["exactMatch", "nightly", 1],
    ["thumbs", "ann", 0],
    ["thumbs", "bob", 0.25],
  ]);
  const audited = [];
  for await (const entry of auditLog(store).read(run.runId, { outsideOnly: true }))
    audited.push([entry.seq, entry.actor, entry.action, entry.details["value"]]);
  expect(audited.slice(1)).toEqual([
    [null, "ann", "run_score", 1],
    [null, "bob", "run_score", 0.25],
    [null, "ann", "run_score", 0],
    [null, "nightly", "run_score", 1],
  ]);
});

test("score() refuses an invalid score, names the problem and stores nothing", async () => {
  const { runtime } = await setUp();
  const run = await runtime.submit(
    agent("worker", async () => "done"),
    null,
  );
  const wrong: readonly (readonly [unknown, string])[] = [
    [{ name: "thumbs", value: 1.5 }, "invalid value 1.5 of score(): expected a number from 0 to 1"],
    [{ name: "thumbs", value: Number.NaN }, "invalid value NaN of score()"],
    [{ name: "thumbs" }, "invalid value undefined of score()"],
    [{ name: "", value: 1 }, "invalid name"],
    [{ name: "a".repeat(65), value: 1 }, "of at most 64 characters"],
    [{ name: "thumbs", value: 1, comment: "a".repeat(2_001) }, "of at most 2000 characters"],
    [{ name: "thumbs", value: 1, coment: "good" }, 'use "comment"'],
  ];
  for (const [options, message] of wrong)
    await expect(run.score(options as ScoreOptions)).rejects.toMatchObject({
      code: "invalid_argument",
      message: expect.stringContaining(message) as string,
    });
  expect(await run.scores()).toEqual([]);
});

test("S6: a tenant view scores under the name of its user only, and the runs of others do not exist for it", async () => {
  const { runtime } = await setUp();
  const worker = agent("worker", async () => "done");
  const ann = runtime.forTenant({ tenantId: "acme", userId: "ann" });
  const run = await ann.submit(worker, null);
  await expect(run.score({ name: "thumbs", value: 1, by: "bob" })).rejects.toMatchObject({
    code: "invalid_argument",
  });
  await run.score({ name: "thumbs", value: 1 });
  const acme = runtime.forTenant({ tenantId: "acme" });
  expect((await acme.list({ score: { name: "thumbs", above: 0.5 } })).runs).toHaveLength(1);
  const other = runtime.forTenant({ tenantId: "other" });
  expect((await other.list({ score: { name: "thumbs" } })).runs).toEqual([]);
  expect(await other.find(run.runId)).toBeUndefined();
});
