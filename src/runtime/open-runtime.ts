import { randomUUID } from "node:crypto";
import {
  agentIdOf,
  Fault,
  formatRunId,
  parseAgentId,
  parseRunId,
  parseSessionId,
  retrySettings,
  type HostedAgent,
  type AgentId,
  type Clock,
  type Delivery,
  type Hash,
  type AgentVersion,
  type IdSource,
  type JsonValue,
  type Lease,
  type DriveResult,
  type InboxSettings,
  type PriceTable,
  type Random,
  type RetrySettings,
  type RunHandle,
  type RunId,
  type RunPage,
  type RunQuery,
  type RunRecord,
  type Runtime,
  type Store,
  type SubmitOptions,
  type UnknownPrice,
} from "../kernel/index.ts";
import { CallTimeouts } from "./process/call-timeouts.ts";
import { castOf, RunAgents } from "./worker/run-agents.ts";
import { ContentHashes } from "./process/content-hashes.ts";
import { IdleFlusher } from "./process/idle-flusher.ts";
import { LocalEngine } from "./worker/local-engine.ts";
import { InboxDispatcher } from "./worker/inbox-dispatcher.ts";
import type { WorkerContext, VersionPolicy } from "./process/worker-context.ts";
import { openStore, type StoreAddress } from "./open-store.ts";
import { CompactingMap } from "./process/compacting-map.ts";
import { RetentionSweep } from "./worker/retention-sweep.ts";
import { StoredRunHandle } from "./client/run-handle.ts";
import { RuntimeLifetime } from "./process/runtime-lifetime.ts";
import { RunOwner } from "./run/run-owner.ts";
import { runRetry, type RunRetry } from "./process/run-retry.ts";
import { sha256 } from "./process/sha256.ts";
import { TaskSlots } from "./process/task-slots.ts";
import { submitRun } from "./client/submit-run.ts";
import { sessionBusy } from "./client/session-busy.ts";
import { systemClock } from "./process/system-clock.ts";
import { systemRandom } from "./process/system-random.ts";
import { uuidSource } from "./process/uuid-source.ts";

export interface RuntimeOptions {
  /** `"memory:"`, which is meant when none is named, `"sqlite:PATH"`, or a store. */
  readonly store?: StoreAddress | Store;
  /** E1: keys the event chain of a store that is named by its address. */
  readonly auditKey?: string;
  /**
   * Of a store that is named by its address: how often a message is tried that was handed back (`maxDeliveries`, 5 unless told), and how long
   * it is left alone before (`baseDelayMs`, 1,000, then four times as long each time, `maxDelayMs`, 300,000, at most).
   */
  readonly inbox?: Partial<InboxSettings>;
  readonly clock?: Clock;
  readonly ids?: IdSource;
  readonly hash?: Hash;
  readonly random?: Random;
  /** Without one, no price is known. */
  readonly prices?: PriceTable;
  readonly unknownPrice?: UnknownPrice;
  /** The share of a cap at which `budget_warning` is told, once per task and dimension. 0.8 unless told. */
  readonly warnAt?: number;
  /** J9: what to do with a run that another version of its agent began. `resume` unless told. */
  readonly versionPolicy?: VersionPolicy;
  readonly retry?: Partial<RetrySettings>;
  readonly runRetry?: Partial<RunRetry>;
  /** Active tasks at once. */
  readonly concurrency?: number;
  /** How long a run that only waits stays in memory. */
  readonly suspendAfterMs?: number;
  readonly pollMs?: number;
  /** Whether it keeps the process alive until it is closed, as a worker's is to. `true` unless told; a run under way always does. */
  readonly keepAlive?: boolean;
  /**
   * What registering another agent under a name that is taken does: `refuse`, unless told; `replace` is for programs that make agents
   * as they go, and each run keeps the agents it was submitted with while this process drives it.
   */
  readonly sameName?: "refuse" | "replace";
  /**
   * How long calls may still take once their task is told to stop, by a cancel, a deadline or a hand-off that took too long. One that has not
   * settled by then is charged as lost and given up; code that does not end then either is left where it stands. 5,000 unless told.
   */
  readonly stopGraceMs?: number;
  /** How long `close` waits for calls that are open; what is open then is charged as lost. 10,000 unless told. */
  readonly closeGraceMs?: number;
  /** Signals of the process on which it closes by itself, such as `["SIGTERM"]`. None unless told. */
  readonly closeOn?: readonly NodeJS.Signals[];
  readonly workerId?: string;
  /**
   * How long a run is kept after its end; then it is collected, with all it holds, and its session stays. For ever unless told. With 0 only
   * who waits for its result by then has it.
   */
  readonly keepEndedRunsMs?: number;
  /**
   * How long a session is kept that nobody named and nobody came back to, after what was last said in it and when its run is gone. For ever
   * unless told.
   */
  readonly keepUnnamedSessionsMs?: number;
  /** Errors that belong to no caller: a run that could not be loaded, a store that failed. A process warning unless told. */
  readonly onError?: (error: Fault) => void;
}

/** Opens a runtime on a store and goes on with whatever was left there. */
export async function openRuntime(options: RuntimeOptions = {}): Promise<Runtime> {
  const { clock = systemClock, hash = sha256 } = options;
  const store = await openOwn(options, hash, clock);
  try {
    const runtime = new LocalRuntime(store, { ...options, clock, hash });
    await runtime.start();
    return runtime;
  } catch (error) {
    // Whoever handed a store in keeps it; what was opened here nobody else could close.
    if (typeof options.store !== "object") await store.close();
    throw error;
  }
}

function openOwn(options: RuntimeOptions, hash: Hash, clock: Clock): Promise<Store> {
  const { store = "memory:", auditKey, inbox: mail } = options;
  if (typeof store === "string")
    return openStore(store, {
      hash,
      clock,
      ...(auditKey === undefined ? {} : { auditKey }),
      ...(mail === undefined ? {} : { inbox: mail }),
    });
  const [own] = Object.entries({ auditKey, mail }).find(([, value]) => value !== undefined) ?? [];
  if (own === undefined) return Promise.resolve(store);
  throw new Fault("invalid_argument", `${own} is for a store named by its address: give this store its own`);
}

/** How long something is kept. */
type RetentionOption = "keepEndedRunsMs" | "keepUnnamedSessionsMs";

class LocalRuntime implements Runtime {
  readonly clock: Clock;
  readonly #owner: WorkerContext;
  readonly #store: Store;
  readonly #engine: LocalEngine;
  readonly #mailroom: InboxDispatcher;
  readonly #agents = new Map<AgentId, HostedAgent>();
  /** Those, as the engine names them; made anew when there are others. */
  #hosted: readonly AgentVersion[] | undefined;
  readonly #sameName: "refuse" | "replace";
  readonly #casts = new RunAgents();
  readonly #owned = new CompactingMap<RunId, RunOwner>();
  /** Runs that rest, whose observers are not through with them. */
  readonly #settling = new CompactingMap<RunId, Promise<void>>();
  /** Runs of which the store would not take something; driven again, they fail by it. */
  readonly #refused = new Map<RunId, Fault>();
  readonly #onError: (error: Fault) => void;
  readonly #endedRuns: RetentionSweep | undefined;
  /** That one among them. */
  readonly #sweeps: readonly RetentionSweep[];
  readonly #closeGraceMs: number;
  readonly #closeOn: readonly NodeJS.Signals[];
  readonly #onSignal = (): void => {
    this.close().catch((error: unknown) => this.#report(error));
  };
  readonly #life = new RuntimeLifetime();
  #forget: (() => void) | undefined;
  #closing: Promise<void> | undefined;

  constructor(store: Store, options: RuntimeOptions & { readonly clock: Clock; readonly hash: Hash }) {
    const { clock, hash } = options;
    this.clock = clock;
    const concurrency = requireNumber("concurrency", options.concurrency ?? 64, 1);
    this.#onError = options.onError ?? warn;
    this.#closeGraceMs = requireNumber("closeGraceMs", options.closeGraceMs ?? 10_000, 0);
    this.#closeOn = options.closeOn ?? [];
    this.#sameName = options.sameName ?? "refuse";
    const onError = (error: unknown): void => this.#report(error);
    const sweep = (option: RetentionOption, letGo: (before: number) => Promise<unknown>) => {
      const keepMs = options[option];
      return keepMs === undefined ? undefined : new RetentionSweep({ option, keepMs, letGo, clock, onError });
    };
    this.#endedRuns = sweep("keepEndedRunsMs", (endedBefore) => this.collect({ endedBefore }));
    this.#sweeps = [
      this.#endedRuns,
      sweep("keepUnnamedSessionsMs", (unnamedBefore) => store.sessions.collect({ unnamedBefore })),
    ].filter((each) => each !== undefined);
    this.#store = store;
    this.#owner = {
      store: this.#store,
      clock,
      hash,
      ids: options.ids ?? uuidSource,
      random: options.random ?? systemRandom,
      prices: options.prices ?? { find: () => null },
      unknownPrice: options.unknownPrice ?? "refuse",
      ...(options.warnAt === undefined ? {} : { warnAt: requireShare(options.warnAt) }),
      ...(options.versionPolicy === undefined ? {} : { versionPolicy: options.versionPolicy }),
      retry: retrySettings(options.retry),
      runRetry: runRetry(options.runRetry),
      slots: new TaskSlots(concurrency),
      callTimers: new CallTimeouts(clock),
      idleWrites: new IdleFlusher(),
      contentNames: new ContentHashes(hash),
      stopGraceMs: requireNumber("stopGraceMs", options.stopGraceMs ?? 5_000, 0),
      suspendAfterMs: requireNumber("suspendAfterMs", options.suspendAfterMs ?? 5_000, 0),
      noteIdle: (by) => this.#engine.noteIdle(by),
      onError: (error) => this.#report(error),
      agents: this.#agents,
    };
    const keepAlive = options.keepAlive ?? true;
    this.#mailroom = new InboxDispatcher({ owner: this.#owner, agents: this.#agents, keepAlive });
    this.#engine = new LocalEngine({
      leases: this.#store.leases,
      clock,
      workerId: options.workerId ?? `worker-${randomUUID()}`,
      concurrency: Math.max(concurrency * 16, 1_024),
      agents: () => (this.#hosted ??= hostedAgents(this.#agents.values(), options.versionPolicy)),
      pollMs: requireNumber("pollMs", options.pollMs ?? 500, 1),
      keepAlive,
      onError,
    });
  }

  async start(): Promise<void> {
    this.#forget = this.#store.onChange((runId) => this.#noteChange(runId));
    try {
      await this.#engine.start({ drive: (lease) => this.#drive(lease) });
    } catch (error) {
      this.#forget();
      throw error;
    }
    for (const signal of this.#closeOn) process.on(signal, this.#onSignal);
    for (const each of this.#sweeps) each.start();
  }

  register(agent: HostedAgent): void {
    if (this.#agents.get(agent.id) === agent) return;
    // All of them are looked at before the first is taken in: nobody is left half registered.
    const cast = castOf(agent);
    if (this.#sameName === "refuse") for (const each of cast.values()) this.#refuseOther(each);
    for (const [agentId, each] of cast) this.#agents.set(agentId, each);
    this.#hosted = undefined;
    this.#engine.hostsChanged();
    this.#mailroom.look();
  }

  #refuseOther(agent: HostedAgent): void {
    const known = this.#agents.get(agent.id);
    if (known === undefined || known === agent) return;
    throw new Fault(
      "already_exists",
      `another agent is registered as ${agent.id}: give one of them another name or a key, or open the runtime with sameName: "replace"`,
    );
  }

  async submit(agent: HostedAgent, input: JsonValue, options: SubmitOptions = {}): Promise<RunHandle> {
    this.#life.check();
    if (this.#sameName === "replace")
      return this.#handle(await this.#submitCast(agent, input, options), options.userId);
    this.register(agent);
    const submitted = submitRun(this.#owner, this.#engine, agent, input, options);
    return this.#handle(submitted instanceof Promise ? await submitted : submitted, options.userId);
  }

  /** A cast is kept for as long as a run it was submitted with: for none that was refused, became steering, or stood there before. */
  async #submitCast(agent: HostedAgent, input: JsonValue, options: SubmitOptions): Promise<RunRecord> {
    const cast = castOf(agent);
    this.register(agent);
    const { runId: wanted } = options;
    const runId = wanted === undefined ? formatRunId(this.#owner.ids.next()) : parseRunId(wanted);
    const stands = wanted !== undefined && (await this.#store.journal.find(runId)) !== undefined;
    const isMine = !stands && this.#casts.get(runId) === undefined;
    // Before the submission: a worker may begin with it in the same breath.
    if (isMine) this.#casts.set(runId, cast);
    let startedAs: RunId | undefined;
    try {
      const record = await submitRun(this.#owner, this.#engine, agent, input, { ...options, runId });
      startedAs = record.runId;
      return record;
    } finally {
      if (isMine && startedAs !== runId) this.#casts.delete(runId);
    }
  }

  async find(runId: string): Promise<RunHandle | undefined> {
    this.#life.check();
    const record = await this.#store.journal.find(parseRunId(runId));
    return record === undefined ? undefined : this.#handle(record);
  }

  async list(query: RunQuery = {}): Promise<RunPage> {
    this.#life.check();
    const { sessionId, agentId } = query;
    if (sessionId !== undefined) parseSessionId(sessionId);
    if (agentId !== undefined) parseAgentId(agentId);
    return this.#store.journal.list(query);
  }

  async collect(options: { readonly endedBefore: number }): Promise<number> {
    this.#life.check();
    const collected = await this.#store.journal.collect(options);
    await this.#casts.sweep(this.#store.journal);
    return collected;
  }

  async deadLetters(agentId?: string): Promise<readonly Delivery[]> {
    this.#life.check();
    return this.#store.inbox.deadLetters(agentId === undefined ? undefined : agentIdOf(agentId));
  }

  async redeliver(agentId: string, messageIds?: readonly string[]): Promise<number> {
    this.#life.check();
    return this.#store.inbox.redeliver(agentIdOf(agentId), messageIds);
  }

  async deleteSession(text: string): Promise<void> {
    this.#life.check();
    const sessionId = parseSessionId(text);
    const run = await this.#store.sessions.delete(sessionId);
    if (run !== undefined) throw sessionBusy(run);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#forget?.();
    this.#mailroom.close();
    for (const signal of this.#closeOn) process.off(signal, this.#onSignal);
    const stopped = this.#engine.stop();
    await Promise.allSettled([...this.#owned.values()].map((owner) => owner.release(this.#closeGraceMs)));
    await stopped;
    for (const each of this.#sweeps) await each.stop();
    await Promise.all(this.#settling.values());
    this.#life.end();
    await this.#store.close();
  }

  #handle(record: RunRecord, by?: string): RunHandle {
    const { store, clock, ids, unknownPrice } = this.#owner;
    const observed = this.#observed;
    return new StoredRunHandle({ store, clock, ids, record, life: this.#life, unknownPrice, observed, by });
  }

  #drive(lease: Lease): Promise<DriveResult> {
    const loaded = RunOwner.load(this.#ownerOf(lease.runId), lease);
    return loaded instanceof Promise
      ? loaded.then((owner) => this.#driveOwned(lease, owner))
      : this.#driveOwned(lease, loaded);
  }

  #driveOwned({ runId }: Lease, owner: RunOwner): Promise<DriveResult> {
    // Whoever closes lets go of what is owned by then, and waits for the rest.
    if (this.#closing !== undefined) return Promise.resolve({ rest: { kind: "ready" }, isReleased: false });
    this.#owned.set(runId, owner);
    return owner.drive(this.#refused.get(runId)).then(
      (left) => {
        this.#letGo(runId, owner);
        if (left.rest.kind === "ended") {
          this.#casts.delete(runId);
          this.#endedRuns?.note();
        } else if (owner.hasEnded) this.#casts.noteStopped(runId);
        return left;
      },
      (fault: unknown) => {
        this.#letGo(runId, owner);
        throw fault;
      },
    );
  }

  #letGo(runId: RunId, owner: RunOwner): void {
    if (owner.refusal === undefined) this.#refused.delete(runId);
    else this.#refused.set(runId, owner.refusal);
    if (this.#owned.get(runId) === owner) this.#owned.delete(runId);
    this.#letSettle(runId, owner);
  }

  #ownerOf(runId: RunId): WorkerContext {
    const cast = this.#casts.get(runId);
    if (cast === undefined) return this.#owner;
    return { ...this.#owner, agents: { get: (agentId) => cast.get(agentId) ?? this.#agents.get(agentId) } };
  }

  #letSettle(runId: RunId, owner: RunOwner): void {
    const forget = (): void => {
      if (this.#settling.get(runId) === settled) this.#settling.delete(runId);
    };
    const settled = owner.observed()?.then(forget, (error: unknown) => {
      forget();
      this.#report(error);
    });
    if (settled !== undefined) this.#settling.set(runId, settled);
  }

  /** Nothing to wait for where nobody observes, nor for a run that another process works on: its observers are there. */
  readonly #observed = (runId: RunId): Promise<void> | undefined => {
    const observed = this.#owned.get(runId)?.observed();
    return observed === undefined
      ? this.#settling.get(runId)
      : observed.then(() => this.#settling.get(runId));
  };

  /** A change of a run is no change of an inbox. */
  #noteChange(runId: RunId | undefined): void {
    this.#engine.wake(runId);
    if (runId !== undefined) {
      this.#owned.get(runId)?.poke();
      return;
    }
    for (const owner of this.#owned.values()) owner.poke();
    this.#mailroom.look();
  }

  #report(error: unknown): void {
    this.#onError(Fault.from(error));
  }
}

function requireNumber(name: keyof RuntimeOptions, value: number, least: number): number {
  if (value >= least) return value;
  throw new Fault("invalid_argument", `${name} is ${value}: it must be a number from ${least}`);
}

function requireShare(warnAt: number): number {
  if (warnAt > 0 && warnAt <= 1) return warnAt;
  throw new Fault(
    "invalid_argument",
    `warnAt is ${warnAt}: it must be a share of a cap, above 0 and at most 1`,
  );
}

/** J9: where runs are left for a worker of their version, others are not even claimed. */
function hostedAgents(
  agents: Iterable<HostedAgent>,
  policy: VersionPolicy = "resume",
): readonly AgentVersion[] {
  return [...agents].map(({ id: agentId, version = null }) => ({
    agentId,
    ...(policy === "pin" && { version }),
  }));
}

function warn(error: Fault): void {
  process.emitWarning(error.message, { type: "ReeveWarning", code: error.code });
}
