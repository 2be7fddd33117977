import {
  Fault,
  fireTimes,
  formatRunId,
  scheduleDueAt,
  type CronReader,
  type FireTimes,
  type Hash,
  type JsonValue,
  type RecordDraft,
  type RunId,
  type Schedule,
  type ScheduleState,
  type ScheduleTimes,
  type StoredRecord,
  type TenantScope,
} from "../../kernel/index.ts";
import { idDigest } from "./id-digest.ts";

/** The namespace of schedules among the records of a store. */
export const scheduleNamespace = "schedules";

/** A schedule as it is stored. Only `state` changes. */
export interface StoredSchedule extends Omit<
  Schedule,
  "status" | "nextAt" | "lastAt" | "lastRunId" | "skipped"
> {
  /** Digest of the options that the schedule was created with. */
  readonly digest: string;
  /**
   * S6: the scope of the view that created the schedule. Runs of the schedule see only sessions in this scope.
   * `null` means all sessions.
   */
  readonly scope: TenantScope | null;
  readonly state: ScheduleState;
}

/** Loads the reader of cron expressions. */
export type CronLoader = () => Promise<CronReader>;

/** Returns the fire times of a schedule. Loads the cron reader only for a cron expression. */
export async function loadTimes(times: ScheduleTimes, cron: CronLoader): Promise<FireTimes> {
  if (!("cron" in times)) return fireTimes(times, noReader);
  const reader = await cron();
  return fireTimes(times, () => reader);
}

function noReader(): never {
  throw new Fault("internal", "only a cron expression needs a reader");
}

/**
 * Returns the prefix of the keys of a user's schedules. It contains a digest of the user id, because keys are
 * printable ASCII and user ids may be any text.
 */
export function userPrefix(userId: string | null, hash: Hash): string {
  return userId === null ? "-/" : `${idDigest(`user ${userId}`, hash)}/`;
}

export function scheduleKey({ name, userId }: Pick<Schedule, "name" | "userId">, hash: Hash): string {
  return `${userPrefix(userId, hash)}${name}`;
}

/** T1: returns the id of the run that a fire starts. It is the same in every process. */
export function fireRunId({ id }: Pick<Schedule, "id">, fireAt: number, hash: Hash): RunId {
  return formatRunId(idDigest(`schedule ${id} ${fireAt}`, hash));
}

export function scheduleDraft(schedule: StoredSchedule, hash: Hash): RecordDraft {
  const { tenantId, ...value } = schedule;
  return {
    namespace: scheduleNamespace,
    key: scheduleKey(schedule, hash),
    tenantId,
    // Every field is JSON: `create` has checked those that callers choose.
    value: value as unknown as JsonValue,
    dueAt: scheduleDueAt(schedule.state),
  };
}

export function storedSchedule({ value, tenantId }: StoredRecord): StoredSchedule {
  return { ...(value as unknown as Omit<StoredSchedule, "tenantId">), tenantId };
}

/** The schedule as callers see it. */
export function scheduleView({
  state,
  digest: _digest,
  scope: _scope,
  ...definition
}: StoredSchedule): Schedule {
  const { nextAt, firing, paused, lastAt, lastRunId, skipped } = state;
  const due = firing ?? nextAt;
  return {
    ...definition,
    status: paused ? "paused" : due === null ? "done" : "active",
    nextAt: paused ? firing : due,
    lastAt,
    lastRunId,
    skipped,
  };
}
