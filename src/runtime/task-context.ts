import {
  BudgetExhaustedError,
  CancellationError,
  canonicalJson,
  Fault,
  MiddlewareTermination,
  eventDraft,
  reviveFault,
  stepAt,
  systemMessage,
  type AgentId,
  type Clock,
  type EventDraft,
  type Hash,
  type JsonValue,
  type LlmReply,
  type LlmRequest,
  type Model,
  type ModelRequest,
  type RunContext,
  type RunFacts,
  type RunMeta,
  type SessionChange,
  type StepAddress,
  type StepKind,
  type StepOutcome,
  type StepScope,
  type TaskId,
  type Tool,
  type ToolCall,
  type ToolContext,
  type ToolResult,
} from "../kernel/index.ts";
import type { EventSource, RunJournal, StepIdentity } from "./run-journal.ts";

/** The part of `RunContext` that stands today: one task, its model and its tools. */
type SoloContext = Pick<
  RunContext,
  "meta" | "facts" | "taskId" | "agentId" | "signal" | "llm" | "tool" | "tools" | "step" | "now" | "check"
>;

/** A tool whose body needs no more of a context than there is. */
export interface SoloTool extends Omit<Tool, "execute"> {
  execute(
    input: unknown,
    context: Omit<ToolContext, "ctx"> & { readonly ctx: SoloContext },
  ): Promise<ToolResult>;
}

export interface TaskContextOptions {
  readonly journal: RunJournal;
  readonly source: EventSource;
  readonly meta: RunMeta;
  readonly facts: RunFacts;
  readonly clock: Clock;
  readonly hash: Hash;
  readonly model: Model;
  readonly tools: readonly SoloTool[];
}

/** What a step does. What it tells commits with its own record, whatever its neighbours do meanwhile. */
type Body<Value> = (tell: (draft: EventDraft) => void) => Promise<Value>;

/** The steps of one scope of a task. A tool's body gets one of its own, under its call (J7). */
export class TaskContext implements SoloContext {
  readonly meta: RunMeta;
  readonly facts: RunFacts;
  readonly taskId: TaskId;
  readonly agentId: AgentId;
  readonly #options: TaskContextOptions;
  readonly #scope: StepScope;
  readonly #task: TaskState;
  #index = 0;
  #open: string | undefined;
  /** Where the tools of the last model call have their addresses. */
  #lastLlm: StepAddress | undefined;
  #toolsCalled = 0;

  constructor(options: TaskContextOptions, scope: StepScope = "", task = new TaskState()) {
    this.#options = options;
    this.#scope = scope;
    this.#task = task;
    this.meta = options.meta;
    this.facts = options.facts;
    this.taskId = options.source.taskId;
    this.agentId = options.source.agentId;
  }

  get signal(): AbortSignal {
    return this.#task.signalOf(this.meta);
  }

  /** Poisons this task's contexts: their calls never settle, and nothing of theirs starts or is written any more. */
  drop(): void {
    this.#task.dropped = true;
  }

  /** E4: told with the next step of this task; dropped if that step is in the journal, since it was told then. */
  tell(draft: EventDraft): void {
    this.#task.pending.push(draft);
  }

  /** Commits what was told since the last step, with the close of the invocation (S1). */
  async close(drafts: readonly EventDraft[], sessions: readonly SessionChange[]): Promise<void> {
    const { journal, source } = this.#options;
    await this.#live(journal.commit(source, { drafts: [...this.#task.take(), ...drafts], sessions }));
  }

  check(): void {
    if (!this.#options.journal.hasRecord(this.taskId, stepAt(this.#scope, this.#index))) this.meta.check();
  }

  async llm(request: LlmRequest): Promise<LlmReply> {
    const { model } = this.#options;
    const { transcript, role = "main" } = request;
    const address = this.#next();
    const digest = (hash: Hash): string => hash(`${role}\n${transcript.digest(hash)}`);
    const reply = await this.#journaled<LlmReply>(
      this.#identify(address, "llm", role, digest),
      async (tell) => {
        tell(eventDraft("message_start", { role: "assistant", attempt: 1 }));
        const response = await model.generate(modelRequest(request), { signal: this.signal });
        const { message, stopReason } = response;
        const { provider, modelId } = model;
        const usage = { ...response.usage, costUsd: response.usage.costUsd ?? null };
        const named = { provider, modelId: response.modelId ?? modelId };
        tell(eventDraft("message_end", { message, stopReason, usage, model: named }));
        return { message, stopReason, usage, model: named };
      },
    );
    this.#lastLlm = address;
    this.#toolsCalled = 0;
    return reply;
  }

  async tool(call: ToolCall): Promise<ToolResult> {
    const [result] = await this.tools([call]);
    if (result === undefined) throw new Fault("internal", `tool ${call.toolName} gave no result`);
    return result;
  }

  tools(calls: readonly ToolCall[]): Promise<readonly ToolResult[]> {
    const scope = this.#lastLlm ?? this.#next();
    const first = this.#toolsCalled;
    this.#toolsCalled += calls.length;
    return this.#alone("tools", async () => {
      const settled = await Promise.allSettled(
        calls.map((call, index) => this.#callTool(stepAt(scope, first + index), call)),
      );
      return settled.map((each) => {
        if (each.status === "rejected") throw each.reason;
        return each.value;
      });
    });
  }

  async step<Value extends JsonValue>(
    name: string,
    body: (step: { readonly idempotencyKey: string; readonly signal: AbortSignal }) => Promise<Value>,
    options: { readonly input?: JsonValue } = {},
  ): Promise<Value> {
    const address = this.#next();
    const digest = (hash: Hash): string => hash(canonicalJson(options.input ?? null));
    return this.#journaled<Value>(this.#identify(address, "step", name, digest), () =>
      body({ idempotencyKey: this.#idempotencyKey(address), signal: this.signal }),
    );
  }

  now(): Promise<number> {
    const { clock } = this.#options;
    return this.#journaled<number>(this.#identify(this.#next(), "value", "now", ""), async () => clock.now());
  }

  #callTool(address: StepAddress, call: ToolCall): Promise<ToolResult> {
    const digest = (hash: Hash): string => hash(canonicalJson(call.input));
    return this.#recorded<ToolResult>(
      this.#identify(address, "tool", call.toolName, digest),
      async (tell) => {
        const { callId, toolName, input } = call;
        const { clock } = this.#options;
        const startedAt = clock.now();
        tell(eventDraft("tool_execution_start", { callId, toolName, input }));
        const result = await this.#executeTool(address, call);
        tell(
          eventDraft("tool_execution_end", { callId, toolName, result, durationMs: clock.now() - startedAt }),
        );
        return result;
      },
    );
  }

  /** T2: what goes wrong inside a tool is a result the model can react to. */
  async #executeTool(address: StepAddress, { callId, toolName, input }: ToolCall): Promise<ToolResult> {
    const tool = this.#options.tools.find(({ name }) => name === toolName);
    if (tool === undefined) {
      const known = this.#options.tools.map(({ name }) => name).join(", ");
      return failure(`there is no tool ${toolName}; there are: ${known}`);
    }
    const { meta, facts, signal } = this;
    const idempotencyKey = this.#idempotencyKey(address);
    const ctx = new TaskContext(this.#options, address, this.#task);
    try {
      const parsed = await tool.parse(input);
      return await tool.execute(parsed, {
        meta,
        facts,
        signal,
        idempotencyKey,
        callId,
        progress: () => {},
        ctx,
      });
    } catch (error) {
      if (stopsRun(error)) throw error;
      return failure(Fault.from(error).message);
    }
  }

  #next(): StepAddress {
    return stepAt(this.#scope, this.#index++);
  }

  #identify(
    address: StepAddress,
    kind: StepKind,
    name: string,
    digest: StepIdentity["digest"],
  ): StepIdentity {
    return { taskId: this.taskId, address, kind, name, digest };
  }

  #idempotencyKey(address: StepAddress): string {
    return `${this.meta.runId}/${this.taskId}/${address}`;
  }

  #journaled<Value>(step: StepIdentity, body: Body<Value>): Promise<Value> {
    return this.#alone(`${step.kind} ${step.name}`, () => this.#recorded(step, body));
  }

  /** J2: one journaled call at a time in a scope, at the first run already. */
  async #alone<Value>(name: string, body: () => Promise<Value>): Promise<Value> {
    if (this.#open !== undefined) {
      throw new Fault(
        "journal_ambiguous",
        `${name} was called while ${this.#open} is open: await it first, or use ctx.tools or ctx.parallel`,
      );
    }
    this.#open = name;
    try {
      return await body();
    } finally {
      this.#open = undefined;
    }
  }

  /** J1, J5: the recorded outcome, or the body's, recorded. Both leave by the same two lines. */
  async #recorded<Value>(step: StepIdentity, body: Body<Value>): Promise<Value> {
    let outcome = this.#options.journal.find(step);
    if (outcome === undefined) outcome = await this.#live(this.#perform(step, body));
    else this.#task.take();
    if (outcome.kind === "failed") throw reviveFault(outcome.failure);
    return outcome.value as Value;
  }

  async #perform(step: StepIdentity, body: Body<unknown>): Promise<StepOutcome> {
    const { journal, source } = this.#options;
    this.meta.check();
    await journal.checkLease();
    const told: EventDraft[] = [];
    const outcome = await attempt(() => body((draft) => told.push(draft)));
    if (this.#task.dropped) return outcome;
    await journal.commit(source, { steps: [{ ...step, outcome }], drafts: [...this.#task.take(), ...told] });
    return outcome;
  }

  /** A dropped task's promises stay unresolved, so that none of its code runs on. */
  async #live<Value>(work: Promise<Value>): Promise<Value> {
    const value = await work;
    return this.#task.dropped ? new Promise<never>(() => {}) : value;
  }
}

/** What the contexts of one task share. */
class TaskState {
  dropped = false;
  pending: EventDraft[] = [];
  #signal: AbortSignal | undefined;

  take(): EventDraft[] {
    const taken = this.pending;
    this.pending = [];
    return taken;
  }

  /** A platform signal that follows the task's token, made when someone first asks. */
  signalOf(meta: RunMeta): AbortSignal {
    if (this.#signal === undefined) {
      const controller = new AbortController();
      meta.cancellation.onCancel((error) => controller.abort(error));
      this.#signal = controller.signal;
    }
    return this.#signal;
  }
}

async function attempt(body: () => Promise<unknown>): Promise<StepOutcome> {
  try {
    return { kind: "ok", value: (await body()) as JsonValue };
  } catch (error) {
    return { kind: "failed", failure: Fault.from(error).toJSON() };
  }
}

function modelRequest({
  transcript,
  instructions,
  ephemeral = [],
  role: _role,
  ...rest
}: LlmRequest): ModelRequest {
  const system = instructions === undefined || instructions === "" ? [] : [systemMessage(instructions)];
  return { ...rest, messages: [...system, ...transcript, ...ephemeral] };
}

function failure(text: string): ToolResult {
  return { output: { type: "text", text }, isError: true };
}

function stopsRun(error: unknown): boolean {
  return (
    error instanceof CancellationError ||
    error instanceof BudgetExhaustedError ||
    error instanceof MiddlewareTermination
  );
}
