import { unfinishedStatuses, type ApprovalPage, type Runtime } from "../../../kernel/index.ts";
import { reply, route } from "../route.ts";
import { time } from "../schema/run-schemas.ts";
import { integer, list, named, number, object } from "../schema/schema.ts";
import { allRuns } from "../streams/run-changes.ts";

const hourMs = 3_600_000;
const hours = 24;

const facts = named(
  "Facts",
  object({
    waiting: integer({ description: "Questions that wait for a person." }),
    live: integer({ description: "Runs that have not ended." }),
    spentTodayUsd: number({ description: "What runs have spent on this UTC day, as usage by day says." }),
    spendByHour: list(object({ from: time, costUsd: number() }), {
      description:
        "The last 24 hours, oldest first: the cost of the runs created in that time, by the hour in which each changed last. Unknown prices count as 0.",
    }),
  }),
);
const found = { status: 200, description: "The facts.", schema: facts };

/** The figures above a list of runs. */
export const getFacts = route({
  id: "facts.get",
  method: "GET",
  path: "/api/facts",
  summary:
    "Read the figures above a list of runs. Costs O(open questions, unfinished runs and runs of one day).",
  scope: "read",
  responses: [found],
  handle: async ({ runtime }) => {
    const now = runtime.clock.now();
    const day = new Date(now).toISOString().slice(0, 10);
    const [today] = await runtime.usage({ by: "day", from: day, to: day });
    return reply(found, {
      waiting: await openQuestions(runtime),
      live: await unfinishedRuns(runtime),
      spentTodayUsd: today?.costUsd ?? 0,
      spendByHour: await spendByHour(runtime, now),
    });
  },
});

async function openQuestions(runtime: Runtime): Promise<number> {
  let count = 0;
  let after: string | null = null;
  do {
    const page: ApprovalPage = await runtime.approvals({ limit: 500, ...(after !== null && { after }) });
    count += page.approvals.length;
    after = page.next;
  } while (after !== null);
  return count;
}

async function unfinishedRuns(runtime: Runtime): Promise<number> {
  let count = 0;
  for await (const { endedAt } of allRuns(runtime, { status: unfinishedStatuses }))
    if (endedAt === null) count++;
  return count;
}

async function spendByHour(
  runtime: Runtime,
  now: number,
): Promise<readonly { readonly from: number; readonly costUsd: number }[]> {
  const first = now - (now % hourMs) - (hours - 1) * hourMs;
  const spent = Array.from({ length: hours }, (_each, at) => ({ from: first + at * hourMs, costUsd: 0 }));
  for await (const { updatedAt, costUsd } of allRuns(runtime, { createdAfter: first - 1 })) {
    const hour = spent[Math.floor((updatedAt - first) / hourMs)];
    if (hour !== undefined) hour.costUsd += costUsd ?? 0;
  }
  return spent;
}
