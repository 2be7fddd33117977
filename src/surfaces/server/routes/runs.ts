import {
  Fault,
  HistoryRetention,
  runSorts,
  type CallSettings,
  type Event,
  type EventType,
  type RunHandle,
  type TaskId,
} from "../../../kernel/index.ts";
import { reply, route, type RouteRequest } from "../../http/route.ts";
import {
  after,
  budget,
  event,
  limit,
  priority,
  runChanges,
  runFilter,
  runPage,
  runParams,
  runPast,
  runResult,
  runSnapshot,
  runSummary,
  sessionId,
  spawnBudget,
  runView,
  steps,
  taskId as taskIdSchema,
  time,
} from "../../http/schema/run-schemas.ts";
import {
  anyJson,
  anyObject,
  choice,
  flag,
  integer,
  list,
  object,
  optional,
  schemaOf,
  text,
} from "../../http/schema/schema.ts";
import { storedView } from "../../view/stored-view.ts";
import { findRun, wantedRuns } from "./find-run.ts";
import { startRun } from "../../http/start-run.ts";

const listed = { status: 200, description: "One page of runs, newest first.", schema: runPage };
const found = { status: 200, description: "The run.", schema: runSummary };

const listRuns = route({
  id: "runs.list",
  method: "GET",
  path: "/api/runs",
  summary:
    "List runs, newest first or by cost. The cost of a run that works is that of the last time it waited.",
  scope: "read",
  query: object({ ...runFilter, sort: optional(choice(runSorts)), limit, after }),
  responses: [listed],
  handle: async ({ runtime, query }) => reply(listed, await runtime.list(wantedRuns(query))),
});

const counted = {
  status: 200,
  description: "The number of runs.",
  schema: object({
    count: integer(),
    isMore: flag({ description: "Whether more runs match than were counted." }),
  }),
};
const mostCounted = 2_000;

const countRuns = route({
  id: "runs.count",
  method: "GET",
  path: "/api/run-count",
  summary: "Count the runs that match, up to 2,000.",
  scope: "read",
  query: object(runFilter),
  responses: [counted],
  handle: async ({ runtime, query }) => {
    const count = await runtime.count({ ...wantedRuns(query), limit: mostCounted + 1 });
    return reply(counted, { count: Math.min(count, mostCounted), isMore: count > mostCounted });
  },
});

const submission = object({
  agent: text({ minLength: 1, maxLength: 256, description: "Name of an agent of this server." }),
  input: anyJson({ description: "A text, or what the agent accepts." }),
  sessionId: optional(sessionId),
  channel: optional(
    text({
      maxLength: 1_024,
      description: "The channel of the input, such as `slack` or `telegram:4711`. Default: `web`.",
    }),
  ),
  metadata: optional(anyObject()),
  startAt: optional(time),
  delayMs: optional(
    integer({ minimum: 0, description: "Milliseconds after which the run starts, in place of `startAt`." }),
  ),
  budget: optional(budget),
  timeoutWhileWaiting: optional(flag()),
  spawnBudget: optional(spawnBudget),
  changes: optional(runChanges),
  settings: optional(schemaOf<CallSettings>({ type: "object", description: "Settings of the model calls." })),
  priority: optional(priority),
  retention: optional(choice(Object.values(HistoryRetention))),
  streaming: optional(flag({ description: "Whether streams contain text deltas. Default: true." })),
  whenBusy: optional(choice(["refuse", "steer"])),
});

const submitted = object({
  run: runSummary,
  isSteered: flag({
    description: "Whether the input became steering of this run, which waited in the session.",
  }),
});
const created = { status: 201, description: "The run is stored and starts.", schema: submitted };
const repeated = {
  status: 200,
  description: "A run with this idempotency key, or the run that was steered.",
  schema: submitted,
};

const submitRun = route({
  id: "runs.submit",
  method: "POST",
  path: "/api/runs",
  summary:
    "Start a run. With the header `Idempotency-Key`, repeating the request returns the same run; a different request with the same key is refused with 409.",
  scope: "run",
  body: submission,
  carriesInput: true,
  responses: [created, repeated],
  handle: async (request) => {
    const { delayMs, ...body } = request.body;
    if (delayMs !== undefined && body.startAt !== undefined)
      throw new Fault("invalid_argument", "invalid delayMs: startAt is given as well; send one of them");
    const later = delayMs !== undefined && { startAt: Date.now() + delayMs };
    const { run, isSteered, isRepeated } = await startRun(request, { ...body, ...later });
    return reply(isRepeated || isSteered ? repeated : created, { run: await run.summary(), isSteered });
  },
});

const getRun = route({
  id: "runs.get",
  method: "GET",
  path: "/api/runs/{runId}",
  summary: "Read a run: status, what it waits for, cost and times.",
  scope: "read",
  params: runParams,
  responses: [found],
  handle: async (request) => reply(found, await (await findRun(request)).summary()),
});

const ended = { status: 200, description: "The result of the ended run.", schema: runResult };
const notEnded = { status: 202, description: "The run has not ended.", schema: runSummary };
const maxWaitMs = 60_000;

const getResult = route({
  id: "runs.result",
  method: "GET",
  path: "/api/runs/{runId}/result",
  summary: "Read the result of a run, or wait for it.",
  scope: "read",
  params: runParams,
  query: object({
    waitMs: optional(
      integer({ minimum: 0, maximum: maxWaitMs, description: "How long to wait. Default: 0." }),
    ),
  }),
  responses: [ended, notEnded],
  handle: async (request) => {
    const run = await findRun(request);
    const { waitMs = 0 } = request.query;
    if ((await run.summary()).endedAt === null && waitMs > 0) await untilEnded(run, waitMs, request);
    const summary = await run.summary();
    if (summary.endedAt === null) return reply(notEnded, summary);
    return reply(ended, await run.result());
  },
});

/** Waits until the run ends, the time has passed, the caller disconnects, or the server drains. */
async function untilEnded(
  run: RunHandle,
  waitMs: number,
  { request, server }: Pick<RouteRequest, "request" | "server">,
): Promise<void> {
  const signal = AbortSignal.any([request.signal, server.draining, AbortSignal.timeout(waitMs)]);
  for await (const item of run.events({ types: ["run_end"], signal })) if (item.type === "run_end") return;
}

const eventPage = object({
  events: list(event),
  next: integer({ description: "The seq from which the next page starts." }),
  isLast: flag({ description: "Whether there were no further events." }),
});
const page = { status: 200, description: "Events in the order of their seq.", schema: eventPage };
const defaultEvents = 200;

const listEvents = route({
  id: "runs.events",
  method: "GET",
  path: "/api/runs/{runId}/events",
  summary: "Read a page of the log of a run.",
  scope: "read",
  params: runParams,
  query: object({
    from: optional(integer({ minimum: 0, description: "Seq of the first event. Default: 0." })),
    limit: optional(integer({ minimum: 1, maximum: 5_000, description: "Default: 200." })),
    last: optional(
      flag({
        description:
          "Whether to read the last events that fit in place of the first, still in the order of their seq. Costs O(events of the run). Default: false.",
      }),
    ),
    types: optional(
      list(text({ maxLength: 64 }), { description: "Only events of these types. May be repeated." }),
    ),
    taskId: optional(text({ pattern: "^t\\d{1,9}$", description: "Only events of this task." })),
  }),
  responses: [page],
  handle: async (request) => {
    const run = await findRun(request);
    const { from = 0, limit: most = defaultEvents, last: isFromEnd = false, types, taskId } = request.query;
    const events: Event[] = [];
    const wanted = types as readonly EventType[] | undefined;
    for await (const each of run.events({
      fromSeq: from,
      follow: false,
      ...(wanted !== undefined && { types: wanted }),
    })) {
      if (!("seq" in each) || (taskId !== undefined && each.taskId !== taskId)) continue;
      if (events.length === most && !isFromEnd)
        return reply(page, { events, next: (events.at(-1)?.seq ?? 0) + 1, isLast: false });
      events.push(each);
      if (events.length > most) events.shift();
    }
    const last = events.at(-1);
    return reply(page, { events, next: last === undefined ? from : last.seq + 1, isLast: true });
  },
});

const tasks = { status: 200, description: "The run as its events describe it.", schema: runView };

const listTasks = route({
  id: "runs.tasks",
  method: "GET",
  path: "/api/runs/{runId}/tasks",
  summary:
    "Read the tree of tasks of a run, with seats, money, questions and recoveries, at the newest event or at an earlier one. The server keeps the runs that were read last: the first read costs O(events), a later one the events since then, and an earlier position fewer than 1,000 events.",
  scope: "read",
  params: runParams,
  query: object({ at: optional(integer({ minimum: 0, description: "Seq of the last event that counts." })) }),
  responses: [tasks],
  handle: async (request) => {
    const run = await findRun(request);
    const { at } = request.query;
    const { views } = request.server;
    const { sessionId: own, ...view } = storedView(
      await (at === undefined ? views.latest(run) : views.at(run, at)),
    );
    // The events of a workflow name a session that does not exist.
    return reply(tasks, { ...view, ...(run.sessionId !== undefined && { sessionId: own }) });
  },
});

const past = { status: 200, description: "Steps, and values over time.", schema: runPast };
/** Maximum number of ended steps that are sent at first. */
const mostSteps = 1_000;

const getPast = route({
  id: "runs.past",
  method: "GET",
  path: "/api/runs/{runId}/past",
  summary:
    "Read what only all events of a run tell: money, seats and the density of events over time, the steps in progress and the 1,000 that ended last. A reader continues from there with the next events. Costs what reading the tasks costs.",
  scope: "read",
  params: runParams,
  responses: [past],
  handle: async (request) => {
    const run = await findRun(request);
    return reply(past, (await request.server.views.past(run)).stored(mostSteps));
  },
});

const foundSteps = { status: 200, description: "The steps.", schema: steps };

const listSteps = route({
  id: "runs.steps",
  method: "GET",
  path: "/api/runs/{runId}/steps",
  summary:
    "Read the steps of some tasks, the steps that were in progress at an event, or those that fit both, as they are at the newest event. Costs what reading the tasks costs, and O(steps since the event).",
  scope: "read",
  params: runParams,
  query: object({
    taskId: optional(
      list(taskIdSchema, { maxItems: 200, description: "Steps of these tasks. May be repeated." }),
    ),
    at: optional(integer({ minimum: 0, description: "Steps that were in progress after this event." })),
  }),
  responses: [foundSteps],
  handle: async (request) => {
    const { taskId: wanted, at } = request.query;
    if (wanted === undefined && at === undefined)
      throw new Fault("invalid_argument", "invalid query: expected taskId or at; use one of them or both");
    const { steps: log } = await request.server.views.past(await findRun(request));
    const fitting =
      at === undefined
        ? (wanted ?? []).flatMap((id) => log.of(id as TaskId))
        : [...log.inProgressAt(at)].filter((step) => wanted?.includes(step.taskId) ?? true);
    return reply(foundSteps, { steps: fitting.toSorted((one, other) => one.startSeq - other.startSeq) });
  },
});

const seen = { status: 200, description: "Seats and money.", schema: runSnapshot };

const getSnapshot = route({
  id: "runs.snapshot",
  method: "GET",
  path: "/api/runs/{runId}/snapshot",
  summary: "Read the seats and the ledger of a run. Costs O(commits of the run).",
  scope: "read",
  params: runParams,
  responses: [seen],
  handle: async (request) => reply(seen, await (await findRun(request)).snapshot()),
});

export const runRoutes = [
  listRuns,
  countRuns,
  submitRun,
  getRun,
  getResult,
  listEvents,
  listTasks,
  getPast,
  listSteps,
  getSnapshot,
] as const;
