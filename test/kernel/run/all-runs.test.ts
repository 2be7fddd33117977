import { expect, test } from "vitest";
import { allRuns, firstUnfinishedRun, type RunQuery, type RunSummary } from "../../../src/kernel/index.ts";

const ids = ["run_a", "run_b", "run_c", "run_d", "run_e"];

/** A list with two runs per page. The first three runs have ended as paused. The list records its queries. */
function pagedList() {
  const queries: RunQuery[] = [];
  const list = async (query: RunQuery) => {
    queries.push(query);
    const from = Number(query.after ?? 0);
    const runs = ids
      .slice(from, from + 2)
      .map((runId, at) => ({ runId, endedAt: from + at < 3 ? 1 : null }) as unknown as RunSummary);
    return { runs, next: from + 2 < ids.length ? String(from + 2) : null };
  };
  return { list, queries };
}

test("allRuns() yields the runs of every page in order", async () => {
  const { list, queries } = pagedList();
  const found: string[] = [];
  for await (const { runId } of allRuns({ list }, { sessionId: "ses_a" })) found.push(runId);
  expect(found).toEqual(ids);
  expect(queries.map(({ sessionId, after }) => [sessionId, after])).toEqual([
    ["ses_a", undefined],
    ["ses_a", "2"],
    ["ses_a", "4"],
  ]);
});

test("firstUnfinishedRun() reads no further page once it has found a run", async () => {
  const { list, queries } = pagedList();
  expect((await firstUnfinishedRun({ list }))?.runId).toBe("run_d");
  expect(queries.map(({ after }) => after)).toEqual([undefined, "2"]);
});
