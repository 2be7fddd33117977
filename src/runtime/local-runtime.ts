import {
  checkOptions,
  describeValue,
  Fault,
  optionNames,
  type AgentId,
  type AgentResolver,
  type CollectOptions,
  type ContextFactory,
  type DriveOptions,
  type DriveResult,
  type Engine,
  type HostedAgent,
  type JsonValue,
  type Lease,
  type RunId,
  type RunRecord,
  type RegisterOptions,
  type Runtime,
  type Store,
  type StoreChange,
  type SubmitOptions,
} from "../kernel/index.ts";
import { runEnded } from "./client/run-ended.ts";
import { submitRun } from "./client/submit-run.ts";
import { newRun } from "./journal/new-run.ts";
import { ExtensionErrors, extensionPort } from "./extension-port.ts";
import { storeOf } from "./open-store.ts";
import { AwaitedRuns } from "./process/awaited-runs.ts";
import { LiveContexts } from "./process/live-contexts.ts";
import { openRuntimes, type OpenRuntime } from "./process/open-runtimes.ts";
import type { CronLoader } from "./process/schedule-record.ts";
import { RuntimeLifetime } from "./process/runtime-lifetime.ts";
import { sha256 } from "./process/sha256.ts";
import { systemClock, uuidSource } from "./process/system-sources.ts";
import type { AgentLookup, WorkerContext } from "./process/worker-context.ts";
import { workerContext, type WorkerOptions } from "./local-worker-context.ts";
import { RunOwner } from "./run/run-owner.ts";
import { RuntimeView, type RuntimeWorker } from "./runtime-view.ts";
import { checkRuntimeOptions, requireNumber, type RuntimeOptions } from "./runtime-options.ts";
import { AgentRegistry, agentTree } from "./worker/agent-registry.ts";
import { isResolver } from "./worker/agent-resolvers.ts";
import { InboxDispatcher } from "./worker/inbox-dispatcher.ts";
import { recordEngineKind } from "./worker/engine-kind.ts";
import { LocalEngine } from "./worker/local-engine.ts";
import { ScheduleDriver, type ScheduledRun } from "./worker/schedule-driver.ts";
import { RetentionSweep } from "./worker/retention-sweep.ts";
import { UnhostedRuns } from "./worker/unhosted-runs.ts";

/**
 * Opens the store if necessary, starts a worker on it and resumes the runs in it that no worker drives. Unlike the
 * public `openRuntime`, knows no prices unless `options.prices` is given.
 */
export async function createRuntime(options: RuntimeOptions = {}): Promise<Runtime> {
  checkRuntimeOptions(options);
  const { clock = systemClock, hash = sha256 } = options;
  const store = await storeOf(options, hash, clock);
  try {
    const worker = new LocalWorker(store, { ...options, clock, hash });
    await worker.start();
    return new RuntimeView(worker);
  } catch (error) {
    // A store that the caller passed stays open. Nothing else could close a store that was opened here.
    if (typeof options.store !== "object") await store.close();
    throw error;
  }
}

const registerOptionNames = optionNames<RegisterOptions>({ context: true });

/** Maximum time of a resolver. `close` waits for it, so that a resolver which never returns must not block it. */
const resolveMs = 30_000;

/** Options that say how long something is kept. */
type RetentionOption = "keepEndedRunsMs" | "keepUnnamedSessionsMs";

/** The worker of a runtime, which hosts agents and drives runs in this process. Callers use it through a `RuntimeView`. */
class LocalWorker implements RuntimeWorker, OpenRuntime {
  readonly context: WorkerContext;
  readonly engine: Engine;
  readonly agents: AgentRegistry;
  readonly contexts = new LiveContexts();
  readonly awaited = new AwaitedRuns();
  readonly lifetime = new RuntimeLifetime();
  readonly unhosted: UnhostedRuns;
  readonly cron: CronLoader;
  readonly extensionErrors = new ExtensionErrors();
  readonly #store: Store;
  readonly #inbox: InboxDispatcher;
  readonly #schedules: ScheduleDriver;
  readonly #owned = new Map<RunId, RunOwner>();
  /** Released runs whose hooks and other observers still process events. */
  readonly #observing = new Map<RunId, Promise<void>>();
  /** Faults with which the store refused a record of a run. The run fails with the fault when it is driven again. */
  readonly #refusals = new Map<RunId, Fault>();
  readonly #onError: (error: Fault) => void;
  readonly #endedRuns: RetentionSweep | undefined;
  /** All sweeps, including `#endedRuns`. */
  readonly #sweeps: readonly RetentionSweep[];
  readonly #closeGraceMs: number;
  readonly #closeOn: readonly NodeJS.Signals[];
  readonly #onSignal = (): void => {
    this.close().catch((error: unknown) => this.#report(error));
  };
  readonly #keepAlive: boolean | undefined;
  /** Whether a caller in this process has started or looked up a run. A worker that only hosts agents has no callers. */
  #hasCallers = false;
  #unsubscribe: (() => void) | undefined;
  #closing: Promise<void> | undefined;

  constructor(store: Store, options: WorkerOptions) {
    const { clock } = options;
    const concurrency = requireNumber("concurrency", options.concurrency ?? 64, 1);
    this.#onError = options.onError ?? warn;
    this.#closeGraceMs = requireNumber("closeGraceMs", options.closeGraceMs ?? 10_000, 0);
    this.#closeOn = options.closeOn ?? [];
    const { sameName = "refuse", versionPolicy = "resume" } = options;
    this.agents = new AgentRegistry({ sameName, versionPolicy });
    const onError = (error: unknown): void => this.#report(error);
    const sweep = (option: RetentionOption, collect: (before: number) => Promise<unknown>) => {
      const keepMs = options[option];
      return keepMs === undefined
        ? undefined
        : new RetentionSweep({ option, keepMs, collect, clock, onError });
    };
    this.#endedRuns = sweep("keepEndedRunsMs", (endedBefore) => this.collect({ endedBefore }));
    this.#sweeps = [
      this.#endedRuns,
      sweep("keepUnnamedSessionsMs", (unnamedBefore) => store.sessions.collect({ unnamedBefore })),
    ].filter((each) => each !== undefined);
    this.#store = store;
    this.context = workerContext(store, options, {
      concurrency,
      agents: this.agents.hosted,
      contexts: this.contexts,
      onError,
      extensionPort: (owner) =>
        extensionPort(
          {
            worker: this.context,
            errors: this.extensionErrors,
            surface: options.surface ?? null,
            view: (scope) => new RuntimeView(this, scope, { isOfCaller: false }),
          },
          owner,
        ),
    });
    this.#keepAlive = options.keepAlive;
    this.#inbox = new InboxDispatcher({ worker: this.context, agents: this.agents.hosted });
    this.cron = options.cron ?? noCron;
    this.#schedules = new ScheduleDriver({
      worker: this.context,
      cron: this.cron,
      hostsNothing: () => this.agents.isEmpty,
      hosts: (agentId) => this.agents.mayHost(agentId),
      submit: (run) => this.#submitScheduled(run),
      keep: (runId, until) => this.awaited.during(runId, until),
      ended: (runId) => runEnded(store, runId, this.lifetime),
    });
    this.unhosted = new UnhostedRuns({ store, clock, agents: this.agents, onError });
    const { engine = (port) => new LocalEngine(port) } = options;
    this.engine = engine({
      leases: store.leases,
      clock,
      workerId: options.workerId ?? `worker-${uuidSource.next()}`,
      // A run that works needs at least one slot. Other runs stay in the store, where workers with free slots find them.
      concurrency,
      agents: () => this.agents.versions,
      pollMs: requireNumber("pollMs", options.pollMs ?? 500, 1),
      onError,
    });
  }

  async start(): Promise<void> {
    await recordEngineKind(this.#store.records, this.engine);
    this.#unsubscribe = this.#store.onChange((change) => this.#noteChange(change));
    try {
      await this.engine.start({ drive: (lease, driving) => this.#drive(lease, driving) });
    } catch (error) {
      this.#unsubscribe();
      throw error;
    }
    for (const signal of this.#closeOn) process.on(signal, this.#onSignal);
    if (this.#keepAlive !== false) openRuntimes.add(this);
    for (const each of this.#sweeps) each.start();
  }

  /** The caller asked for it, a caller waits for a run, a schedule will fire, or this is a worker whose agents serve other processes. */
  get isMeantToStay(): boolean {
    const isOnlyWorker = !this.agents.isEmpty && !this.#hasCallers;
    return this.#keepAlive === true || this.lifetime.isAwaited || this.#schedules.isWaiting || isOnlyWorker;
  }

  register(agent: HostedAgent | AgentResolver, options: RegisterOptions = {}): void {
    checkOptions("register()", options, registerOptionNames);
    // Before the agent: a worker may drive its runs synchronously.
    if (options.context !== undefined) this.#registerContext(agent, options.context);
    if (!(isResolver(agent) ? this.agents.registerResolver(agent) : this.agents.register(agent))) return;
    this.agents.forgetLeftAlone();
    this.engine.agentsChanged();
    this.#inbox.dispatch();
    this.#schedules.wake();
  }

  #registerContext(agent: HostedAgent | AgentResolver, context: ContextFactory): void {
    if (typeof context !== "function")
      throw new Fault(
        "invalid_argument",
        `invalid context of register(): expected a function that returns the context of a run, not ${describeValue(context)}; pass a context itself to invoke() or submit()`,
      );
    if (isResolver(agent)) this.contexts.registerName(agent.name, context);
    else this.contexts.register(agent.id, agentTree(agent).keys(), context);
  }

  /** A caller in this process has started or looked up a run. */
  noteCaller(): void {
    this.#hasCallers = true;
  }

  async collect(options: Omit<CollectOptions, "except">): Promise<number> {
    const collected = await this.#store.journal.collect({ ...options, except: () => this.awaited.ids });
    await this.agents.unbindCollected(this.#store.journal);
    return collected;
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#unsubscribe?.();
    openRuntimes.delete(this);
    this.#inbox.close();
    const scheduled = this.#schedules.close();
    for (const signal of this.#closeOn) process.off(signal, this.#onSignal);
    const stopped = this.engine.stop();
    await Promise.allSettled([...this.#owned.values()].map((owner) => owner.release(this.#closeGraceMs)));
    await stopped;
    await scheduled;
    for (const each of this.#sweeps) await each.stop();
    await Promise.all(this.#observing.values());
    this.lifetime.end();
    this.context.callTimeouts.close();
    await this.#store.close();
  }

  #drive(lease: Lease, options: DriveOptions = {}): Promise<DriveResult> {
    const { runId } = lease;
    if (this.agents.mayResolve && this.agents.forRun(runId) === undefined)
      return this.#resolvedContext(runId).then((context) => this.#driveIn(context, lease, options));
    return this.#driveIn(this.#contextFor(runId), lease, options);
  }

  #driveIn(context: WorkerContext, lease: Lease, options: DriveOptions): Promise<DriveResult> {
    const loaded = RunOwner.load(context, lease, options);
    return loaded instanceof Promise
      ? loaded.then((owner) => this.#driveOwned(lease, owner))
      : this.#driveOwned(lease, loaded);
  }

  /** The worker context for a run whose agents a resolver may have to make. */
  async #resolvedContext(runId: RunId): Promise<WorkerContext> {
    const run = await this.#store.journal.find(runId);
    const agents = run && (await this.#resolve(run));
    return agents === undefined ? this.context : { ...this.context, agents };
  }

  /** Asks the resolver of a run, at most for `resolveMs`. */
  async #resolve(run: RunRecord): Promise<AgentLookup | undefined> {
    const { clock } = this.context;
    const late = Promise.withResolvers<never>();
    const cancel = clock.schedule(clock.now() + resolveMs, () =>
      late.reject(
        new Fault(
          "internal",
          `the resolver of ${run.agentId} returned no agent for ${run.runId} within ${resolveMs} ms; let resolve() return or reject sooner`,
        ),
      ),
    );
    try {
      return await Promise.race([this.agents.resolve(run), late.promise]);
    } finally {
      cancel();
    }
  }

  #driveOwned({ runId }: Lease, owner: RunOwner): Promise<DriveResult> {
    // `close` releases the runs that are owned when it is called. A run that was loaded later is handed back here.
    if (this.#closing !== undefined) return Promise.resolve({ rest: { kind: "ready" }, isReleased: false });
    this.#owned.set(runId, owner);
    return owner.runUntilReleased(this.#refusals.get(runId)).then(
      (result) => {
        this.#release(runId, owner);
        if (result.rest.kind === "ended") {
          this.agents.unbind(runId);
          this.contexts.delete(runId);
          this.#endedRuns?.note();
        } else if (owner.hasEnded) {
          this.agents.noteResumable(runId);
          this.contexts.noteEnded(runId);
        }
        return result;
      },
      (fault: unknown) => {
        this.#release(runId, owner);
        throw fault;
      },
    );
  }

  /** Forgets the owner of a run that it has released. */
  #release(runId: RunId, owner: RunOwner): void {
    if (owner.refusal === undefined) this.#refusals.delete(runId);
    else this.#refusals.set(runId, owner.refusal);
    if (this.#owned.get(runId) === owner) this.#owned.delete(runId);
    this.#trackObservers(runId, owner);
  }

  /** The worker context for a run, with the agents that the run is bound to. */
  #contextFor(runId: RunId): WorkerContext {
    const agents = this.agents.forRun(runId);
    return agents === undefined ? this.context : { ...this.context, agents };
  }

  /** `close` and `RunHandle.result` wait for the observers of a released run. */
  #trackObservers(runId: RunId, owner: RunOwner): void {
    const forget = (): void => {
      if (this.#observing.get(runId) === settled) this.#observing.delete(runId);
    };
    const settled = owner.whenObserved()?.then(forget, (error: unknown) => {
      forget();
      this.#report(error);
    });
    if (settled !== undefined) this.#observing.set(runId, settled);
  }

  /** Resolves when the observers of a run have processed its events. `undefined` if there are none in this process. */
  readonly observed = (runId: RunId): Promise<void> | undefined => {
    const observed = this.#owned.get(runId)?.whenObserved();
    return observed === undefined
      ? this.#observing.get(runId)
      : observed.then(() => this.#observing.get(runId));
  };

  /** Starts the run of a schedule whose agent this process hosts or resolves. */
  async #submitScheduled({ agentId, input, options, scope }: ScheduledRun): Promise<RunId | undefined> {
    const agent = this.agents.hosted.get(agentId) ?? (await this.#resolveScheduled(agentId, input, options));
    if (agent === undefined) return undefined;
    const { runId } = await submitRun(this.context, this.engine.claimer, agent, input, options, scope);
    this.awaited.addSubmitted(runId);
    return runId;
  }

  /** Asks the resolver for the agent of a run that does not exist yet. `undefined` if it leaves the run to others. */
  async #resolveScheduled(
    agentId: AgentId,
    input: JsonValue,
    options: SubmitOptions,
  ): Promise<HostedAgent | undefined> {
    const { record } = newRun(this.context, { id: agentId, run: async () => null }, input, options);
    try {
      return (await this.#resolve(record))?.get(agentId);
    } catch (error) {
      if (Fault.from(error).code === "version_mismatch") return undefined;
      throw error;
    }
  }

  #noteChange(change: StoreChange): void {
    this.engine.wake(change);
    this.#schedules.noteChange(change);
    if ("runId" in change) {
      if (change.kind === "mail" || change.kind === "seized") this.#owned.get(change.runId)?.poke();
      return;
    }
    if (change.kind === "record") return;
    if (change.kind === "other") this.#poke(change.owned ?? [...this.#owned.keys()]);
    if (change.kind !== "worker") this.#inbox.dispatch();
  }

  #poke(runs: readonly RunId[]): void {
    for (const runId of runs) this.#owned.get(runId)?.poke();
  }

  #report(error: unknown): void {
    this.#onError(Fault.from(error));
  }
}

async function noCron(): Promise<never> {
  throw new Fault(
    "dependency_missing",
    "this runtime reads no cron expressions and no local times; create it with openRuntime(), or set its option cron",
  );
}

function warn(error: Fault): void {
  process.emitWarning(error.message, { type: "ReeveWarning", code: error.code });
}
