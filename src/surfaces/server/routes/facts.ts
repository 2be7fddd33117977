import {
  addUsd,
  fromNanoUsd,
  rootTaskId,
  unfinishedStatuses,
  utcDay,
  utcHour,
  type Runtime,
} from "../../../kernel/index.ts";
import { scopeOf } from "../../http/access/access.ts";
import type { RunFigures } from "../../http/figures/run-figures.ts";
import { reply, route } from "../../http/route.ts";
import { failure, runId, time, usd } from "../../http/schema/run-schemas.ts";
import { integer, list, named, nullable, number, object } from "../../http/schema/schema.ts";

const hourMs = 3_600_000;
const hours = 24;

const facts = named(
  "Facts",
  object({
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
        "Steps that runs read from their journals on this UTC day, after a worker had died. Steps that forks share are not counted. Runs of earlier days count from the start of this server.",
    }),
    notPaidAgainTodayUsd: number({ description: "Cost of those steps." }),
    spendByHour: list(object({ from: time, costUsd: number() }), {
      description:
        "The last 24 hours, oldest first: what was spent, by the hour of the calls. What working runs have spent since they waited last counts in the newest hour. Unknown prices count as 0.",
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
    "Read the figures above a list of runs. Costs O(changed runs and their new events). The first reading costs O(runs of the day).",
  scope: "read",
  responses: [found],
  handle: async ({ runtime, access, server: { working, agents } }) => {
    const now = runtime.clock.now();
    const day = utcDay(now);
    const [today] = await runtime.usage({ by: "day", from: day, to: day });
    const figures = await working.of(scopeOf(access));
    return reply(found, {
      hostedAgents: agents.list.length,
      live: await countUnfinished(runtime),
      spentTodayUsd: addUsd(today?.costUsd ?? 0, figures.unrecordedUsd),
      capPerDayUsd: runtime.dayCapUsd,
      spendByHour: await spendOf(runtime, now, figures.unrecordedUsd),
      ...figures,
    });
  },
});

/** Returns the number of runs that have not ended. For each status, counting stops at the limit of a count. */
async function countUnfinished(runtime: Runtime): Promise<number> {
  let live = 0;
  for (const status of unfinishedStatuses) live += await runtime.count({ status });
  // A run may also have ended as `paused`.
  return live - (await runtime.count({ status: "paused", endedAfter: 0 }));
}

/**
 * Returns the amount spent in each of the last 24 hours, by the hour of the calls. Amounts that are not recorded
 * yet are added to the last hour.
 */
async function spendOf(runtime: Runtime, now: number, unrecordedUsd: number) {
  const first = now - (now % hourMs) - (hours - 1) * hourMs;
  const rows = await runtime.usage({ by: "hour", from: utcHour(first), to: utcHour(now) });
  const byHour = new Map(rows.map(({ key, costUsd }) => [key, costUsd]));
  return Array.from({ length: hours }, (_each, at) => {
    const from = first + at * hourMs;
    const costUsd = byHour.get(utcHour(from)) ?? 0;
    return { from, costUsd: at === hours - 1 ? addUsd(costUsd, unrecordedUsd) : costUsd };
  });
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
    maxCostUsd: nullable(number({ description: "Budget with all top-ups. null: no limit." })),
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

/** Maximum number of events of a run whose ledger is read for a row of a list. */
const mostLedgerEvents = 5_000;

/**
 * Returns the amount that a run has reserved for its calls in progress. The events do not contain the ledger, so
 * this function reads the journal.
 */
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
