import {
  allRuns,
  fromNanoUsd,
  rootTaskId,
  unfinishedStatuses,
  type ApprovalPage,
  type Runtime,
} from "../../../kernel/index.ts";
import type { FiguresOfRuns, RunFigures } from "../../http/figures/run-figures.ts";
import { reply, route } from "../../http/route.ts";
import { failure, runId, time, usd } from "../../http/schema/run-schemas.ts";
import { integer, list, named, nullable, number, object } from "../../http/schema/schema.ts";

const hourMs = 3_600_000;
const hours = 24;

const facts = named(
  "Facts",
  object({
    waiting: integer({ description: "Questions that wait for a person." }),
    hostedAgents: integer({
      description: "Agents whose runs this server executes itself. Their runs stand still while it is down.",
    }),
    live: integer({ description: "Runs that have not ended. At most 10,000 of each status are counted." }),
    liveAgents: integer({ description: "Agents at work: those of running runs that have not ended." }),
    spentTodayUsd: number({
      description:
        "What runs have spent on this UTC day: usage by day, and what working runs have spent since they waited last.",
    }),
    capPerDayUsd: nullable(
      number({
        description:
          "What the runs that the caller sees may spend per UTC day, by the caps of this server. null: no cap.",
      }),
    ),
    unrecordedUsd: number({
      description:
        "What working runs have spent since they waited last. The usage has it when they wait, pause or end.",
    }),
    replayedToday: integer({
      description:
        "Steps that runs read from their journals on this UTC day, after a worker had died. Steps that forks share are not counted.",
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
    "Read the figures above a list of runs. Costs O(open questions and runs of one day), and O(new events) of the runs that work.",
  scope: "read",
  responses: [found],
  handle: async ({ runtime, server: { figures, agents } }) => {
    const now = runtime.clock.now();
    const day = new Date(now).toISOString().slice(0, 10);
    const [today] = await runtime.usage({ by: "day", from: day, to: day });
    const { live, liveAgents, unrecordedUsd } = await countUnfinished(runtime, figures);
    return reply(found, {
      waiting: await openQuestions(runtime),
      hostedAgents: agents.list.length,
      live,
      liveAgents,
      spentTodayUsd: (today?.costUsd ?? 0) + unrecordedUsd,
      capPerDayUsd: runtime.dayCapUsd,
      unrecordedUsd,
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

async function countUnfinished(
  runtime: Runtime,
  figures: FiguresOfRuns,
): Promise<{ readonly live: number; readonly liveAgents: number; readonly unrecordedUsd: number }> {
  let [liveAgents, unrecordedUsd] = [0, 0];
  let live = 0;
  for (const status of unfinishedStatuses) live += await runtime.count({ status });
  // A run may also have ended as `paused`.
  live -= await runtime.count({ status: "paused", endedAfter: 0 });
  // Every other unfinished run has stored what it spent when it began to wait.
  for await (const { runId: id, costUsd } of allRuns(runtime, { status: "running" })) {
    const known = await figures.of(runtime, id);
    if (known === undefined) continue;
    liveAgents += known.liveAgents;
    unrecordedUsd += unrecorded(known, costUsd);
  }
  return { live, liveAgents, unrecordedUsd };
}

/** What a working run has spent since it waited last: its summary and the usage by day do not have it yet. */
function unrecorded(known: RunFigures, costUsd: number | null): number {
  return Math.max(0, (known.costUsd ?? 0) - (costUsd ?? 0));
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
    if (run.recoveries === 0 && run.status !== "running") continue;
    const known = await figures.of(runtime, run.runId);
    if (known === undefined) continue;
    if (hour !== undefined) hour.costUsd += unrecorded(known, run.costUsd);
    for (const { at, replayed, savedUsd } of known.crashes) {
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
    events: integer({ description: "Number of events." }),
    agents: integer({ description: "Number of tasks. 0 if the events of the run are not kept." }),
    liveAgents: integer({ description: "Number of tasks that have not ended." }),
    steps: integer({ description: "Number of model calls, tool calls and steps with a result." }),
    freeSteps: integer({ description: "Number of steps that a fork shares with its origin." }),
    forkedFrom: nullable(
      object({ runId, at: integer({ description: "The last event that the run shares with its origin." }) }),
    ),
    costUsd: usd,
    maxCostUsd: nullable(number({ description: "Allowance with all top-ups. null: no limit." })),
    maxTurns: nullable(integer({ description: "Limit of turns, in the same way." })),
    maxTokens: nullable(integer({ description: "Limit of tokens, in the same way." })),
    deadlineMs: nullable(number({ description: "Limit of time in milliseconds, in the same way." })),
    lostUsd: number({
      description: "The part of the cost that was charged for calls without reported usage.",
    }),
    failure: nullable(failure),
    heldUsd: nullable(
      number({
        description:
          "What is held for calls in flight. null if the run has too many events to read its ledger.",
      }),
    ),
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
    const figures = await Promise.all(
      query.runId.map(async (id) => {
        const known = await server.figures.of(runtime, id);
        return known && { ...known, heldUsd: await heldBy(runtime, known) };
      }),
    );
    return reply(read, { figures: figures.filter((each) => each !== undefined) });
  },
});

/** A run with more events is too long to read its ledger for a row of a list. */
const mostLedgerEvents = 5_000;

/** What a run holds for its calls in flight. Its ledger is not part of the events, so this reads its journal. */
async function heldBy(
  runtime: Runtime,
  { runId: id, liveAgents, events }: RunFigures,
): Promise<number | null> {
  if (liveAgents === 0) return 0;
  if (events > mostLedgerEvents) return null;
  const { ledger } = (await (await runtime.find(id))?.snapshot()) ?? {};
  return fromNanoUsd(ledger?.accounts[rootTaskId]?.reserved.nanoUsd ?? 0);
}

export const factRoutes = [getFacts, getFigures] as const;
