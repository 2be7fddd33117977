import {
  Fault,
  HistoryRetention,
  missedPolicies,
  overlapPolicies,
  type CallSettings,
  type JsonObject,
  type JsonValue,
  type Schedule,
  type ScheduleEdit,
  type ScheduleOptions,
  type ScheduleOwner,
} from "../../../kernel/index.ts";
import type { Access } from "../../http/access/access.ts";
import { reply, route, type RouteRequest, type TypedRoute } from "../../http/route.ts";
import { agentId, budget, priority, sessionId, spawnBudget, time } from "../../http/schema/run-schemas.ts";
import {
  anyJson,
  anyObject,
  choice,
  flag,
  integer,
  list,
  named,
  nullable,
  object,
  optional,
  schemaOf,
  text,
  type ValueOf,
} from "../../http/schema/schema.ts";

const name = text({ minLength: 1, maxLength: 128, description: "Name of the schedule." });
const params = object({ name });

/** The owner of the schedule that a name refers to. Only tokens without a tenant or user need these parameters. */
const owner = {
  tenantId: optional(nullable(text({ minLength: 1 }))),
  userId: optional(nullable(text({ minLength: 1 }))),
};

const schedule = named(
  "Schedule",
  object({
    id: text(),
    name: text(),
    tenantId: nullable(text()),
    userId: nullable(text()),
    agentId: text(),
    input: anyJson(),
    times: schemaOf<Schedule["times"]>({
      type: "object",
      description: "`cron` with `timeZone`, `everyMs` with `startAt`, or `at`.",
    }),
    overlap: choice(overlapPolicies),
    missed: choice(missedPolicies),
    heartbeat: flag(),
    run: anyObject({ description: "The other options of the runs." }),
    createdAt: time,
    status: choice(["active", "paused", "done"]),
    nextAt: nullable(time),
    lastAt: nullable(time),
    lastRunId: nullable(text()),
    skipped: nullable(
      object({ at: time, reason: choice(["overlap", "busy", "missed", "error"]), error: optional(text()) }),
    ),
  }),
);

const listed = {
  status: 200,
  description: "The schedules.",
  schema: object({ schedules: list(schedule) }),
};
const listSchedules = route({
  id: "schedules.list",
  method: "GET",
  path: "/api/schedules",
  summary: "List schedules, ordered by tenant, user and name.",
  scope: "read",
  query: object({ ...owner, agentId: optional(agentId) }),
  responses: [listed],
  handle: async ({ runtime, query }) => reply(listed, { schedules: await runtime.schedules.list(query) }),
});

const moment = schemaOf<number | string>({
  type: ["integer", "string"],
  description: "Epoch milliseconds, or an ISO 8601 text; without an offset, a time in `timeZone`.",
});
const creation = object(
  {
    name,
    agent: text({ minLength: 1, maxLength: 256, description: "Name of an agent of this server." }),
    input: anyJson(),
    cron: optional(text({ maxLength: 256, description: "Such as `0 9 * * 1-5`." })),
    everyMs: optional(integer({ minimum: 1_000 })),
    at: optional(moment),
    startAt: optional(moment),
    timeZone: optional(text({ maxLength: 64, description: "IANA name. Default: UTC." })),
    overlap: optional(choice(overlapPolicies)),
    missed: optional(choice(missedPolicies)),
    replace: optional(flag({ description: "Replaces a schedule of this name that has other options." })),
    heartbeat: optional(flag()),
    sessionId: optional(sessionId),
    channel: optional(text({ maxLength: 1_024 })),
    metadata: optional(anyObject()),
    budget: optional(budget),
    timeoutWhileWaiting: optional(flag()),
    spawnBudget: optional(spawnBudget),
    settings: optional(schemaOf<CallSettings>({ type: "object" })),
    priority: optional(priority),
    retention: optional(choice(Object.values(HistoryRetention))),
  },
  { oneOf: [{ required: ["cron"] }, { required: ["everyMs"] }, { required: ["at"] }] },
);

const created = { status: 201, description: "The schedule.", schema: schedule };
const createSchedule = route({
  id: "schedules.create",
  method: "POST",
  path: "/api/schedules",
  summary: "Create a schedule. Repeating the request returns the same schedule.",
  scope: "run",
  body: creation,
  responses: [created],
  handle: async ({ runtime, access, body, server }) => {
    const { agent: wanted, metadata = {}, ...options } = body;
    const { tenantId, userId } = access;
    // The agent of a schedule is the same for every fire, so it is made for the schedule's name.
    const { agent, metadata: own = {} } = await server.agents.start(wanted, {
      runId: `schedule-${body.name}`,
      input: body.input,
      sessionId: body.sessionId,
      tenantId,
      userId,
    });
    // The schema requires exactly one of `cron`, `everyMs` and `at`.
    const made: unknown = {
      ...options,
      ...(tenantId === null && userId !== null && { userId }),
      agent: agent.id,
      metadata: { ...metadata, ...own },
    };
    return reply(created, await runtime.schedules.create(made as ScheduleOptions));
  },
});

/**
 * Returns the owner of the schedule in a request. For other callers the view of the runtime sets tenant and user
 * itself.
 */
function ownerOf({ tenantId, userId }: Access, query: ScheduleOwner): ScheduleOwner {
  return tenantId === null && userId !== null ? { userId, ...query } : query;
}

function missing(wanted: string): Fault {
  return new Fault("not_found", `schedule ${wanted} does not exist`, { details: { schedule: wanted } });
}

type NamedRequest = RouteRequest<{ readonly name: string }, ScheduleOwner>;

const found = { status: 200, description: "The schedule.", schema: schedule };
const getSchedule = route({
  id: "schedules.get",
  method: "GET",
  path: "/api/schedules/{name}",
  summary: "Read a schedule.",
  scope: "read",
  params,
  query: object(owner),
  responses: [found],
  handle: async ({ runtime, access, params: { name: wanted }, query }: NamedRequest) => {
    const one = await runtime.schedules.get(wanted, ownerOf(access, query));
    if (one === undefined) throw missing(wanted);
    return reply(found, one);
  },
});

const edit = object({
  agent: optional(text({ minLength: 1, maxLength: 256, description: "Name of an agent of this server." })),
  input: optional(anyJson()),
  cron: optional(text({ maxLength: 256 })),
  everyMs: optional(integer({ minimum: 1_000 })),
  at: optional(moment),
  startAt: optional(moment),
  timeZone: optional(text({ maxLength: 64 })),
  overlap: optional(choice(overlapPolicies)),
  missed: optional(choice(missedPolicies)),
  heartbeat: optional(flag()),
  sessionId: optional(nullable(sessionId)),
  channel: optional(nullable(text({ maxLength: 1_024 }))),
  metadata: optional(nullable(anyObject())),
  budget: optional(nullable(budget)),
  timeoutWhileWaiting: optional(nullable(flag())),
  spawnBudget: optional(nullable(spawnBudget)),
  settings: optional(nullable(schemaOf<CallSettings>({ type: "object" }))),
  priority: optional(nullable(priority)),
  retention: optional(nullable(choice(Object.values(HistoryRetention)))),
});

const editSchedule = route({
  id: "schedules.edit",
  method: "PATCH",
  path: "/api/schedules/{name}",
  summary:
    "Change a schedule. What is absent stays; null removes an option of the runs. One of `cron`, `everyMs` and `at` replaces all times.",
  scope: "run",
  params,
  query: object(owner),
  body: edit,
  responses: [found],
  handle: async ({ runtime, access, params: { name: wanted }, query, body, server }) => {
    const { agent: chosen, metadata, ...changes } = body;
    const whose = ownerOf(access, query);
    const before = await runtime.schedules.get(wanted, whose);
    if (before === undefined) throw missing(wanted);
    const made =
      chosen === undefined
        ? undefined
        : await server.agents.start(chosen, {
            runId: `schedule-${wanted}`,
            input: changes.input === undefined ? before.input : changes.input,
            sessionId: undefined,
            tenantId: access.tenantId,
            userId: access.userId,
          });
    // What a resolver makes the agent from is part of the metadata, which a caller may replace.
    const own = made?.metadata ?? {};
    const kept = metadata === undefined ? ((before.run["metadata"] ?? {}) as JsonObject) : (metadata ?? {});
    const isChanged = metadata !== undefined || Object.keys(own).length > 0;
    const wantedChanges: unknown = {
      ...changes,
      ...(made !== undefined && { agent: made.agent.id }),
      ...(isChanged && { metadata: { ...kept, ...own } }),
    };
    return reply(found, await runtime.schedules.edit(wanted, wantedChanges as ScheduleEdit, whose));
  },
});

const fired = {
  status: 202,
  description: "A process that hosts the agent starts the run.",
  schema: object({ schedule, runId: text({ description: "Id of the run." }) }),
};
const runSchedule = route({
  id: "schedules.run",
  method: "POST",
  path: "/api/schedules/{name}/run",
  summary: "Start a run of a schedule at once, also while it is paused. Its next fire does not change.",
  scope: "run",
  params,
  query: object(owner),
  responses: [fired],
  handle: async ({ runtime, access, params: { name: wanted }, query }: NamedRequest) =>
    reply(fired, await runtime.schedules.runNow(wanted, ownerOf(access, query))),
});

/** Creates a route that pauses or resumes a schedule. */
function switchRoute<const Action extends "pause" | "resume">(
  action: Action,
  summary: string,
): TypedRoute<
  "POST",
  `/api/schedules/{name}/${Action}`,
  ValueOf<typeof params>,
  NamedRequest["query"],
  JsonValue,
  ValueOf<typeof schedule>
> {
  return route({
    id: `schedules.${action}`,
    method: "POST",
    path: `/api/schedules/{name}/${action}` as const,
    summary,
    scope: "run",
    params,
    query: object(owner),
    responses: [found],
    handle: async ({ runtime, access, params: { name: wanted }, query }: NamedRequest) =>
      reply(found, await runtime.schedules[action](wanted, ownerOf(access, query))),
  });
}

const removed = { status: 204, description: "The schedule is removed. Its runs stay." };
const removeSchedule = route({
  id: "schedules.remove",
  method: "DELETE",
  path: "/api/schedules/{name}",
  summary: "Remove a schedule.",
  scope: "run",
  params,
  query: object(owner),
  responses: [removed],
  handle: async ({ runtime, access, params: { name: wanted }, query }: NamedRequest) => {
    if (!(await runtime.schedules.remove(wanted, ownerOf(access, query)))) throw missing(wanted);
    return undefined;
  },
});

export const scheduleRoutes = [
  listSchedules,
  createSchedule,
  getSchedule,
  switchRoute("pause", "Stop a schedule until it is resumed."),
  switchRoute("resume", "Continue a paused schedule."),
  editSchedule,
  runSchedule,
  removeSchedule,
] as const;
