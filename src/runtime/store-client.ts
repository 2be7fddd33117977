import {
  clientStartTable,
  describeValue,
  Fault,
  is,
  missingRun,
  namedStartTable,
  optionTable,
  parseRunId,
  requireWorkflow,
  startItemTable,
  type Client,
  type ClientStartOptions,
  type CollectOptions,
  type Engine,
  type HostedObject,
  type HostedWorkflow,
  type JsonValue,
  type NamedStartOptions,
  type ObjectClient,
  type ObjectOwner,
  type ObjectStatePage,
  type ObjectStateQuery,
  type OptionKinds,
  type Runtime,
  type RunCountQuery,
  type RunHandle,
  type RunPage,
  type RunPromise,
  type RunQuery,
  type RunRecord,
  type StartItem,
  type StartOutcome,
  type Store,
  type TenantScope,
  type WorkflowResult,
} from "../kernel/index.ts";
import { ExtensionErrors, extensionPort } from "./extension-port.ts";
import { storeOf } from "./open-store.ts";
import { AwaitedRuns } from "./process/awaited-runs.ts";
import { LiveContexts } from "./process/live-contexts.ts";
import { openRuntimes, warn, type OpenRuntime } from "./process/open-runtimes.ts";
import { RuntimeLifetime } from "./process/runtime-lifetime.ts";
import { sha256 } from "./process/sha256.ts";
import { systemClock, systemEventLoop } from "./process/system-sources.ts";
import type { WorkerContext } from "./process/worker-context.ts";
import { workerContext, type WorkerOptions } from "./local-worker-context.ts";
import { RuntimeView, type RuntimeWorker } from "./runtime-view.ts";
import { endBound, endUnadopted } from "./unadopted-runs.ts";
import { runtimeTable, type RuntimeOptions } from "./runtime-options.ts";
import { AgentRegistry } from "./worker/agent-registry.ts";
import { UnhostedRuns } from "./worker/unhosted-runs.ts";

/** Options of `openClient`. An option that `openRuntime` also has means the same. */
export type ClientOptions = Pick<
  RuntimeOptions,
  "store" | "auditKey" | "clock" | "ids" | "hash" | "maxValueBytes" | "keepAlive" | "onError" | "checkSchema"
>;

const clientTable = optionTable(
  {
    store: { ...is.any, isRequired: true, check: requireStore },
    auditKey: is.any,
    clock: is.any,
    ids: is.any,
    hash: is.any,
    maxValueBytes: runtimeTable.kinds.maxValueBytes,
    keepAlive: is.boolean(),
    onError: is.callback(),
    checkSchema: is.callback(),
  } satisfies OptionKinds<ClientOptions>,
  (name) =>
    Object.hasOwn(runtimeTable.kinds, name)
      ? "a client executes no run; set it in openRuntime() of the process that hosts the workflows"
      : undefined,
);

/** Throws if no store is given, because a new memory store could never be shared with a worker. */
function requireStore(store: unknown): void {
  if (store !== undefined && store !== "memory:") return;
  throw new Fault(
    "invalid_argument",
    `invalid store ${describeValue(store)} of openClient(): expected the store of the workers, such as "sqlite:./reeve.db" or "postgres://HOST/DATABASE"`,
  );
}

/** Opens a client. It claims no runs, delivers no messages and fires no schedules. */
export async function createClient(options: ClientOptions): Promise<Client> {
  clientTable.read("openClient()", options);
  const checked = runtimeTable.read<RuntimeOptions>("openClient()", options);
  const { clock = systemClock, eventLoop = systemEventLoop, hash = sha256 } = checked;
  const store = await storeOf(options, hash, clock);
  return new StoreClient(new RuntimeView(new ClientWorker(store, { ...checked, clock, eventLoop, hash })));
}

/** The parts of a worker that a `RuntimeView` needs, without a worker: it hosts no agents and claims no runs. */
class ClientWorker implements RuntimeWorker, OpenRuntime {
  readonly context: WorkerContext;
  readonly engine: Pick<Engine, "claimer"> = {};
  readonly agents: AgentRegistry;
  readonly contexts = new LiveContexts();
  readonly awaited: AwaitedRuns;
  readonly lifetime = new RuntimeLifetime();
  readonly unhosted: UnhostedRuns;
  readonly maxSchedulesPerTenant = undefined;
  readonly extensionErrors = new ExtensionErrors();
  readonly #store: Store;
  readonly #keepAlive: boolean | undefined;
  #closing: Promise<void> | undefined;

  constructor(store: Store, options: WorkerOptions) {
    const { clock, sameName, versionPolicy, concurrency, keepAlive } = options;
    const report = options.onError ?? warn;
    const onError = (error: unknown): void => report(Fault.from(error));
    this.#store = store;
    this.#keepAlive = keepAlive;
    this.awaited = new AwaitedRuns(options.eventLoop);
    this.agents = new AgentRegistry({ sameName, versionPolicy, clock });
    const { agents, contexts } = this;
    this.context = workerContext(store, options, {
      concurrency,
      agents: agents.hosted,
      contexts,
      onError,
      extensionPort: (owner) =>
        extensionPort(
          {
            worker: this.context,
            errors: this.extensionErrors,
            surface: null,
            view: (scope) => new RuntimeView(this, scope, { isOfCaller: false }),
          },
          owner,
        ),
    });
    const advice = "start a process that hosts it on this store, and check the name";
    const end = (run: RunRecord): Promise<void> => endUnadopted(this.context, run);
    const endElsewhere = (run: RunRecord): Promise<void> => endBound(this.context, run, options.pollMs);
    this.unhosted = new UnhostedRuns({
      store,
      clock,
      host: this.context.host,
      agents,
      onError,
      endUnadopted: end,
      endBound: endElsewhere,
      advice,
    });
    if (keepAlive !== false) openRuntimes.add(this);
  }

  /**
   * Whether the process may end. A client has no work of its own, so that the process may end while no caller
   * waits.
   */
  readonly mayEnd = true;

  get isMeantToStay(): boolean {
    return this.#keepAlive === true || this.lifetime.isAwaited;
  }

  readonly cron = async (): Promise<never> => {
    throw new Fault("unsupported", "a client has no schedules; use openRuntime()");
  };

  readonly observed = (): undefined => undefined;

  noteCaller(): void {}

  /** Does nothing, because a client hosts no agents. The workflow of a start only gives types, budgets and checks. */
  register(): void {}

  collect(options: Omit<CollectOptions, "except">): Promise<number> {
    return this.#store.journal.collect({ ...options, except: () => this.awaited.ids });
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    openRuntimes.delete(this);
    this.lifetime.end();
    this.context.callTimeouts.close();
    await this.#store.close();
  }
}

type Startable = HostedWorkflow<JsonValue, JsonValue> | string;
type StartedRun = RunHandle<WorkflowResult<JsonValue>>;

/** Maximum number of starts of a batch that wait for the store at the same time. */
const mostAtOnce = 1_000;

/** The client as its callers use it: the part of a runtime that needs no worker. */
class StoreClient implements Client {
  readonly #runtime: Runtime;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  // The declaration in `Client` has the types of the two forms.
  async start(workflow: Startable, input: never, options: NamedStartOptions = {}): Promise<never> {
    const isNamed = typeof workflow === "string";
    (isNamed ? namedStartTable : clientStartTable).read("start()", options);
    return (await this.#start(workflow, input, options)) as never;
  }

  #start(workflow: Startable, input: JsonValue, options: NamedStartOptions): Promise<StartedRun> {
    return typeof workflow === "string"
      ? this.#runtime.start(workflow, input, options)
      : this.#runtime.start(workflow, input, options);
  }

  async startMany(
    workflow: Startable,
    items: readonly StartItem<never>[],
    options: NamedStartOptions = {},
  ): Promise<never> {
    const isNamed = typeof workflow === "string";
    (isNamed ? namedStartTable : clientStartTable).read("startMany()", options);
    refuseRunId(options);
    if (!Array.isArray(items))
      throw new Fault(
        "invalid_argument",
        `invalid items of startMany(): expected an array, not ${describeValue(items)}; use [{ input, runId }]`,
      );
    // Before the first run is started, so that a mistake of the caller starts none.
    if (!isNamed) requireWorkflow("startMany()", workflow);
    items.forEach((item, index) => {
      const owner = `item ${index} of startMany()`;
      if (startItemTable.read(owner, item).input !== undefined) return;
      throw new Fault(
        "invalid_argument",
        `missing input of ${owner}; use { input: null } for a workflow that takes none`,
      );
    });
    const outcomes: StartOutcome[] = [];
    for (let from = 0; from < items.length; from += mostAtOnce)
      outcomes.push(
        ...(await Promise.all(
          items
            .slice(from, from + mostAtOnce)
            .map(({ input, ...own }) => this.#outcome(workflow, input, { ...options, ...own })),
        )),
      );
    return outcomes as never;
  }

  async #outcome(
    workflow: Startable,
    input: JsonValue,
    options: NamedStartOptions & ClientStartOptions,
  ): Promise<StartOutcome> {
    try {
      return { status: "started", run: await this.#start(workflow, input, options) };
    } catch (error) {
      const fault = Fault.from(error);
      if (!refusals.has(fault.code)) throw error;
      return { status: "refused", error: fault };
    }
  }

  promise(id: string): RunPromise {
    return this.#runtime.promise(id);
  }

  object<State, Handlers, Context>(
    object: HostedObject<State, Handlers, Context>,
    key: string,
    owner?: ObjectOwner,
  ): ObjectClient<State, Handlers> {
    return this.#runtime.object(object, key, owner);
  }

  objectStates(name: string, query?: ObjectStateQuery): Promise<ObjectStatePage> {
    return this.#runtime.objectStates(name, query);
  }

  async run(runId: string): Promise<RunHandle> {
    const found = await this.#runtime.find(runId);
    if (found === undefined) throw missingRun(parseRunId(runId));
    return found;
  }

  find(runId: string): Promise<RunHandle | undefined> {
    return this.#runtime.find(runId);
  }

  list(query?: RunQuery): Promise<RunPage> {
    return this.#runtime.list(query);
  }

  count(query?: RunCountQuery): Promise<number> {
    return this.#runtime.count(query);
  }

  forTenant(scope: TenantScope): Client {
    return new StoreClient(this.#runtime.forTenant(scope));
  }

  close(): Promise<void> {
    return this.#runtime.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** Faults that concern one item of a batch. Any other fault, such as one of the store, ends the call. */
const refusals: ReadonlySet<string> = new Set([
  "invalid_argument",
  "already_exists",
  "not_found",
  "not_json",
  "too_large",
]);

function refuseRunId({ runId }: ClientStartOptions): void {
  if (runId === undefined) return;
  throw new Fault(
    "invalid_argument",
    `invalid runId ${describeValue(runId)} of startMany(): all runs would have this id; set runId of each item`,
  );
}
