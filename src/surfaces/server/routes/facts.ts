import { unfinishedStatuses, type ApprovalPage, type Runtime } from "../../../kernel/index.ts";
import type { FiguresOfRuns } from "../figures/run-figures.ts";
import { reply, route } from "../route.ts";
import { runId, time, usd } from "../schema/run-schemas.ts";
import { integer, list, named, nullable, number, object } from "../schema/schema.ts";
import { allRuns } from "../streams/run-changes.ts";

const hourMs = 3_600_000;
const hours = 24;

const facts = named(
  "Facts",
  object({
    waiting: integer({ description: "Questions that wait for a person." }),
    live: integer({ description: "Runs that have not ended." }),
    liveAgents: integer({ description: "Agents of those runs that have not ended." }),
    spentTodayUsd: number({ description: "What runs have spent on this UTC day, as usage by day says." }),
    replayedToday: integer({
      description: "Steps that runs read from their journals on this UTC day, after a worker had died.",
    }),
    notPaidAgainTodayUsd: number({ description: "Cost of those steps." }),
    spendByHour: list(object({ from: time, costUsd: number() }), {
      description:
        "The last 24 hours, oldest first: the cost of the runs created in that time, by the hour in which each changed last. Unknown prices count as 0.",
    }),
  }),
);
const found = { status: 200, description: "The facts.", schema: facts };

/** The figures above a list of runs. */
const getFacts = route({
  id: "facts.get",
  method: "GET",
  path: "/api/facts",
  summary:
    "Read the figures above a list of runs. Costs O(open questions, unfinished runs and runs of one day), and O(new events) of the runs that work.",
  scope: "read",
  responses: [found],
  handle: async ({ runtime, server: { figures } }) => {
    const now = runtime.clock.now();
    const day = new Date(now).toISOString().slice(0, 10);
    const [today] = await runtime.usage({ by: "day", from: day, to: day });
    return reply(found, {
      waiting: await openQuestions(runtime),
      ...(await unfinishedRuns(runtime, figures)),
      spentTodayUsd: today?.costUsd ?? 0,
      ...(await ofOneDay(runtime, figures, now)),
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

async function unfinishedRuns(
  runtime: Runtime,
  figures: FiguresOfRuns,
): Promise<{ readonly live: number; readonly liveAgents: number }> {
  let [live, liveAgents] = [0, 0];
  for await (const { runId: id, endedAt } of allRuns(runtime, { status: unfinishedStatuses })) {
    if (endedAt !== null) continue;
    live++;
    liveAgents += (await figures.of(runtime, id))?.liveAgents ?? 0;
  }
  return { live, liveAgents };
}

/** What the runs of the last 24 hours spent by hour, and what they did not pay again on this day. */
async function ofOneDay(runtime: Runtime, figures: FiguresOfRuns, now: number) {
  const first = now - (now % hourMs) - (hours - 1) * hourMs;
  const today = now - (now % (hours * hourMs));
  const spendByHour = Array.from({ length: hours }, (_each, at) => ({
    from: first + at * hourMs,
    costUsd: 0,
  }));
  let [replayedToday, notPaidAgainTodayUsd] = [0, 0];
  for await (const run of allRuns(runtime, { createdAfter: first - 1 })) {
    const hour = spendByHour[Math.floor((run.updatedAt - first) / hourMs)];
    if (hour !== undefined) hour.costUsd += run.costUsd ?? 0;
    if (run.recoveries === 0) continue;
    for (const { at, replayed, savedUsd } of (await figures.of(runtime, run.runId))?.crashes ?? []) {
      if (at < today) continue;
      replayedToday += replayed;
      notPaidAgainTodayUsd += savedUsd;
    }
  }
  return { spendByHour, replayedToday, notPaidAgainTodayUsd };
}

const figure = named(
  "RunFigures",
  object({
    runId,
    agents: integer({ description: "Number of tasks. 0 if the events of the run are not kept." }),
    liveAgents: integer({ description: "Number of tasks that have not ended." }),
    steps: integer({ description: "Number of model calls, tool calls and steps with a result." }),
    freeSteps: integer({ description: "Number of steps that a fork shares with its origin." }),
    costUsd: usd,
    maxCostUsd: nullable(number({ description: "Allowance with all top-ups. null: no limit." })),
    lostUsd: number({
      description: "The part of the cost that was charged for calls without reported usage.",
    }),
    crashes: list(object({ at: time, replayed: integer(), savedUsd: number() })),
  }),
);
const read = { status: 200, description: "The figures.", schema: object({ figures: list(figure) }) };
const mostRuns = 100;

/** The figures of the rows of a list. */
const getFigures = route({
  id: "figures.list",
  method: "GET",
  path: "/api/figures",
  summary:
    "Read the figures of up to 100 runs as of their newest events. Unknown runs are left out. Costs O(events) for a run that was not read before, else O(new events).",
  scope: "read",
  query: object({
    runId: list(runId, { minItems: 1, maxItems: mostRuns, description: "May be repeated." }),
  }),
  responses: [read],
  handle: async ({ runtime, query, server }) => {
    const figures = await Promise.all(query.runId.map((id) => server.figures.of(runtime, id)));
    return reply(read, { figures: figures.filter((each) => each !== undefined) });
  },
});

export const factRoutes = [getFacts, getFigures] as const;
