import { react } from "./agents/index.ts";
import {
  agentSession,
  BudgetExhaustedError,
  CancellationError,
  closeOpenCalls,
  eventDraft,
  executionBudget,
  Fault,
  formatAgentId,
  formatTaskId,
  MiddlewareTermination,
  RunMeta,
  Supervision,
  userMessage,
  type AgentSession,
  type Clock,
  type Delta,
  type Event,
  type EventDraft,
  type IdSource,
  type Lease,
  type Model,
  type RunFacts,
  type RunId,
  type RunResult,
  type RunStatus,
  type SessionChange,
  type SessionEntry,
  type Store,
  type Tool,
  type ToolSpec,
} from "./kernel/index.ts";
import {
  memoryStore,
  RunJournal,
  sha256,
  systemClock,
  TaskContext,
  uuidSource,
  type SoloTool,
} from "./runtime/index.ts";

export interface SoloRunOptions {
  readonly name: string;
  readonly model: Model;
  readonly input: string;
  readonly instructions?: string;
  readonly tools?: readonly Tool[];
  readonly maxTurns?: number;
  /** A memory store of its own unless told. */
  readonly store?: Store;
  readonly clock?: Clock;
  readonly ids?: IdSource;
}

const taskId = formatTaskId(0);
const workerId = "solo";

/**
 * One agent, one run, in this process: the walking skeleton, on which the contracts are tried until the runtime is there.
 * Journaled, so that a run dropped half way goes on where it stopped and calls nothing twice.
 */
export class SoloRun {
  readonly runId: RunId;
  readonly #store: Store;
  readonly #context: TaskContext;
  readonly #result: Promise<RunResult>;

  private constructor(runId: RunId, store: Store, context: TaskContext, result: Promise<RunResult>) {
    this.runId = runId;
    this.#store = store;
    this.#context = context;
    this.#result = result;
  }

  static async start(options: SoloRunOptions): Promise<SoloRun> {
    const {
      store = memoryStore({ hash: sha256 }),
      clock = systemClock,
      ids = uuidSource,
      name,
      input,
    } = options;
    const agentId = formatAgentId({ name });
    const supervision = Supervision.root(agentId, { ids });
    const { runId, sessionId, priority } = supervision;
    const at = clock.now();
    const entry: SessionEntry = {
      type: "message",
      id: ids.next(),
      parentId: null,
      at,
      runId,
      message: userMessage(input),
    };
    const start = eventDraft("run_start", {
      agentId,
      sessionId,
      input,
      supervision: supervision.toJSON(),
      metadata: {},
    });
    await store.journal.create(
      { runId, agentId, sessionId, tenantId: null, priority, agentVersion: null, createdAt: at },
      {
        number: 0,
        at,
        events: [{ seq: 0, runId, taskId, agentId, parentId: null, at, ...start }],
        sessions: [{ type: "append", sessionId, agentId, entry, visibility: "pending" }],
      },
    );
    return SoloRun.resume({ ...options, store }, runId);
  }

  /** Takes the run over from whoever had it and goes on from its journal. */
  static async resume(options: SoloRunOptions & { readonly store: Store }, runId: RunId): Promise<SoloRun> {
    const { store, clock = systemClock, ids = uuidSource, model, tools = [] } = options;
    await store.leases.enlist(workerId);
    const lease = await store.leases.seize(runId, workerId);
    if (lease === undefined) throw new Fault("not_found", `${runId} has ended or does not exist`);
    const journal = await RunJournal.load({ store, lease, clock, hash: sha256 });
    const { agentId, sessionId } = journal.record;
    const meta = RunMeta.standalone({ clock, ids, runId });
    const facts: RunFacts = { userId: null, sessionId, runId, metadata: {} };
    const source = { taskId, agentId, parentId: null };
    const solo: readonly SoloTool[] = tools;
    const context = new TaskContext({
      journal,
      source,
      meta,
      facts,
      clock,
      hash: sha256,
      model,
      tools: solo,
    });
    return new SoloRun(runId, store, context, drive({ options, store, lease, journal, context, ids }));
  }

  events(fromSeq = 0): AsyncIterable<Event | Delta> {
    return this.#store.events.tail(this.runId, { fromSeq });
  }

  result(): Promise<RunResult> {
    return this.#result;
  }

  cancel(reason?: string): void {
    this.#context.meta.cancellation.cancel(reason);
  }

  /** As a crash would: nothing of it runs on, nothing more is written, and `result` never settles. */
  drop(): void {
    this.#context.drop();
  }
}

interface Drive {
  readonly options: SoloRunOptions;
  readonly store: Store;
  readonly lease: Lease;
  readonly journal: RunJournal;
  readonly context: TaskContext;
  readonly ids: IdSource;
}

async function drive(run: Drive): Promise<RunResult> {
  const { options, store, lease, journal, context } = run;
  const { instructions = "", input } = options;
  const session = agentSession({ id: journal.record.sessionId, instructions });
  context.tell(eventDraft("task_start", { priority: journal.record.priority, budget: executionBudget() }));
  context.tell(eventDraft("agent_start", { input, architecture: "react" }));
  const { status, fault } = await think(run, session);
  if (!journal.ended) {
    const failed =
      fault !== null && status === "failed" ? [eventDraft("agent_error", { failure: fault.toJSON() })] : [];
    const entries = await closingEntries(run, session);
    const leafId = entries.findLast((change) => change.type === "append")?.entry.id ?? null;
    await context.close([...failed, ...closingEvents(run, session, status, leafId)], entries);
  }
  await store.leases.release(lease, { kind: "ended" });
  return {
    output: session.output,
    status,
    interruptionReason: session.interruptionReason,
    usage: session.cumulativeUsage,
    costUsd: session.cumulativeUsage.costUsd,
    turns: session.turns,
    runId: lease.runId,
    sessionId: journal.record.sessionId,
    agentId: journal.record.agentId,
    failure: fault?.toJSON() ?? null,
    metadata: session.metadata,
  };
}

async function think(run: Drive, session: AgentSession): Promise<{ status: RunStatus; fault: Fault | null }> {
  const { options, context } = run;
  const { input, tools = [], maxTurns = 25 } = options;
  const deps = { ctx: context, tools: { list: () => tools.map(specOf) }, maxTurns };
  try {
    for await (const draft of react().run(session, deps, input)) context.tell(draft);
    return { status: session.interrupted ? "max_turns" : "completed", fault: null };
  } catch (error) {
    const fault = Fault.from(error);
    // Not the run's end: another owner has it, or its code does not fit its journal.
    if (fault.code === "lease_lost" || fault.code === "journal_mismatch") throw fault;
    return { status: statusOf(fault), fault };
  }
}

function statusOf(fault: Fault): RunStatus {
  if (fault instanceof CancellationError) return fault.status;
  if (fault instanceof BudgetExhaustedError) return "budget_exhausted";
  return fault instanceof MiddlewareTermination ? "guardrail_tripped" : "failed";
}

function closingEvents(
  { journal }: Drive,
  session: AgentSession,
  status: RunStatus,
  leafId: string | null,
): readonly EventDraft[] {
  const { sessionId } = journal.record;
  const { output, turns, cumulativeUsage: usage, interruptionReason } = session;
  const taskStatus = status === "failed" || status === "cancelled" ? status : "completed";
  return [
    eventDraft("agent_end", { status, output, turns, usage, interruptionReason }),
    eventDraft("save_point", { sessionId, leafId }),
    eventDraft("settled", { sessionId }),
    eventDraft("task_end", { status: taskStatus, output }),
    eventDraft("run_end", { status, usage, costUsd: usage.costUsd, turns }),
  ];
}

/** S1: what the invocation said becomes history, after the user's entry; calls left open get an answer. */
async function closingEntries(
  { store, journal, ids, options }: Drive,
  session: AgentSession,
): Promise<SessionChange[]> {
  const { sessionId, agentId, runId } = journal.record;
  const at = (options.clock ?? systemClock).now();
  const written = await store.sessions.read(sessionId, { hiddenToo: true });
  let parentId = written.findLast(({ entry }) => entry.runId === runId)?.entry.id ?? null;
  const said = closeOpenCalls(session.messages.slice(1), session.interruptionReason ?? "the run stopped");
  const entries = said.map((message): SessionEntry => {
    const entry = { type: "message", id: ids.next(), parentId, at, runId, message } as const;
    parentId = entry.id;
    return entry;
  });
  return [
    ...entries.map((entry): SessionChange => ({
      type: "append",
      sessionId,
      agentId,
      entry,
      visibility: "hidden",
    })),
    { type: "reveal", sessionId, runId },
  ];
}

function specOf({ name, description, inputSchema }: Tool): ToolSpec {
  return { name, description, inputSchema };
}
