import {
  agentIdOf,
  approvalQueryTable,
  assertJson,
  canonicalJson,
  checkChildRequest,
  describeValue,
  Fault,
  formatAgentId,
  formatRunId,
  HistoryRetention,
  nameProblem,
  parseAgentId,
  parseRunId,
  parseSessionId,
  isInScope,
  namedStartTable,
  runCountTable,
  runQueryTable,
  spawnChildTable,
  requireWorkflow,
  startKinds,
  submitKinds,
  type AgentResolver,
  type ApprovalPage,
  type ApprovalQuery,
  type Clock,
  type CollectOptions,
  type Delivery,
  type Engine,
  type ExtensionError,
  type ExtensionPort,
  type HostedAgent,
  type HostedObject,
  type HostedWorkflow,
  type JsonValue,
  type NamedStartOptions,
  type ObjectCall,
  type ObjectClient,
  type ObjectOwner,
  type ObjectStatePage,
  type ObjectStateQuery,
  type RegisterOptions,
  type RunHandle,
  type RunId,
  type RunChangeList,
  type RunCountQuery,
  type RunPage,
  type RunPromise,
  type RunQuery,
  type RunRecord,
  type Runtime,
  type RuntimeInbox,
  type RuntimeSchedules,
  type RuntimeSessions,
  type ScheduleOwner,
  type SpawnChildOptions,
  type StartOptions,
  type SubmitOptions,
  type TaskRecord,
  type TenantScope,
  type UsageQuery,
  type UsageRow,
  type WorkflowResult,
  is,
  optionTable,
  type OptionKinds,
  missingRun,
  type ReportedUsage,
  fromNanoUsd,
} from "../kernel/index.ts";
import type { ExtensionErrors } from "./extension-port.ts";
import { correctUsage } from "./client/correct-usage.ts";
import { lastClosedInvocation } from "./client/closed-invocation.ts";
import { objectClient, readStates } from "./client/object-client.ts";
import { StoredRunHandle } from "./client/run-handle.ts";
import { scopedStore, type RunStore } from "./client/run-store.ts";
import { StoredInbox } from "./client/stored-inbox.ts";
import { storedPromise } from "./client/stored-promise.ts";
import { listOwner, StoredSchedules } from "./client/stored-schedules.ts";
import { StoredSessions } from "./client/stored-sessions.ts";
import { submitRun } from "./client/submit-run.ts";
import { namedWorkflow } from "./journal/adopted-run.ts";
import { startTime, type NewRunOptions } from "./journal/new-run.ts";
import { findNamed, runIdWithin, storedRunId } from "./journal/run-ids.ts";
import { mailOfSubmission } from "./journal/wait-names.ts";
import { bodySubmissions, getRunContext, type BodySubmissions } from "./process/async-context.ts";
import type { AwaitedRuns } from "./process/awaited-runs.ts";
import type { LiveContexts } from "./process/live-contexts.ts";
import { idDigest } from "./process/id-digest.ts";
import { checkChanges } from "./process/session-model.ts";
import type { CronLoader } from "./process/schedule-record.ts";
import type { RuntimeLifetime } from "./process/runtime-lifetime.ts";
import { anonymousUser, portFor, type WorkerContext } from "./process/worker-context.ts";
import { agentTree, type AgentRegistry } from "./worker/agent-registry.ts";
import type { UnhostedRuns } from "./worker/unhosted-runs.ts";

/** The worker that executes the runs of a runtime, as its callers use it. */
export interface RuntimeWorker {
  readonly context: WorkerContext;
  readonly engine: Pick<Engine, "claimer">;
  readonly agents: AgentRegistry;
  readonly contexts: LiveContexts;
  readonly awaited: AwaitedRuns;
  readonly lifetime: RuntimeLifetime;
  readonly unhosted: UnhostedRuns;
  readonly cron: CronLoader;
  /** As in `RuntimeOptions`. */
  readonly maxSchedulesPerTenant: number | null | undefined;
  readonly extensionErrors: ExtensionErrors;
  /** Resolves when the observers of a run have processed its events. `undefined` if the run has no observers here. */
  readonly observed: (runId: RunId) => Promise<void> | undefined;
  /** Records that a caller in this process has started or looked up a run. */
  noteCaller(): void;
  register(agent: HostedAgent | AgentResolver, options?: RegisterOptions): void;
  collect(options: Omit<CollectOptions, "except">): Promise<number>;
  close(): Promise<void>;
}

const submitTable = optionTable(submitKinds);
const startTable = optionTable(startKinds);
const collectOptionTable = optionTable({
  endedBefore: is.any,
  only: is.list({ of: is.text() }),
} satisfies OptionKinds<Parameters<Runtime["collect"]>[0]>);
const scopeTable = optionTable({ tenantId: is.text(), userId: is.text() } satisfies OptionKinds<TenantScope>);

export interface ViewOptions {
  /** Whether a caller of the process uses the view. Extensions of a hosted agent do not count as callers. Default: `true`. */
  readonly isOfCaller?: boolean;
}

/**
 * The runtime as its callers use it. S6: with a scope, it behaves as if the runs, sessions, dead letters, approvals and usage
 * of other tenants and users did not exist. The store's queries check the scope.
 */
export class RuntimeView implements Runtime {
  readonly #worker: RuntimeWorker;
  readonly #scope: TenantScope | undefined;
  readonly #isOfCaller: boolean;
  readonly sessions: RuntimeSessions;
  readonly schedules: RuntimeSchedules;
  readonly inbox: RuntimeInbox;
  /** The store of the handles. */
  readonly #runs: RunStore;

  constructor(worker: RuntimeWorker, scope?: TenantScope, { isOfCaller = true }: ViewOptions = {}) {
    this.#worker = worker;
    this.#scope = scope;
    this.#isOfCaller = isOfCaller;
    const { store } = worker.context;
    this.#runs = scope === undefined ? store : scopedStore(store, scope);
    this.sessions = new StoredSessions({
      worker: worker.context,
      life: worker.lifetime,
      scope,
      submit: (agent, input, options) => this.submit(agent, input, options),
      compact: (agent, input, options) => this.#compact(agent, input, options),
    });
    const { clock, ids, hash } = worker.context;
    this.schedules = new StoredSchedules({
      records: store.records,
      clock,
      ids,
      hash,
      cron: worker.cron,
      maxPerTenant: worker.maxSchedulesPerTenant,
      scope,
      check: () => worker.lifetime.check(),
      own: (owner, options) => this.#own(owner, owner === listOwner ? options : asCaller(options, scope)),
      register: (agent) => worker.register(agent),
    });
    this.inbox = new StoredInbox({
      records: store.records,
      clock,
      hash,
      check: () => worker.lifetime.check(),
      own: (owner, options) => this.#own(owner, options),
    });
  }

  get clock(): Clock {
    return this.#worker.context.clock;
  }

  get dayCapUsd(): number | null {
    const { caps } = this.#worker.context;
    if (caps === undefined) return null;
    const { userId, tenantId } = this.#scope ?? {};
    const name = userId != null ? "perUserPerDayUsd" : tenantId != null ? "perTenantPerDayUsd" : "perDayUsd";
    const limit = caps[name] ?? null;
    return limit === null ? null : fromNanoUsd(limit);
  }

  forTenant(scope: TenantScope): Runtime {
    const { tenantId, userId } = scopeTable.read("forTenant()", scope);
    requireId("tenantId", tenantId);
    if (userId !== undefined) requireId("userId", userId);
    // A view without a user must not have the property, because the properties of the scope replace those of options.
    const wanted = userId === undefined ? { tenantId } : { tenantId, userId };
    return new RuntimeView(this.#worker, this.#own("forTenant()", wanted));
  }

  register(agent: HostedAgent | AgentResolver, options?: RegisterOptions): void {
    this.#worker.register(agent, options);
  }

  async submit(agent: HostedAgent, input: JsonValue, options: SubmitOptions = {}): Promise<RunHandle> {
    this.#worker.lifetime.check();
    const { changes } = submitTable.read("submit()", options);
    if (changes !== undefined) checkChanges(this.#worker.context, agent, changes);
    const own = await this.#ownSubmission("submit()", agent, input, options);
    if (this.#worker.agents.replacesSameName || own.context !== undefined)
      return this.#submitted(await this.#submitBound(agent, input, own), own);
    this.register(agent);
    return this.#submitted(await this.#submitRun(agent, input, own), own);
  }

  /**
   * Returns the options of a submission with its tenant, its user and the stored id of its run (S6). If the submission
   * repeats one from before a crash, the id is that of the earlier run.
   */
  async #ownSubmission(
    owner: string,
    agent: HostedAgent,
    input: JsonValue,
    options: SubmitOptions,
  ): Promise<SubmitOptions> {
    const scoped = this.#own(owner, asCaller(options, this.#scope));
    if (scoped.runId !== undefined)
      return { ...scoped, runId: await this.#storedId(scoped.tenantId, scoped.runId) };
    const body = bodySubmissions();
    return body === undefined ? scoped : this.#joined(body, agent, input, scoped);
  }

  async start<Input, Output, Context>(
    workflow: HostedWorkflow<Input, Output, Context> | string,
    input: Input,
    options: StartOptions<Context> & NamedStartOptions = {},
  ): Promise<RunHandle<WorkflowResult<Output>>> {
    const isNamed = typeof workflow === "string";
    if (!isNamed) requireWorkflow("start()", workflow);
    (isNamed ? namedStartTable : startTable).read("start()", options);
    const { startAt, delayMs, version, ...more } = options;
    const hosted = isNamed ? this.#hostedAs(workflow, version) : workflow;
    if (isNamed && hosted !== undefined) requireWorkflow("start()", hosted);
    const at = startTime(this.clock, startAt, delayMs);
    const submitted: SubmitOptions<Context> = at === undefined ? more : { ...more, startAt: at };
    // `readInput` of the workflow checks that the input is one, and its code returns nothing but an output.
    const given = input as JsonValue;
    const run =
      hosted === undefined
        ? await this.#submitNamed(namedWorkflow(workflow as string, version), given, submitted)
        : await this.submit(hosted, given, submitted);
    return run as RunHandle<unknown> as RunHandle<WorkflowResult<Output>>;
  }

  /** Returns the workflow of this name and version that is registered in this process. */
  #hostedAs(name: string, version: string | undefined): HostedAgent | undefined {
    const hosted = this.#worker.agents.hosted.get(formatAgentId({ name }));
    return version === undefined || version === hosted?.version ? hosted : undefined;
  }

  /** L18: starts a run for a worker that hosts the workflow. */
  async #submitNamed(workflow: HostedAgent, input: JsonValue, options: SubmitOptions): Promise<RunHandle> {
    this.#worker.lifetime.check();
    const own = await this.#ownSubmission("start()", workflow, input, options);
    return this.#submitted(await this.#submitRun(workflow, input, { ...own, isByName: true }), own);
  }

  /**
   * J6: returns the run that an earlier execution of the calling body has submitted. When the body of a tool or a step starts
   * again after a crash, it uses these runs again, except those that ended without completing. Otherwise it would pay for
   * their answers again if it passes no `runId`.
   */
  async #joined(
    submissions: BodySubmissions,
    agent: HostedAgent,
    input: JsonValue,
    options: SubmitOptions,
  ): Promise<SubmitOptions> {
    const { hash, store } = this.#worker.context;
    const { tenantId = null, userId = null, addedInstructions = null, changes } = options;
    assertJson(input, `the input of ${agent.id}`);
    const same = [agent.id, input, addedInstructions, tenantId, userId];
    const asked = idDigest(canonicalJson(changes === undefined ? same : [...same, changes]), hash);
    for (;;) {
      const number = submissions.next(asked);
      const runId = formatRunId(idDigest(`submitted by ${submissions.key} ${asked} ${number}`, hash));
      const summary = await store.journal.summary(runId);
      if (summary === undefined || summary.endedAt === null || summary.status === "completed")
        return { ...options, runId };
    }
  }

  async #compact(agent: HostedAgent, input: JsonValue, options: SubmitOptions): Promise<RunHandle> {
    const more = { kind: "compaction", replacesBudget: true } as const;
    return this.#submitted(await this.#submitRun(agent, input, { ...options, ...more }), options);
  }

  async spawnChild(agent: HostedAgent, options: SpawnChildOptions): Promise<RunHandle> {
    this.#worker.lifetime.check();
    const names = new Set((agent.tools ?? []).map(({ name }) => name));
    checkChildRequest("spawnChild()", options, names, spawnChildTable);
    const { sessionId, prompt, tools = null, context, ...rest } = options;
    const { journal } = this.#worker.context.store;
    const { sessions } = this;
    const query = {
      journal,
      sessions,
      agentId: agent.id,
      sessionId: parseSessionId(sessionId),
      scope: this.#scope,
    };
    const { run, task } = await lastClosedInvocation(query);
    const inherits = { runId: run.runId, sessionId: run.sessionId };
    const own: NewRunOptions = {
      ...ownerOf(run),
      ...settingsFor(task),
      metadata: run.metadata,
      ...rest,
      ...(context !== undefined && { context }),
      sessionId: run.sessionId,
      retention: HistoryRetention.NONE,
      child: { inherits, tools, place: "child" },
    };
    return this.#submitted(await this.#submitBound(agent, prompt as JsonValue, own), own);
  }

  #submitRun(agent: HostedAgent, input: JsonValue, options: NewRunOptions): Promise<RunRecord> {
    const { context, engine } = this.#worker;
    return submitRun(context, engine.claimer, agent, input, options, this.#scope);
  }

  #submitted(record: RunRecord, { userId }: SubmitOptions): RunHandle {
    this.#worker.awaited.addSubmitted(record.runId);
    return this.#handle(record, userId);
  }

  /**
   * Binds the run to its context. If other agents may take the ids of its agents, it also binds the run to its agents. The
   * binding is removed if the submission created no run, because it was refused, became steering for another run, or named an
   * existing run.
   */
  async #submitBound(agent: HostedAgent, input: JsonValue, options: NewRunOptions): Promise<RunRecord> {
    const { agents, contexts, context } = this.#worker;
    const tree = agentTree(agent);
    this.register(agent);
    const { runId: wanted, context: live } = options;
    const runId = wanted === undefined ? formatRunId(context.ids.next()) : parseRunId(wanted);
    const exists = wanted !== undefined && (await context.store.journal.find(runId)) !== undefined;
    // Before the submission: a worker may start the run synchronously.
    const isBound = !exists && agents.replacesSameName && agents.bind(runId, tree);
    const hasContext = !exists && live !== undefined;
    if (hasContext) contexts.set(runId, live);
    let createdId: RunId | undefined;
    try {
      const record = await this.#submitRun(agent, input, { ...options, runId });
      createdId = record.runId;
      return record;
    } finally {
      if (isBound && createdId !== runId) agents.unbind(runId);
      if (hasContext && createdId !== runId) contexts.delete(runId);
    }
  }

  promise(id: string): RunPromise {
    const { lifetime: life, context } = this.#worker;
    const { store, clock, sizes } = context;
    return storedPromise({ store, clock, life, sizes, scope: this.#scope }, id);
  }

  object<State, Handlers, Context>(
    object: HostedObject<State, Handlers, Context>,
    key: string,
    owner: ObjectOwner = {},
  ): ObjectClient<State, Handlers> {
    const { context, lifetime } = this.#worker;
    const port = {
      records: context.store.records,
      check: () => lifetime.check(),
      own: (given: ObjectOwner) => this.#own("object()", asCaller(given, this.#scope)),
      start: (call: ObjectCall, options: StartOptions) => this.start(object, call, options as never),
    };
    return objectClient(port, object as HostedObject<State, Handlers>, key, owner);
  }

  async objectStates(name: string, query: ObjectStateQuery = {}): Promise<ObjectStatePage> {
    this.#worker.lifetime.check();
    return readStates(this.#worker.context.store.records, name, query, this.#scope);
  }

  async find(runId: string): Promise<RunHandle | undefined> {
    this.#worker.lifetime.check();
    const { journal } = this.#worker.context.store;
    const record = await findNamed(journal, parseRunId(runId), this.#scope);
    return record === undefined ? undefined : this.#handle(record, this.#scope?.userId);
  }

  /** S6: returns the stored id of the run that a caller of this tenant names. */
  #storedId(tenantId: string | undefined, runId: string): Promise<RunId> {
    return storedRunId(this.#worker.context.store.journal, tenantId, parseRunId(runId));
  }

  async findSubmitted(runId: string): Promise<RunHandle | undefined> {
    const started = await this.find(runId);
    if (started !== undefined) return started;
    const { mailbox } = this.#worker.context.store;
    const own = runIdWithin(this.#scope?.tenantId, parseRunId(runId));
    const receiver = await mailbox.receiverOf(mailOfSubmission(own));
    return receiver === undefined ? undefined : this.find(receiver);
  }

  async list(query: RunQuery = {}): Promise<RunPage> {
    this.#worker.lifetime.check();
    runQueryTable.read("list()", query);
    return this.#worker.context.store.journal.list(this.#own("list()", checkedIds(query)));
  }

  async count(query: RunCountQuery = {}): Promise<number> {
    this.#worker.lifetime.check();
    runCountTable.read("count()", query);
    return this.#worker.context.store.journal.count(this.#own("count()", checkedIds(query)));
  }

  async changes(after?: string): Promise<RunChangeList> {
    this.#worker.lifetime.check();
    const { runs, next } = await this.#worker.context.store.journal.changes(after);
    const scope = this.#scope;
    return { runs: scope === undefined ? runs : runs.filter((run) => isInScope(run, scope)), next };
  }

  async approvals(query: ApprovalQuery = {}): Promise<ApprovalPage> {
    this.#worker.lifetime.check();
    approvalQueryTable.read("approvals()", query);
    const { runId, agentId } = query;
    if (agentId !== undefined) parseAgentId(agentId);
    const own = this.#own("approvals()", query);
    const named = runId === undefined ? {} : { runId: await this.#storedId(this.#scope?.tenantId, runId) };
    return this.#worker.context.store.journal.approvals({ ...own, ...named });
  }

  async usage(query: UsageQuery): Promise<readonly UsageRow[]> {
    this.#worker.lifetime.check();
    return this.#worker.context.store.usage.sum(this.#own("usage()", query));
  }

  async correctUsage(run: string, call: string, usage: ReportedUsage): Promise<void> {
    this.#worker.lifetime.check();
    if (this.#scope !== undefined)
      throw new Fault(
        "permission_denied",
        "correctUsage() is not available in a view, because it changes what the caps count: call it on the runtime itself",
      );
    const runId = parseRunId(run);
    const { store, clock, prices, unknownPrice } = this.#worker.context;
    if ((await store.journal.find(runId)) === undefined) throw missingRun(runId);
    await correctUsage({ store, clock, prices, unknownPrice, runId, by: anonymousUser }, call, usage);
  }

  async collect(options: Parameters<Runtime["collect"]>[0]): Promise<number> {
    this.#worker.lifetime.check();
    const { endedBefore, only } = collectOptionTable.read("collect()", options);
    const scope = this.#scope;
    const named = options.only ?? [];
    return this.#worker.collect({
      endedBefore: endedBefore,
      ...(only !== undefined && {
        only: await Promise.all(named.map((each) => this.#storedId(scope?.tenantId, each))),
      }),
      ...(scope !== undefined && { scope }),
    });
  }

  readonly attend = (): (() => void) => this.#worker.context.attendance.attend();

  extensionErrors(): readonly ExtensionError[] {
    this.#worker.lifetime.check();
    return this.#worker.extensionErrors.list(this.#scope);
  }

  extensionPort(sessionId: string): ExtensionPort {
    this.#worker.lifetime.check();
    const { tenantId = null, userId = null } = this.#scope ?? {};
    return portFor(this.#worker.context, {
      sessionId: parseSessionId(sessionId),
      runId: null,
      tenantId,
      userId,
    });
  }

  async deadLetters(agentId?: string): Promise<readonly Delivery[]> {
    this.#worker.lifetime.check();
    const { inbox } = this.#worker.context.store;
    return inbox.deadLetters(agentId === undefined ? undefined : agentIdOf(agentId), this.#scope);
  }

  async redeliver(agentId: string, messageIds?: readonly string[]): Promise<number> {
    this.#worker.lifetime.check();
    return this.#worker.context.store.inbox.redeliver(agentIdOf(agentId), messageIds, this.#scope);
  }

  /** Closes the runtime. Does nothing in the view of a tenant, because other callers use the runtime too. */
  async close(): Promise<void> {
    if (this.#scope === undefined) await this.#worker.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #handle(record: RunRecord, by?: string): RunHandle {
    const { context, lifetime: life, observed, awaited, unhosted } = this.#worker;
    const { clock, ids, hash, unknownPrice, sizes, checkSchema, attendance } = context;
    const store = this.#runs;
    if (this.#isOfCaller) this.#worker.noteCaller();
    return new StoredRunHandle({
      store,
      clock,
      ids,
      hash,
      record,
      life,
      unknownPrice,
      sizes,
      observed,
      awaited,
      attendance,
      unhosted,
      by,
      models: context,
      ...(checkSchema !== undefined && { checkSchema }),
      ...(this.#scope !== undefined && { scope: this.#scope }),
    });
  }

  /** Returns options or a query with the tenant and the user of this view. Throws if they name others. */
  #own<
    Options extends {
      readonly tenantId?: string | null | undefined;
      readonly userId?: string | null | undefined;
    },
  >(owner: string, options: Options): Options {
    const scope = this.#scope;
    if (scope === undefined) return options;
    for (const name of ["tenantId", "userId"] as const) {
      const wanted = options?.[name];
      if (wanted === undefined || scope[name] === undefined || wanted === scope[name]) continue;
      throw new Fault(
        "invalid_argument",
        `invalid ${name} ${describeValue(wanted)} of ${owner}: this view is for ${describeValue(scope[name])}; omit ${name}, or use another view`,
      );
    }
    return { ...options, ...scope };
  }
}

/** Returns the options of a call with the tenant and the user of the run whose code calls, unless the options name others. */
function asCaller<Options extends ScheduleOwner>(options: Options, scope: TenantScope | undefined): Options {
  const caller = getRunContext();
  if (caller === undefined || options.tenantId !== undefined || options.userId !== undefined) return options;
  // A view has a tenant of its own, and may have a user.
  if (scope !== undefined && (scope.userId !== undefined || scope.tenantId !== caller.tenantId))
    return options;
  const { tenantId, userId } = caller;
  return { ...options, ...(tenantId !== null && { tenantId }), ...(userId !== null && { userId }) };
}

/** Throws `invalid_argument` if the query contains an id that no run can have. */
function checkedIds<Query extends RunCountQuery>(query: Query): Query {
  const { sessionId, agentId, agentName } = query;
  if (sessionId !== undefined) parseSessionId(sessionId);
  if (agentId !== undefined) parseAgentId(agentId);
  if (agentName !== undefined) parseAgentId(agentName);
  return query;
}

/** The user and the tenant of a run. */
function ownerOf({ userId, tenantId }: RunRecord): Pick<SubmitOptions, "userId" | "tenantId"> {
  return { ...(userId !== null && { userId }), ...(tenantId !== null && { tenantId }) };
}

/** Returns the settings of a task that apply to a child: all but the tool choice, which was for the task's first call. */
function settingsFor({ settings, channel }: TaskRecord): Pick<SubmitOptions, "settings" | "channel"> {
  const { toolChoice: _toolChoice, ...shared } = settings ?? {};
  const named = channel === undefined ? {} : { channel };
  return Object.keys(shared).length === 0 ? named : { ...named, settings: shared };
}

function requireId(name: keyof TenantScope, value: unknown): void {
  if (typeof value !== "string" || value === "")
    throw new Fault(
      "invalid_argument",
      `invalid ${name} ${describeValue(value)} of forTenant(): expected a text that is not empty`,
    );
  const problem = nameProblem(value);
  if (problem !== undefined)
    throw new Fault("invalid_argument", `invalid ${name} of forTenant(): ${problem}`);
}
