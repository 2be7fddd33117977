import {
  agentIdOf,
  describeValue,
  Fault,
  newScheduleState,
  pausedState,
  resumedState,
  retimedState,
  startedState,
  type Clock,
  type Hash,
  type HostedAgent,
  type IdSource,
  type Records,
  type RuntimeSchedules,
  type Schedule,
  type ScheduleEdit,
  type ScheduleFire,
  type ScheduleOptions,
  type ScheduleOwner,
  type ScheduleQuery,
  type ScheduleState,
  type ScheduleTimes,
  type StoredRecord,
  type TenantScope,
  is,
  optionTable,
  type OptionKinds,
} from "../../kernel/index.ts";
import {
  fireRunId,
  loadTimes,
  scheduleDraft as recordOf,
  scheduleKey,
  scheduleNamespace,
  scheduleView,
  storedSchedule,
  userPrefix,
  type CronLoader,
  type StoredSchedule,
} from "../process/schedule-record.ts";
import { uuidSource } from "../process/system-sources.ts";
import {
  changesTimes,
  checkScheduleEdit,
  checkScheduleOptions,
  editedOptions,
  optionText,
  scheduledAgent,
  scheduleDraft,
  scheduleName,
  scheduleTimes,
} from "./schedule-arguments.ts";

export interface StoredSchedulesOptions {
  readonly records: Records;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly hash: Hash;
  readonly cron: CronLoader;
  /** S6: the scope of the caller. If absent, the caller sees all schedules. */
  readonly scope?: TenantScope | undefined;
  /** Maximum number of schedules of each tenant. `null` means no maximum. Default: 1_000. */
  readonly maxPerTenant?: number | null | undefined;
  /** Throws if the runtime is closed. */
  readonly check?: () => void;
  /** Returns options or a query with the tenant and the user of the caller. Throws if they name others. */
  readonly own?: <Options extends ScheduleOwner>(owner: string, options: Options) => Options;
  /** Hosts the agent of a schedule in this process. */
  readonly register?: (agent: HostedAgent) => void;
}

/** Default of `maxSchedulesPerTenant`. */
const mostSchedulesPerTenant = 1_000;

/** Name of `list` as the caller of `own`. Unlike the other methods, `list` selects schedules and does not name one. */
export const listOwner = "schedules.list()";

const ownerTable = optionTable({ tenantId: is.any, userId: is.any } satisfies OptionKinds<ScheduleOwner>);
const queryTable = optionTable({
  tenantId: is.any,
  userId: is.any,
  agentId: is.text(),
} satisfies OptionKinds<ScheduleQuery>);

/** The schedules of a store, as its callers see them. */
export class StoredSchedules implements RuntimeSchedules {
  readonly #options: StoredSchedulesOptions;
  readonly #cap: number | null;

  constructor(options: StoredSchedulesOptions) {
    this.#options = options;
    this.#cap = options.maxPerTenant === undefined ? mostSchedulesPerTenant : options.maxPerTenant;
  }

  async create(options: ScheduleOptions): Promise<Schedule> {
    const { records, clock, ids, hash, cron, scope = null, check, register } = this.#options;
    check?.();
    checkScheduleOptions(options);
    const own = this.#own("schedules.create()", options);
    const agentId = scheduledAgent(own.agent);
    const draft = scheduleDraft(own, agentId);
    const digest = hash(optionText(own, agentId));
    const now = clock.now();
    const times = await scheduleTimes(own, now, cron);
    const place = { namespace: scheduleNamespace, key: scheduleKey(draft, hash), tenantId: draft.tenantId };
    if (typeof own.agent !== "string") {
      // Each fire reads its input again. An input that no fire could use is refused here.
      await own.agent.readInput?.(own.input, "caller");
      register?.(own.agent);
    }
    for (;;) {
      const found = await records.get(place);
      const existing = found && storedSchedule(found);
      if (existing?.digest === digest) return scheduleView(existing);
      if (existing !== undefined && own.replace !== true) throw taken(existing);
      const first = newScheduleState(await this.#firstFire(draft.name, times, now));
      const state = { ...first, ...(existing !== undefined && lastFire(existing, hash)) };
      const schedule = { ...draft, id: ids.next(), digest, scope, times, createdAt: now, state };
      const cap = draft.tenantId === null ? undefined : (this.#cap ?? undefined);
      const written = await records.put(recordOf(schedule, hash), found?.version ?? "absent", cap);
      if (written.kind === "stored") return scheduleView(schedule);
      if (written.isFull === true) throw tooMany(draft.tenantId, this.#cap);
    }
  }

  async #firstFire(name: string, times: ScheduleTimes, now: number): Promise<number> {
    // A cron expression fires after now; the caller has chosen the other times exactly.
    const first = (await loadTimes(times, this.#options.cron)).next("cron" in times ? now : now - 1);
    if (first !== null) return first;
    const problem =
      "at" in times
        ? `invalid at of schedule ${name}: the time has passed; choose a later one`
        : `invalid cron ${JSON.stringify("cron" in times ? times.cron : "")} of schedule ${name}: it never fires; choose days that exist, such as "0 0 28 2 *"`;
    throw new Fault("invalid_argument", problem);
  }

  async get(name: string, owner: ScheduleOwner = {}): Promise<Schedule | undefined> {
    const found = await this.#find("schedules.get()", name, owner);
    return found && scheduleView(storedSchedule(found));
  }

  async list(query: ScheduleQuery = {}): Promise<readonly Schedule[]> {
    const { records, hash, check } = this.#options;
    check?.();
    queryTable.read(listOwner, query);
    const agentId = query.agentId === undefined ? undefined : agentIdOf(query.agentId);
    const { tenantId, userId } = this.#own(listOwner, query);
    const whose = {
      namespace: scheduleNamespace,
      ...(tenantId === undefined ? { allTenants: true } : { tenantId }),
      ...(userId !== undefined && { prefix: userPrefix(userId, hash) }),
    };
    const schedules: Schedule[] = [];
    let after: string | undefined;
    do {
      const page = await records.list({ ...whose, after });
      for (const record of page.records) schedules.push(scheduleView(storedSchedule(record)));
      after = page.next ?? undefined;
    } while (after !== undefined);
    return agentId === undefined ? schedules : schedules.filter((each) => each.agentId === agentId);
  }

  async remove(name: string, owner: ScheduleOwner = {}): Promise<boolean> {
    for (;;) {
      const found = await this.#find("schedules.remove()", name, owner);
      if (found === undefined) return false;
      const { namespace, key, tenantId, version } = found;
      const { kind } = await this.#options.records.delete({ namespace, key, tenantId }, version);
      if (kind === "deleted") return true;
    }
  }

  pause(name: string, owner: ScheduleOwner = {}): Promise<Schedule> {
    return this.#change("schedules.pause()", name, owner, async ({ state }) => pausedState(state));
  }

  resume(name: string, owner: ScheduleOwner = {}): Promise<Schedule> {
    const { clock, cron } = this.#options;
    return this.#change("schedules.resume()", name, owner, async ({ state, times }) =>
      state.paused ? resumedState(state, await loadTimes(times, cron), clock.now()) : state,
    );
  }

  async edit(name: string, changes: ScheduleEdit, owner: ScheduleOwner = {}): Promise<Schedule> {
    const { clock, cron, register } = this.#options;
    const caller = "schedules.edit()";
    checkScheduleEdit(caller, changes);
    const { agent } = changes;
    const agentId = agent === undefined ? undefined : scheduledAgent(agent);
    const changed = await this.#put(caller, name, owner, async (schedule) => {
      const { state } = schedule;
      if (state.firing !== null) throw starting(schedule);
      const options = editedOptions(schedule, changes);
      const draft = scheduleDraft(options, agentId ?? schedule.agentId);
      if (!changesTimes(changes)) return { ...schedule, ...draft };
      const now = clock.now();
      const times = await scheduleTimes(options, now, cron);
      // T3: a fire time never repeats.
      const first = await this.#firstFire(name, times, Math.max(now, (state.lastAt ?? -1) + 1));
      return { ...schedule, ...draft, times, state: retimedState(state, first) };
    });
    if (agent !== undefined && typeof agent !== "string") register?.(agent);
    return scheduleView(changed);
  }

  async runNow(name: string, owner: ScheduleOwner = {}): Promise<ScheduleFire> {
    const { clock, hash } = this.#options;
    const changed = await this.#put("schedules.runNow()", name, owner, async (schedule) => ({
      ...schedule,
      state: startedState(schedule.state, clock.now()),
    }));
    const { firing } = changed.state;
    if (firing === null) throw new Fault("internal", `schedule ${name} starts no run`);
    return { schedule: scheduleView(changed), runId: fireRunId(changed, firing, hash) };
  }

  async #change(
    caller: string,
    name: string,
    owner: ScheduleOwner,
    change: (schedule: StoredSchedule) => Promise<ScheduleState>,
  ): Promise<Schedule> {
    return scheduleView(
      await this.#put(caller, name, owner, async (schedule) => ({
        ...schedule,
        state: await change(schedule),
      })),
    );
  }

  /** Changes a stored schedule. If another process changes it at the same time, tries again. */
  async #put(
    caller: string,
    name: string,
    owner: ScheduleOwner,
    change: (schedule: StoredSchedule) => Promise<StoredSchedule>,
  ): Promise<StoredSchedule> {
    const { records, hash } = this.#options;
    for (;;) {
      const found = await this.#find(caller, name, owner);
      if (found === undefined)
        throw new Fault(
          "not_found",
          `schedule ${name} does not exist; schedules.list() returns the schedules`,
        );
      const changed = await change(storedSchedule(found));
      const { kind } = await records.put(recordOf(changed, hash), found.version);
      if (kind === "stored") return changed;
    }
  }

  async #find(caller: string, name: string, owner: ScheduleOwner): Promise<StoredRecord | undefined> {
    const { records, hash, check } = this.#options;
    check?.();
    ownerTable.read(caller, owner);
    const { tenantId = null, userId = null } = this.#own(caller, owner);
    const key = scheduleKey({ name: scheduleName(name), userId }, hash);
    return records.get({ namespace: scheduleNamespace, key, tenantId });
  }

  #own<Options extends ScheduleOwner>(caller: string, options: Options): Options {
    return this.#options.own?.(caller, options) ?? options;
  }
}

/** Returns the schedules of a store for which this process has no runtime that executes them. */
export function storedSchedules(options: Omit<StoredSchedulesOptions, "ids">): RuntimeSchedules {
  return new StoredSchedules({ ...options, ids: uuidSource });
}

/**
 * Returns the last fire of a schedule that is replaced. Its run may still be in progress, so that `overlap` must
 * know it. A fire that was already decided may have started its run.
 */
function lastFire(schedule: StoredSchedule, hash: Hash): Pick<ScheduleState, "lastAt" | "lastRunId"> {
  const { firing, lastAt, lastRunId } = schedule.state;
  if (firing === null) return { lastAt, lastRunId };
  return { lastAt: firing, lastRunId: fireRunId(schedule, firing, hash) };
}

function tooMany(tenantId: string | null, cap: number | null): Fault {
  return new Fault(
    "permission_denied",
    `tenant ${describeValue(tenantId)} has ${cap} schedules, and maxSchedulesPerTenant of openRuntime() allows no more; remove a schedule, or raise the option`,
    { details: { tenantId, maxSchedulesPerTenant: cap } },
  );
}

function starting({ name, id }: StoredSchedule): Fault {
  return new Fault(
    "agent_busy",
    `schedule ${name} is starting a run, which would get other options; edit it again when the run has started`,
    { details: { name, id } },
  );
}

function taken({ name, id }: StoredSchedule): Fault {
  return new Fault(
    "already_exists",
    `schedule ${name} exists with other options: choose another name, remove it, or set replace: true`,
    { details: { name, id } },
  );
}
