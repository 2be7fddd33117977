import {
  describeValue,
  Fault,
  type AgentId,
  type AgentResolver,
  type CollectOptions,
  type ContextFactory,
  type Engine,
  type HostedAgent,
  type JsonValue,
  type Records,
  type RunId,
  type RegisterOptions,
  type Runtime,
  type Store,
  type StoreChange,
  type SubmitOptions,
  is,
  optionTable,
  type OptionKinds,
} from "../kernel/index.ts";
import { runEnded } from "./client/run-store.ts";
import { submitRun } from "./client/submit-run.ts";
import { newRun } from "./journal/new-run.ts";
import { ExtensionErrors, extensionPort } from "./extension-port.ts";
import { storeOf } from "./open-store.ts";
import { OwnedRuns } from "./owned-runs.ts";
import { AwaitedRuns } from "./process/awaited-runs.ts";
import { LiveContexts } from "./process/live-contexts.ts";
import { openRuntimes, warn, type OpenRuntime } from "./process/open-runtimes.ts";
import type { CronLoader } from "./process/schedule-record.ts";
import { RuntimeLifetime } from "./process/runtime-lifetime.ts";
import { sha256 } from "./process/sha256.ts";
import { systemClock, systemEventLoop, uuidSource } from "./process/system-sources.ts";
import type { WorkerContext } from "./process/worker-context.ts";
import { workerContext, type WorkerOptions } from "./local-worker-context.ts";
import { RuntimeView, type RuntimeWorker } from "./runtime-view.ts";
import { runtimeTable, type RuntimeOptions } from "./runtime-options.ts";
import { AgentRegistry, agentTree } from "./worker/agent-registry.ts";
import { isResolver } from "./worker/agent-resolvers.ts";
import { InboxDispatcher } from "./worker/inbox-dispatcher.ts";
import { LocalEngine } from "./worker/local-engine.ts";
import { ScheduleDriver, type ScheduledRun } from "./worker/schedule-driver.ts";
import { RetentionSweep } from "./worker/retention-sweep.ts";
import { endBound, endUnadopted } from "./unadopted-runs.ts";
import { UnhostedRuns } from "./worker/unhosted-runs.ts";

/**
 * Opens the store if necessary, starts a worker on it and resumes the runs in the store that no worker executes.
 * Unlike the public `openRuntime`, it knows no prices unless `options.prices` is given.
 */
export async function createRuntime(options: RuntimeOptions = {}): Promise<Runtime> {
  const checked = runtimeTable.read("openRuntime()", options);
  const { clock = systemClock, eventLoop = systemEventLoop, hash = sha256 } = checked;
  const store = await storeOf(options, hash, clock);
  try {
    const worker = new LocalWorker(store, { ...checked, clock, eventLoop, hash });
    await worker.start();
    return new RuntimeView(worker);
  } catch (error) {
    // A store that the caller passed stays open. Nothing else could close a store that was opened here.
    if (typeof options.store !== "object") await store.close();
    throw error;
  }
}

const registerOptionTable = optionTable({ context: is.any } satisfies OptionKinds<RegisterOptions>);

/** Options that say how long runs or sessions are kept. */
type RetentionOption = "keepEndedRunsMs" | "keepUnnamedSessionsMs";

/** The worker of a runtime, which hosts agents and executes runs in this process. Callers use it through a `RuntimeView`. */
class LocalWorker implements RuntimeWorker, OpenRuntime {
  readonly context: WorkerContext;
  readonly engine: Engine;
  readonly agents: AgentRegistry;
  readonly contexts = new LiveContexts();
  readonly awaited: AwaitedRuns;
  readonly lifetime = new RuntimeLifetime();
  readonly unhosted: UnhostedRuns;
  readonly cron: CronLoader;
  readonly maxSchedulesPerTenant: number | null | undefined;
  readonly extensionErrors = new ExtensionErrors();
  readonly #store: Store;
  readonly #inbox: InboxDispatcher;
  readonly #schedules: ScheduleDriver;
  readonly #owned: OwnedRuns;
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
  /** The fault `store_lost`, if the store is lost. The worker then stops. */
  #lost: Fault | undefined;
  #closing: Promise<void> | undefined;

  constructor(store: Store, options: WorkerOptions) {
    const { clock, eventLoop, concurrency, sameName, versionPolicy } = options;
    const workerId = options.workerId ?? `worker-${uuidSource.next()}`;
    this.#onError = options.onError ?? warn;
    this.#closeGraceMs = options.closeGraceMs;
    this.#closeOn = options.closeOn ?? [];
    this.awaited = new AwaitedRuns(eventLoop);
    this.agents = new AgentRegistry({ sameName, versionPolicy, clock });
    const onError = (error: unknown): void => this.#report(error);
    const sweep = (option: RetentionOption, collect: (before: number) => Promise<unknown>) => {
      const keepMs = options[option];
      if (keepMs === undefined) return undefined;
      return new RetentionSweep({ keepMs, collect, clock, eventLoop, onError });
    };
    this.#endedRuns = sweep("keepEndedRunsMs", (endedBefore) => this.collect({ endedBefore }));
    this.#sweeps = [
      this.#endedRuns,
      sweep("keepUnnamedSessionsMs", (unnamedBefore) => this.#collectSessions(unnamedBefore)),
    ].filter((each) => each !== undefined);
    this.#store = store;
    this.context = workerContext(store, options, {
      concurrency,
      agents: this.agents.hosted,
      contexts: this.contexts,
      engine: () => this.engine,
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
    this.#owned = new OwnedRuns({
      context: this.context,
      journal: store.journal,
      agents: this.agents,
      contexts: this.contexts,
      onEnd: () => {
        this.#endedRuns?.note();
        this.context.homes.noteEnd();
      },
      onError,
    });
    this.#keepAlive = options.keepAlive;
    this.#inbox = new InboxDispatcher({ worker: this.context, agents: this.agents.hosted, workerId });
    this.cron = options.cron ?? noCron;
    this.maxSchedulesPerTenant = options.maxSchedulesPerTenant;
    this.#schedules = new ScheduleDriver({
      worker: this.context,
      cron: this.cron,
      hostsNothing: () => this.agents.isEmpty,
      hosts: (agentId) => this.agents.mayHost(agentId),
      submit: (run) => this.#submitScheduled(run),
      keep: (runId, until) => this.awaited.during(runId, until),
      ended: (runId) => runEnded(store, runId, this.lifetime),
    });
    this.unhosted = new UnhostedRuns({
      store,
      clock,
      host: this.context.host,
      agents: this.agents,
      onError,
      endUnadopted: (run) => endUnadopted(this.context, run),
      endBound: (run) => endBound(this.context, run, options.pollMs),
    });
    const { engine = (port) => new LocalEngine(port) } = options;
    this.engine = engine({
      leases: store.leases,
      clock,
      eventLoop,
      workerId,
      host: this.context.host,
      // A run that works needs at least one slot. Other runs stay in the store, where workers with free slots find them.
      concurrency,
      agents: () => this.agents.versions,
      pollMs: options.pollMs,
      onError,
    });
  }

  async start(): Promise<void> {
    await recordEngineKind(this.#store.records, this.engine);
    this.#unsubscribe = this.#store.onChange((change) => this.#noteChange(change));
    try {
      await this.engine.start(this.#owned);
    } catch (error) {
      this.#unsubscribe();
      throw error;
    }
    for (const signal of this.#closeOn) process.on(signal, this.#onSignal);
    if (this.#keepAlive !== false) openRuntimes.add(this);
    for (const each of this.#sweeps) each.start();
    this.context.homes.note();
  }

  /**
   * Whether the process has a reason to stay alive: the caller asked for it, a caller waits for a run, a schedule
   * will fire, or this is a worker whose agents serve other processes.
   */
  get isMeantToStay(): boolean {
    const isOnlyWorker = !this.agents.isEmpty && !this.#hasCallers;
    return this.#keepAlive === true || this.lifetime.isAwaited || this.#schedules.isWaiting || isOnlyWorker;
  }

  register(agent: HostedAgent | AgentResolver, options: RegisterOptions = {}): void {
    registerOptionTable.read("register()", options);
    // Before the agent: a worker may execute its runs synchronously.
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

  /** Records that a caller in this process has started or looked up a run. */
  noteCaller(): void {
    this.#hasCallers = true;
  }

  async collect(options: Omit<CollectOptions, "except">): Promise<number> {
    const collected = await this.#store.journal.collect({ ...options, except: () => this.awaited.ids });
    await this.agents.unbindCollected(this.#store.journal);
    if (collected > 0) await this.context.homes.sweep();
    return collected;
  }

  async #collectSessions(unnamedBefore: number): Promise<void> {
    if ((await this.#store.sessions.collect({ unnamedBefore })) > 0) await this.context.homes.sweep();
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
    // Results of calls in flight could not be stored.
    await this.#owned.releaseAll(this.#lost === undefined ? this.#closeGraceMs : 0);
    await stopped;
    await scheduled;
    for (const each of this.#sweeps) await each.stop();
    await this.context.homes.close();
    await this.#owned.whenAllObserved();
    this.lifetime.end(this.#lost);
    this.context.callTimeouts.close();
    await this.#store.close();
  }

  readonly observed = (runId: RunId): Promise<void> | undefined => this.#owned.whenObserved(runId);

  /** Starts the run of a schedule whose agent this process hosts or resolves. */
  async #submitScheduled({ agentId, input, options, scope }: ScheduledRun): Promise<RunId | undefined> {
    const agent = this.agents.hosted.get(agentId) ?? (await this.#resolveScheduled(agentId, input, options));
    if (agent === undefined) return undefined;
    const { runId } = await submitRun(this.context, this.engine.claimer, agent, input, options, scope);
    this.awaited.addSubmitted(runId);
    return runId;
  }

  /**
   * Asks the resolver for the agent of a run that does not exist yet. `undefined` if the resolver leaves the run to
   * other workers.
   */
  async #resolveScheduled(
    agentId: AgentId,
    input: JsonValue,
    options: SubmitOptions,
  ): Promise<HostedAgent | undefined> {
    const { record } = newRun(this.context, { id: agentId, run: async () => null }, input, options);
    try {
      return (await this.agents.resolve(record))?.get(agentId);
    } catch (error) {
      if (Fault.from(error).code === "version_mismatch") return undefined;
      throw error;
    }
  }

  #noteChange(change: StoreChange): void {
    this.engine.wake(change);
    this.#schedules.noteChange(change);
    if ("runId" in change) {
      if (change.kind === "mail" || change.kind === "seized") this.#owned.poke(change.runId);
      return;
    }
    if (change.kind === "record") return;
    if (change.kind === "other") {
      if (change.owned === undefined) this.#owned.pokeAll();
      else for (const runId of change.owned) this.#owned.poke(runId);
    }
    if (change.kind !== "worker") this.#inbox.dispatch();
  }

  #report(error: unknown): void {
    const fault = Fault.from(error);
    if (fault.code !== "store_lost") this.#onError(fault);
    else if (this.#lost === undefined) this.#stop(fault);
  }

  /** Stops the worker because its store is lost. Each further call would cost money and not be recorded. */
  #stop(fault: Fault): void {
    this.#lost = fault;
    this.#onError(fault);
    this.close().catch((error: unknown) => this.#report(error));
  }
}

async function noCron(): Promise<never> {
  throw new Fault(
    "dependency_missing",
    "this runtime reads no cron expressions and no local times; create it with openRuntime(), or set its option cron",
  );
}

const kindRecord = { namespace: "engine", key: "kind" } as const;
const validKind = /^[a-z][a-z0-9-]{0,63}$/;

/**
 * G5: records the kind of the engine that executes the runs of a store. Throws `engine_mismatch` if another kind is
 * recorded, because engines of two kinds would both wake and execute the same runs.
 */
async function recordEngineKind(records: Records, { kind }: Engine): Promise<void> {
  if (kind === null) return;
  if (typeof kind !== "string" || !validKind.test(kind))
    throw new Fault(
      "invalid_argument",
      `invalid kind ${describeValue(kind)} of the engine: expected 1 to 64 lower-case letters, digits and -, starting with a letter`,
    );
  const found = await records.get(kindRecord);
  const current = found ?? (await putKind(records, kind));
  if (current === undefined || current.value === kind) return;
  throw new Fault(
    "engine_mismatch",
    `the engine ${JSON.stringify(current.value)} executes the runs of this store, and this runtime has the engine ${JSON.stringify(kind)}: open the runtime with the same engine, or with another store`,
    { details: { recorded: current.value, engine: kind } },
  );
}

/** Returns the kind that another process has recorded first, if one has. */
async function putKind(records: Records, kind: string): ReturnType<Records["get"]> {
  const written = await records.put({ ...kindRecord, value: kind }, "absent");
  return written.kind === "stored" ? undefined : written.current;
}
