import {
  agentIdOf,
  assertJson,
  callSettings,
  canonicalJson,
  describeValue,
  executionBudget,
  Fault,
  formatAgentId,
  missedPolicies,
  nameProblem,
  overlapPolicies,
  parseHistoryRetention,
  parsePriority,
  parseSessionId,
  readProperty,
  spawnBudget,
  type AgentId,
  type CronReader,
  type HostedAgent,
  type JsonObject,
  type JsonValue,
  type ScheduleEdit,
  type ScheduleOptions,
  type ScheduleTimes,
  is,
  optionTable,
  type OptionKinds,
} from "../../kernel/index.ts";
import type { CronLoader, StoredSchedule } from "../process/schedule-record.ts";
import { assertMetadataSize } from "../process/size-limit.ts";

const owner = "schedules.create()";

const scheduleTable = optionTable(
  {
    name: is.any,
    agent: is.any,
    input: is.any,
    cron: is.any,
    timeZone: is.any,
    everyMs: is.any,
    startAt: is.any,
    at: is.any,
    overlap: is.choice(overlapPolicies),
    missed: is.choice(missedPolicies),
    replace: is.boolean(),
    sessionId: is.any,
    userId: is.any,
    tenantId: is.any,
    channel: is.any,
    metadata: is.any,
    budget: is.any,
    timeoutWhileWaiting: is.boolean(),
    spawnBudget: is.any,
    settings: is.any,
    priority: is.any,
    retention: is.any,
    heartbeat: is.boolean(),
  } satisfies OptionKinds<ScheduleOptions>,
  (name) =>
    name === "context" ? "a schedule is stored, so register the agent with a `context` function" : undefined,
);

/** The options that `edit` accepts. The name and the owner of a schedule never change. */
const editTable = optionTable(
  {
    agent: is.any,
    input: is.any,
    cron: is.any,
    timeZone: is.any,
    everyMs: is.any,
    startAt: is.any,
    at: is.any,
    overlap: is.choice(overlapPolicies),
    missed: is.choice(missedPolicies),
    sessionId: is.any,
    channel: is.any,
    metadata: is.any,
    budget: is.any,
    timeoutWhileWaiting: is.any,
    spawnBudget: is.any,
    settings: is.any,
    priority: is.any,
    retention: is.any,
    heartbeat: is.any,
  } satisfies OptionKinds<ScheduleEdit>,
  (name) =>
    name === "name" || name === "tenantId" || name === "userId"
      ? "the name and the owner of a schedule do not change; create another schedule, and remove this one"
      : undefined,
);

const timeNames = ["cron", "everyMs", "at", "startAt", "timeZone"] as const;

export function checkScheduleEdit(caller: string, changes: ScheduleEdit): void {
  editTable.read(caller, changes);
}

/** Whether an edit changes the times at which the schedule fires. */
export function changesTimes(changes: ScheduleEdit): boolean {
  return timeNames.some((name) => changes[name] !== undefined);
}

/**
 * Returns the options of a schedule with the changes of an edit. They are then checked like those of a new
 * schedule.
 */
export function editedOptions(schedule: StoredSchedule, changes: ScheduleEdit): ScheduleOptions {
  const { name, tenantId, userId, agentId, input, overlap, missed, heartbeat, run, times } = schedule;
  const hasNewTimes = changes.cron !== undefined || changes.everyMs !== undefined || changes.at !== undefined;
  const before = {
    name,
    ...(tenantId !== null && { tenantId }),
    ...(userId !== null && { userId }),
    agent: agentId,
    input,
    overlap,
    missed,
    heartbeat,
    ...run,
    ...(hasNewTimes ? "cron" in times && changes.cron !== undefined && { timeZone: times.timeZone } : times),
  };
  const given = Object.entries(changes).filter(([, value]) => value !== undefined);
  const merged = { ...before, ...Object.fromEntries(given) };
  // `null` removes an option. The input may be null.
  const kept = Object.entries(merged).filter(([key, value]) => value !== null || key === "input");
  return Object.fromEntries(kept) as unknown as ScheduleOptions;
}

/** Minimum interval between two fires, in milliseconds. */
const minIntervalMs = 1_000;

/** The largest time that a `Date` can represent, in epoch milliseconds. */
const maxTime = 8_640_000_000_000_000;

/** A checked schedule without its id, its digest and the fields that are set when it is stored. */
export type ScheduleDraft = Omit<StoredSchedule, "id" | "digest" | "scope" | "state" | "createdAt" | "times">;

export function checkScheduleOptions(options: ScheduleOptions): void {
  scheduleTable.read(owner, options);
}

/** Everything of a schedule but its times. */
export function scheduleDraft(options: ScheduleOptions, agentId: AgentId): ScheduleDraft {
  const { input, overlap = "skip", missed = "once", heartbeat = false } = options;
  const { tenantId = null, userId = null } = options;
  for (const name of ["tenantId", "userId", "channel"] as const) requireName(name, options[name]);
  assertJson(input, `the input of schedule ${options.name}`);
  return {
    name: scheduleName(options.name),
    tenantId,
    userId,
    agentId,
    input,
    overlap,
    missed,
    heartbeat,
    run: runOptions(options),
  };
}

/**
 * Returns a text that identifies the options of a schedule, so that repeating a call does not create the schedule
 * again.
 */
export function optionText(options: ScheduleOptions, agentId: AgentId): string {
  const { agent: _agent, replace: _replace, ...own } = options;
  return canonicalJson({ ...own, agentId });
}

export function scheduleName(name: unknown): string {
  try {
    return formatAgentId({ name: name as string });
  } catch (error) {
    throw new Fault(
      "invalid_argument",
      Fault.from(error).message.replace("agent name", "name of a schedule"),
    );
  }
}

/** The id of the agent of a schedule. */
export function scheduledAgent(agent: HostedAgent | string): AgentId {
  if (typeof agent === "string") return agentIdOf(agent);
  if (typeof agent?.run === "function") return agentIdOf(agent.id);
  throw refused("agent", agent, "an agent, or the id of an agent");
}

/**
 * Returns the options of the runs as JSON. They are checked at creation, because no caller could correct them when
 * the schedule fires.
 */
function runOptions(options: ScheduleOptions): JsonObject {
  const { sessionId, channel, metadata, budget, spawnBudget: seats, settings } = options;
  const { timeoutWhileWaiting = false, priority, retention } = options;
  const run: Record<string, unknown> = {
    ...(sessionId !== undefined && { sessionId: parseSessionId(sessionId) }),
    ...(channel !== undefined && { channel }),
    ...(metadata !== undefined && { metadata }),
    ...(budget !== undefined && { budget: withoutUndefined(budget) }),
    ...(timeoutWhileWaiting && { timeoutWhileWaiting }),
    ...(seats !== undefined && { spawnBudget: withoutUndefined(seats) }),
    ...(settings !== undefined && { settings: callSettings("a schedule", settings) }),
    ...(priority !== undefined && { priority: parsePriority(priority) }),
    ...(retention !== undefined && { retention: parseHistoryRetention(retention) }),
  };
  if (budget !== undefined) executionBudget(budget);
  if (seats !== undefined) spawnBudget(seats);
  if (
    metadata !== undefined &&
    (typeof metadata !== "object" || metadata === null || Array.isArray(metadata))
  )
    throw refused("metadata", metadata, "an object");
  assertJson(run, `the options of schedule ${options.name}`);
  // A fire adds the name of the schedule and the time.
  const fired = { ...metadata, schedule: options.name, fireAt: maxTime };
  assertMetadataSize(fired, `the metadata of schedule ${options.name}`);
  return run;
}

function withoutUndefined(value: object): Record<string, JsonValue> {
  return Object.fromEntries(Object.entries(value).filter(([, each]) => each !== undefined));
}

/** Returns the times of a schedule that is created at `now`. */
export async function scheduleTimes(
  options: ScheduleOptions,
  now: number,
  cron: CronLoader,
): Promise<ScheduleTimes> {
  const { timeZone = "UTC", everyMs, at } = options;
  const given = (["cron", "everyMs", "at"] as const).filter((name) => options[name] !== undefined);
  if (given.length !== 1)
    throw new Fault(
      "invalid_argument",
      `invalid times of schedule ${options.name}: expected exactly one of cron, everyMs and at, not ${given.length === 0 ? "none" : given.join(" and ")}`,
    );
  if (given[0] === "at" && readProperty(options, "startAt") !== undefined)
    throw new Fault(
      "invalid_argument",
      `invalid startAt of schedule ${options.name}: at is the only fire; omit startAt`,
    );
  const reader = needsReader(options) ? await cron() : undefined;
  const readTime = (name: "at" | "startAt"): number | undefined =>
    timeOf(name, options[name], timeZone, reader);
  const startAt = readTime("startAt");
  if (options.cron !== undefined) {
    reader?.fires(options.cron, timeZone);
    return { cron: options.cron, timeZone, ...(startAt !== undefined && { startAt }) };
  }
  if (options.timeZone !== undefined && reader === undefined)
    throw new Fault(
      "invalid_argument",
      `invalid timeZone of schedule ${options.name}: it has no effect here; use cron, or a time without an offset such as "2026-11-20T09:00"`,
    );
  if (at !== undefined) return { at: readTime("at") ?? now };
  if (
    typeof everyMs !== "number" ||
    !Number.isSafeInteger(everyMs) ||
    everyMs < minIntervalMs ||
    everyMs > maxTime
  )
    throw refused("everyMs", everyMs, `an integer from ${minIntervalMs}, in milliseconds`);
  return { everyMs, startAt: startAt ?? now + everyMs };
}

function needsReader({ cron, at, startAt }: ScheduleOptions): boolean {
  return cron !== undefined || typeof at === "string" || typeof startAt === "string";
}

function timeOf(
  name: "at" | "startAt",
  value: unknown,
  timeZone: string,
  reader: CronReader | undefined,
): number | undefined {
  if (value === undefined) return undefined;
  if (typeof value === "string" && reader !== undefined) return reader.time(value, timeZone);
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0 && value <= maxTime)
    return value;
  throw refused(name, value, 'whole epoch milliseconds, or a time such as "2026-11-20T09:00"');
}

function requireName(name: "tenantId" | "userId" | "channel", value: unknown): void {
  const problem = value === undefined || value === null ? undefined : nameProblem(value);
  if (problem !== undefined) throw new Fault("invalid_argument", `invalid ${name} of ${owner}: ${problem}`);
}

function refused(name: string, value: unknown, rule: string): Fault {
  return new Fault(
    "invalid_argument",
    `invalid ${name} ${describeValue(value)} of ${owner}: expected ${rule}`,
  );
}
