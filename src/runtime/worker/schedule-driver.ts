import {
  decideFire,
  Fault,
  firedState,
  heartbeatInput,
  parseRunId,
  recordsPerPage,
  rootTaskId,
  unfiredState,
  type AgentId,
  type FaultCode,
  type JsonValue,
  type RunId,
  type ScheduleState,
  type StoreChange,
  type StoredRecord,
  type SubmitOptions,
  type TenantScope,
} from "../../kernel/index.ts";
import {
  fireRunId,
  loadTimes,
  scheduleDraft,
  scheduleNamespace,
  storedSchedule,
  type CronLoader,
  type StoredSchedule,
} from "../process/schedule-record.ts";
import type { WorkerContext } from "../process/worker-context.ts";

/** The run of a fire. */
export interface ScheduledRun {
  readonly agentId: AgentId;
  readonly input: JsonValue;
  readonly options: SubmitOptions;
  /** S6: the scope of the schedule. If absent, the run may use any session. */
  readonly scope: TenantScope | undefined;
}

export interface ScheduleDriverOptions {
  readonly worker: Pick<WorkerContext, "store" | "clock" | "hash" | "onError">;
  readonly cron: CronLoader;
  /** Whether this process hosts no agent at all. */
  readonly hostsNothing: () => boolean;
  /** Whether this process hosts the agent, or a resolver for agents of its name. */
  readonly hosts: (agentId: AgentId) => boolean;
  /**
   * Starts a run, or uses the existing run with this id. Resolves with `undefined` if a resolver leaves the run to
   * other processes.
   */
  readonly submit: (run: ScheduledRun) => Promise<RunId | undefined>;
  /** Protects a run from retention until the promise settles. */
  readonly keep: <Result>(runId: RunId, until: Promise<Result>) => Promise<Result>;
  /** Resolves when the run has ended. Rejects when the runtime closes. */
  readonly ended: (runId: RunId) => Promise<void>;
}

/** Delay after an error of the store. */
const retryMs = 1_000;

/** Minimum time between two reads of the schedules that are caused by writes of other processes, in milliseconds. */
const otherMs = 1_000;

/** Fault codes for which a second attempt to start the run would fail again. */
const permanent = [
  "invalid_argument",
  "not_found",
  "permission_denied",
  "already_exists",
  "not_json",
  "too_large",
  "unsupported",
] as const satisfies readonly FaultCode[];

/**
 * Fires the schedules of a store whose agents this process hosts. Any number of processes can do this at once.
 *
 * T1, T2: a fire has three steps. The decision is stored with the expected version, so that one process makes it.
 * The run is submitted with an id that follows from schedule and fire time. The end of the fire is stored. A
 * process that finds a fire that another one has left after the first or the second step completes it.
 *
 * T4: one timer is set, to the earliest fire. The driver reads the schedules when it is reached, when a record or
 * the hosted agents change, and after writes of other processes.
 */
export class ScheduleDriver {
  readonly #options: ScheduleDriverOptions;
  /** The runs for whose end a schedule waits, by schedule id. */
  readonly #awaited = new Map<string, RunId>();
  /** Runs that this process has asked to cancel. */
  readonly #cancelled = new Set<RunId>();
  #passing: Promise<void> | undefined;
  /** Whether `wake` was called since the last read of the schedules. */
  #isDue = false;
  #isClosed = false;
  #cancelTimer: (() => void) | undefined;
  /** Time at which the schedules were last read because of writes of other processes. */
  #otherAt = -Infinity;
  #cancelOther: (() => void) | undefined;

  constructor(options: ScheduleDriverOptions) {
    this.#options = options;
  }

  /** Whether this process hosts agents and waits for a fire, so that it must stay alive. */
  get isWaiting(): boolean {
    return this.#cancelTimer !== undefined && !this.#options.hostsNothing();
  }

  noteChange(change: StoreChange): void {
    if (change.kind === "record" && change.namespace === scheduleNamespace) this.wake();
    if (change.kind === "other") this.#wakeForOthers();
  }

  /** Reads the schedules. Calls during a read cause one more read after it. */
  wake(): void {
    if (this.#isClosed || this.#options.hostsNothing()) return;
    this.#isDue = true;
    this.#passing ??= this.#passAll().finally(() => {
      this.#passing = undefined;
    });
  }

  /**
   * Reads the schedules soon, because another process may have added an earlier schedule. Other processes also
   * write for other reasons, many times per second, so that such reads are limited.
   */
  #wakeForOthers(): void {
    const { clock } = this.#options.worker;
    if (this.#isClosed || this.#options.hostsNothing() || this.#cancelOther !== undefined) return;
    const at = this.#otherAt + otherMs;
    const now = clock.now();
    // A clock that was set back does not delay the read.
    if (now >= at || now < this.#otherAt) {
      this.#otherAt = now;
      this.wake();
      return;
    }
    const wakeLate = (): void => {
      this.#cancelOther = undefined;
      this.#otherAt = clock.now();
      this.wake();
    };
    this.#cancelOther = clock.schedule(at, wakeLate, { background: true });
  }

  /** Stops the driver. Resolves when the fire in progress has been stored. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelTimer?.();
    this.#cancelOther?.();
    await this.#passing;
  }

  async #passAll(): Promise<void> {
    while (this.#isDue && !this.#isClosed) {
      this.#isDue = false;
      this.#wakeAt(await this.#pass());
    }
  }

  #wakeAt(at: number): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    if (at === Infinity || this.#isClosed) return;
    const wake = (): void => {
      this.#cancelTimer = undefined;
      this.wake();
    };
    this.#cancelTimer = this.#options.worker.clock.schedule(at, wake, { background: true });
  }

  /** Handles every schedule that is due. Returns the time at which the next one is due. `Infinity` means never. */
  async #pass(): Promise<number> {
    const { store, clock } = this.#options.worker;
    let retryAt = Infinity;
    try {
      const attended = new Set<number>();
      for (let limit = recordsPerPage; !this.#isClosed;) {
        const now = clock.now();
        const due = await store.records.due(scheduleNamespace, now, limit);
        const fresh = due.filter(({ version }) => !attended.has(version));
        for (const record of fresh) {
          attended.add(record.version);
          retryAt = Math.min(retryAt, await this.#attend(record));
        }
        if (fresh.length > 0) continue;
        // Schedules that wait stay due, and may hide others.
        if (due.length === limit) limit *= 2;
        else return Math.min(retryAt, (await store.records.nextDueAt(scheduleNamespace, now)) ?? Infinity);
      }
    } catch (error) {
      return this.#retryAfter(error);
    }
    return Infinity;
  }

  /**
   * Handles one schedule. It catches the errors of each schedule, so that one does not block the others. Returns
   * the time at which to try again.
   */
  async #attend(record: StoredRecord): Promise<number> {
    try {
      let current: StoredRecord | undefined = record;
      while (current !== undefined && !this.#isClosed) {
        const schedule = storedSchedule(current);
        if (!this.#options.hosts(schedule.agentId)) break;
        const next = await this.#step(schedule);
        if (typeof next === "number") return next;
        current = await this.#store({ ...schedule, state: next }, current.version);
      }
      return Infinity;
    } catch (error) {
      return this.#retryAfter(error);
    }
  }

  /** Stores a schedule and returns its record. If another process was first, returns the record of that one. */
  async #store(schedule: StoredSchedule, version: number): Promise<StoredRecord | undefined> {
    const { store, hash } = this.#options.worker;
    const draft = scheduleDraft(schedule, hash);
    const putting = store.records.put(draft, version);
    const { lastRunId } = schedule.state;
    const written = await (lastRunId === null ? putting : this.#options.keep(lastRunId, putting));
    if (written.kind === "conflict") return written.current;
    const { namespace, key, value, tenantId = null, dueAt = null } = draft;
    return { namespace, key, value, tenantId, dueAt, version: written.version };
  }

  /**
   * Takes the next step for a schedule. Returns the state to store. If nothing needs to be done now, returns when
   * to look again, although the schedule is still due: a waiting fire is checked at the time of the next fire,
   * which is skipped.
   */
  async #step(schedule: StoredSchedule): Promise<ScheduleState | number> {
    const { worker, cron } = this.#options;
    const { state, overlap, missed } = schedule;
    if (state.firing !== null) return (await this.#start(schedule, state.firing)) ?? Infinity;
    const times = await loadTimes(schedule.times, cron);
    const isRunning = state.lastRunId !== null && (await this.#isUnfinished(state.lastRunId));
    const now = worker.clock.now();
    const decision = decideFire(state, { overlap, missed, times, now, isRunning });
    if (decision.kind === "idle") return Infinity;
    if (decision.kind !== "wait" || decision.state !== state) return decision.state;
    if (state.lastRunId !== null) {
      if (decision.cancels) await this.#cancel(state.lastRunId, schedule);
      this.#await(schedule.id, state.lastRunId);
    }
    return times.next(now) ?? Infinity;
  }

  /** Starts the run of a fire that was decided. */
  async #start(schedule: StoredSchedule, fireAt: number): Promise<ScheduleState | undefined> {
    const { state, id, overlap } = schedule;
    try {
      const runId = await this.#options.submit(this.#runOf(schedule, fireAt));
      return runId === undefined ? undefined : firedState(state, runId);
    } catch (error) {
      const fault = Fault.from(error);
      if (fault.code === "agent_busy") {
        if (overlap === "skip") return unfiredState(state, { at: fireAt, reason: "busy" });
        const busyWith = fault.details?.["runId"];
        if (typeof busyWith === "string") this.#await(id, parseRunId(busyWith));
        return undefined;
      }
      const code = permanent.find((each) => each === fault.code);
      if (code === undefined) throw fault;
      this.#options.worker.onError(failedFire(schedule, fireAt, code, fault));
      return unfiredState(state, { at: fireAt, reason: "error", error: fault.message.slice(0, 1_000) });
    }
  }

  #runOf(schedule: StoredSchedule, fireAt: number): ScheduledRun {
    const { agentId, input, run, tenantId, userId, heartbeat, name, scope } = schedule;
    const own = run as SubmitOptions;
    return {
      agentId,
      input: heartbeat && typeof input === "string" ? heartbeatInput(input) : input,
      options: {
        ...own,
        ...(tenantId !== null && { tenantId }),
        ...(userId !== null && { userId }),
        ...(heartbeat && { heartbeat }),
        metadata: { ...own.metadata, schedule: name, fireAt },
        runId: fireRunId(schedule, fireAt, this.#options.worker.hash),
      },
      scope: scope ?? undefined,
    };
  }

  async #isUnfinished(runId: RunId): Promise<boolean> {
    const summary = await this.#options.worker.store.journal.summary(runId);
    return summary !== undefined && summary.endedAt === null;
  }

  /**
   * Asks the owner of a run to cancel it. The id of the mail is the same in all processes, so that they make only
   * one request.
   */
  async #cancel(runId: RunId, { id, name, userId, state }: StoredSchedule): Promise<void> {
    if (this.#cancelled.has(runId)) return;
    const { store, clock } = this.#options.worker;
    const body = {
      type: "cancel",
      taskId: rootTaskId,
      reason: `the next fire of schedule ${name} is due`,
    } as const;
    const mailId = `schedule ${id} ${state.nextAt}`;
    await store.mailbox.put({ id: mailId, runId, from: userId ?? "schedule", at: clock.now(), body });
    this.#cancelled.add(runId);
  }

  /** Reads the schedules again when the run has ended. */
  #await(scheduleId: string, runId: RunId): void {
    if (this.#awaited.get(scheduleId) === runId) return;
    this.#awaited.set(scheduleId, runId);
    void this.#wakeAtEnd(scheduleId, runId);
  }

  async #wakeAtEnd(scheduleId: string, runId: RunId): Promise<void> {
    let retryAt: number | undefined;
    try {
      await this.#options.ended(runId);
    } catch (error) {
      retryAt = this.#retryAfter(error);
    }
    this.#cancelled.delete(runId);
    if (this.#awaited.get(scheduleId) === runId) this.#awaited.delete(scheduleId);
    if (retryAt === undefined) this.wake();
    else this.#wakeAt(retryAt);
  }

  /** Reports the error and returns the time of the next attempt. */
  #retryAfter(error: unknown): number {
    const { clock, onError } = this.#options.worker;
    if (!this.#isClosed) onError(Fault.from(error));
    return clock.now() + retryMs;
  }
}

function failedFire(
  { name, agentId }: StoredSchedule,
  fireAt: number,
  code: (typeof permanent)[number],
  fault: Fault,
): Fault {
  return new Fault(
    code,
    `schedule ${name} could not start a run of ${agentId} for its fire at ${fireAt}: ${fault.message}`,
    { cause: fault },
  );
}
