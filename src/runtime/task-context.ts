import {
  branchScope,
  canonicalJson,
  CancellationError,
  Fault,
  reviveFault,
  stepAt,
  type AgentId,
  type AskOutcome,
  type Branch,
  type BranchResults,
  type EventDraft,
  type Hash,
  type JsonValue,
  type LlmReply,
  type LlmRequest,
  type Message,
  type RunContext,
  type RunFacts,
  type RunMeta,
  type SpawnOptions,
  type SpawnOutcome,
  type StepAddress,
  type StepKind,
  type StepOutcome,
  type StepScope,
  type TaskHandle,
  type TaskId,
  type TaskOutcome,
  type ToolCall,
  type ToolResult,
  type TopicId,
} from "../kernel/index.ts";
import { callModel, type SentPrefix } from "./model-call.ts";
import type { StepIdentity, TaskRunner } from "./task-runner.ts";
import { callTool } from "./tool-call.ts";

/** A step at work. What it tells commits with its own record, whatever its neighbours do meanwhile. */
interface Doing {
  readonly tell: (draft: EventDraft) => void;
  /** The seq of the event that told of its beginning; -1 without one. */
  readonly openSeq: number;
  /** An earlier owner had begun it. */
  readonly again: boolean;
}

type Body<Value> = (doing: Doing) => Promise<Value>;

/** The steps of one scope of a task: the task itself, a branch, or a tool's body. */
export class TaskContext implements RunContext {
  readonly #runner: TaskRunner;
  readonly #scope: StepScope;
  #index = 0;
  #open: string | undefined;
  /** Where the tools of the last model call have their addresses. */
  #lastLlm: StepAddress | undefined;
  #toolsCalled = 0;
  #sent: SentPrefix | undefined;
  /** E4: told by the code since its last step. */
  #told: EventDraft[] = [];

  constructor(runner: TaskRunner, scope: StepScope) {
    this.#runner = runner;
    this.#scope = scope;
  }

  get meta(): RunMeta {
    return this.#runner.meta;
  }

  get facts(): RunFacts {
    return this.#runner.facts;
  }

  get taskId(): TaskId {
    return this.#runner.taskId;
  }

  get agentId(): AgentId {
    return this.#runner.agentId;
  }

  get input(): JsonValue {
    return this.#runner.task.record.input;
  }

  get signal(): AbortSignal {
    return this.#runner.signal;
  }

  /** E4: told with the next step of this scope; dropped if that step is in the journal, since it was told then. */
  tell(draft: EventDraft): void {
    this.#told.push(draft);
  }

  /** What was told since the last step, for whoever comes after this scope. */
  takeTold(): readonly EventDraft[] {
    return this.#told.splice(0);
  }

  check(): void {
    if (!this.#runner.task.steps.has(stepAt(this.#scope, this.#index))) this.meta.check();
  }

  async llm(request: LlmRequest): Promise<LlmReply> {
    const { role = "main", transcript } = request;
    const address = this.#next();
    const digest = (hash: Hash): string => hash(`${role}\n${transcript.digest(hash)}`);
    const step: StepIdentity = { address, kind: "llm", name: role, digest };
    const start: EventDraft = { type: "message_start", data: { role: "assistant", attempt: 1 } };
    const reply = await this.#journaled<LlmReply>(
      step,
      (doing) => callModel({ runner: this.#runner, address, request, role, sent: this.#sent, ...doing }),
      start,
    );
    this.#lastLlm = address;
    this.#toolsCalled = 0;
    this.#sent = { messages: transcript.length, tokens: reply.usage.inputTokens };
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
    return this.#alone("tools", () => this.#callTools(scope, first, calls));
  }

  spawn(agentId: AgentId, input: JsonValue, options: SpawnOptions = {}): Promise<SpawnOutcome> {
    const step = this.#identify("spawn", agentId, { input, options: { ...options } });
    return this.#journaled<SpawnOutcome>(step, async () => {
      await this.#runner.seated();
      this.meta.check();
      return this.#runner.tree.spawn(this.taskId, agentId, input, options);
    });
  }

  join(handle: TaskHandle): Promise<TaskOutcome> {
    const { taskId } = handle;
    return this.#waitFor<TaskOutcome>(`join ${taskId}`, () => this.#runner.tree.whenEnded(taskId));
  }

  joinAll(handles: readonly TaskHandle[]): Promise<readonly TaskOutcome[]> {
    const names = handles.map(({ taskId }) => taskId).join(" ");
    return this.#waitFor<readonly TaskOutcome[]>(`join ${names}`, () =>
      Promise.all(handles.map(({ taskId }) => this.#runner.tree.whenEnded(taskId))),
    );
  }

  cancel({ taskId }: TaskHandle, reason: string): Promise<void> {
    return this.#send("cancel", taskId, { reason }, async () => this.#runner.tree.cancel(taskId, reason));
  }

  async parallel<Branches extends Readonly<Record<string, Branch<unknown>>>>(
    branches: Branches,
  ): Promise<BranchResults<Branches>> {
    const address = this.#next();
    return this.#alone("parallel", async () => {
      const names = Object.keys(branches);
      const settled = await Promise.allSettled(
        names.map(async (name) => {
          const ctx = new TaskContext(this.#runner, branchScope(address, name));
          const value = await branches[name]?.(ctx);
          this.#told.push(...ctx.takeTold());
          return value;
        }),
      );
      const failed = settled.find((each) => each.status === "rejected");
      if (failed !== undefined) throw failed.reason;
      const values = settled.map((each) => (each.status === "fulfilled" ? each.value : undefined));
      return Object.fromEntries(names.map((name, index) => [name, values[index]])) as BranchResults<Branches>;
    });
  }

  async race<Value>(
    branches: Readonly<Record<string, Branch<Value>>>,
  ): Promise<{ readonly winner: string; readonly value: Value }> {
    const step = this.#identify("race", Object.keys(branches).join(" "), null);
    return this.#journaled<{ winner: string; value: Value }>(step, () => {
      const runners = Object.entries(branches).map(async ([name, branch]) => {
        const value = await branch(new TaskContext(this.#runner, branchScope(step.address, name)));
        return { winner: name, value };
      });
      return Promise.race(runners);
    });
  }

  async ask(
    target: AgentId | TaskHandle,
    body: JsonValue,
    { timeoutMs }: { readonly timeoutMs?: number } = {},
  ): Promise<AskOutcome> {
    const name = typeof target === "string" ? target : target.taskId;
    const step = this.#identify("wait", `ask ${name}`, { body, timeoutMs: timeoutMs ?? null });
    return this.#journaled<AskOutcome>(step, async () => {
      const until = timeoutMs === undefined ? null : this.#runner.owner.clock.now() + timeoutMs;
      return typeof target === "string"
        ? this.#askAgent(step.address, target, body, until)
        : this.#askTask(target, until);
    });
  }

  reply(message: Message, body: JsonValue): Promise<void> {
    return this.#send("reply", message.id, body, async (address) => {
      const { replyTo } = message;
      if (replyTo === undefined)
        throw new Fault("invalid_argument", `message ${message.id} does not ask for a reply`);
      this.#runner.replied.add(message.id);
      const value = { kind: "replied", body };
      const { runId, taskId, wait } = replyTo;
      this.#runner.log.add({
        mail: [
          {
            id: `reply ${this.#idempotencyKey(address)}`,
            runId,
            from: this.agentId,
            at: this.#runner.owner.clock.now(),
            body: { type: "resolve", taskId, wait, value },
          },
        ],
      });
    });
  }

  send(target: AgentId, body: JsonValue): Promise<void> {
    return this.#send("send", target, body, async (address) => this.#deliver(address, target, body));
  }

  emit(topic: TopicId, body: JsonValue): Promise<void> {
    return this.#send("emit", topic, body, async (address) => {
      const followers = await this.#runner.owner.store.topics.followers(topic);
      for (const follower of followers) this.#deliver(address, follower, body);
    });
  }

  follow(topicId: TopicId): Promise<void> {
    return this.#send("follow", topicId, null, async () =>
      this.#runner.log.add({ topics: [{ type: "follow", topicId, agentId: this.agentId }] }),
    );
  }

  unfollow(topicId: TopicId): Promise<void> {
    return this.#send("unfollow", topicId, null, async () =>
      this.#runner.log.add({ topics: [{ type: "unfollow", topicId, agentId: this.agentId }] }),
    );
  }

  async sleepUntil(atMs: number): Promise<void> {
    await this.#waitFor<null>(`sleep ${atMs}`, async () => {
      await this.#runner.tree.resolved(this.taskId, `sleep ${atMs}`, atMs);
      return null;
    });
  }

  async waitForSignal(
    name: string,
    { timeoutMs }: { readonly timeoutMs?: number } = {},
  ): Promise<JsonValue | undefined> {
    const until = timeoutMs === undefined ? null : (await this.now()) + timeoutMs;
    const { value } = await this.#waitFor<{ value?: JsonValue }>(`signal ${name}`, async () => {
      const came = await this.#runner.tree.resolved(this.taskId, `signal ${name}`, until);
      return came === undefined ? {} : { value: came };
    });
    return value;
  }

  /** Not journaled: it is opened anew by whoever replays. */
  async resource<Value>(open: () => Promise<Value>, close: (value: Value) => Promise<void>): Promise<Value> {
    const value = await this.#runner.live(open());
    this.#runner.onDrop(() => close(value));
    return value;
  }

  step<Value extends JsonValue>(
    name: string,
    body: (step: { readonly idempotencyKey: string; readonly signal: AbortSignal }) => Promise<Value>,
    { input = null }: { readonly input?: JsonValue } = {},
  ): Promise<Value> {
    const step = this.#identify("step", name, input);
    return this.#journaled<Value>(step, async () => {
      await this.#runner.begin();
      try {
        return await body({ idempotencyKey: this.#idempotencyKey(step.address), signal: this.signal });
      } finally {
        this.#runner.finish();
      }
    });
  }

  now(): Promise<number> {
    return this.#value("now", () => this.#runner.owner.clock.now());
  }

  random(): Promise<number> {
    return this.#value("random", () => this.#runner.owner.random.next());
  }

  uuid(): Promise<string> {
    return this.#value("uuid", () => this.#runner.owner.ids.next());
  }

  /** For the inbox: which messages a drain gave is journaled, so that a replay drains the same. */
  drain(peek: () => Promise<readonly Message[]>): Promise<readonly Message[]> {
    return this.#journaled<readonly Message[]>(this.#identify("drain", "inbox", null), peek);
  }

  async continueAsNew(state: JsonValue): Promise<never> {
    await this.#journaled(this.#identify("send", "continueAsNew", state), async () => null);
    throw new ContinueAsNew(state);
  }

  async #callTools(
    scope: StepAddress,
    first: number,
    calls: readonly ToolCall[],
  ): Promise<readonly ToolResult[]> {
    const run = (call: ToolCall, index: number): Promise<ToolResult> =>
      this.#callTool(stepAt(scope, first + index), call);
    const results: (Promise<ToolResult> | ToolResult)[] = [];
    for (const [index, call] of calls.entries()) {
      const tool = this.#runner.findTool(call.toolName);
      // A sequential tool waits for those before it, and those after it wait for it.
      if (tool?.concurrency === "sequential") {
        await Promise.allSettled(results);
        results.push(await run(call, index));
      } else {
        const running = run(call, index);
        running.catch(() => undefined);
        results.push(running);
      }
    }
    const settled = await Promise.allSettled(results);
    return settled.map((each) => {
      if (each.status === "rejected") throw each.reason;
      return each.value;
    });
  }

  #callTool(address: StepAddress, call: ToolCall): Promise<ToolResult> {
    const digest = (hash: Hash): string => hash(canonicalJson(call.input));
    const step: StepIdentity = { address, kind: "tool", name: call.toolName, digest };
    const { callId, toolName, input } = call;
    const start: EventDraft = { type: "tool_execution_start", data: { callId, toolName, input } };
    return this.#recorded<ToolResult>(
      step,
      ({ tell }) =>
        callTool({
          runner: this.#runner,
          call,
          tell,
          idempotencyKey: this.#idempotencyKey(address),
          ctx: new TaskContext(this.#runner, address),
        }),
      start,
    );
  }

  async #askAgent(
    address: StepAddress,
    to: AgentId,
    body: JsonValue,
    until: number | null,
  ): Promise<AskOutcome> {
    const wait = `reply ${address}`;
    await this.#runner.seated();
    this.meta.check();
    const { runId } = this.meta;
    this.#deliver(address, to, body, { runId, taskId: this.taskId, wait });
    const came = await this.#runner.waiting(this.#runner.tree.resolved(this.taskId, wait, until));
    return came === undefined ? { kind: "timed_out", partial: null } : (came as unknown as AskOutcome);
  }

  /** H5: a hand-off that takes too long cancels its child. */
  async #askTask({ taskId }: TaskHandle, until: number | null): Promise<AskOutcome> {
    const { tree } = this.#runner;
    const timer = tree.resolved(this.taskId, `timeout ${taskId}`, until);
    const ended = await this.#runner.waiting(
      Promise.race([tree.whenEnded(taskId), until === null ? new Promise<never>(() => {}) : timer]),
    );
    if (ended === undefined || !isOutcome(ended)) {
      tree.cancel(taskId, "the hand-off timed out");
      return { kind: "timed_out", partial: null };
    }
    const { status, output, failure } = ended;
    if (status === "completed") return { kind: "replied", body: output };
    if (status === "paused") return { kind: "target_paused", partial: output };
    return { kind: status === "failed" ? "target_failed" : "target_cancelled", failure };
  }

  #deliver(address: StepAddress, to: AgentId, body: JsonValue, replyTo?: Message["replyTo"]): void {
    const message: Message = {
      id: `${this.#idempotencyKey(address)} ${to}`,
      from: this.agentId,
      to,
      body,
      sentAt: this.#runner.owner.clock.now(),
      ...(replyTo === undefined ? {} : { replyTo }),
    };
    this.#runner.log.add({ inbox: [{ type: "deliver", message }] });
  }

  async #send(
    verb: string,
    target: string,
    body: JsonValue,
    perform: (address: StepAddress) => Promise<void>,
  ): Promise<void> {
    const step = this.#identify("send", `${verb} ${target}`, body);
    await this.#journaled<null>(step, async () => {
      await this.#runner.seated();
      this.meta.check();
      await perform(step.address);
      return null;
    });
  }

  #waitFor<Value>(name: string, work: () => Promise<Value>): Promise<Value> {
    const step = this.#identify("wait", name, null);
    return this.#journaled<Value>(step, () => this.#runner.waiting(work()));
  }

  #value<Value extends JsonValue>(name: string, read: () => Value): Promise<Value> {
    return this.#journaled<Value>(this.#identify("value", name, null), async () => read());
  }

  #next(): StepAddress {
    return stepAt(this.#scope, this.#index++);
  }

  #identify(kind: StepKind, name: string, input: unknown): StepIdentity {
    return { address: this.#next(), kind, name, digest: (hash: Hash) => hash(canonicalJson(input)) };
  }

  #idempotencyKey(address: StepAddress): string {
    return `${this.meta.runId}/${this.taskId}/${address}`;
  }

  #journaled<Value>(step: StepIdentity, body: Body<Value>, start?: EventDraft): Promise<Value> {
    return this.#alone(`${step.kind} ${step.name}`, () => this.#recorded(step, body, start));
  }

  /** J2: one journaled call at a time in a scope, at the first run already. */
  async #alone<Value>(name: string, body: () => Promise<Value>): Promise<Value> {
    if (this.#open !== undefined) {
      throw new Fault(
        "journal_ambiguous",
        `${name} was called while ${this.#open} is open: await it first, or use ctx.parallel, ctx.tools, ctx.joinAll or ctx.race`,
      );
    }
    this.#open = name;
    try {
      return await this.#runner.live(body());
    } finally {
      this.#open = undefined;
    }
  }

  /** J1, J5: the recorded outcome, or the body's, recorded. Both leave by the same lines. */
  async #recorded<Value>(step: StepIdentity, body: Body<Value>, start?: EventDraft): Promise<Value> {
    let outcome = this.#runner.find(step);
    if (outcome === undefined) outcome = await this.#runner.live(this.#perform(step, body, start));
    else this.#told = [];
    if (outcome.kind === "failed") {
      this.#runner.lastFault = step.address;
      throw reviveFault(outcome.failure);
    }
    return outcome.value as Value;
  }

  async #perform(
    step: StepIdentity,
    body: Body<unknown>,
    start: EventDraft | undefined,
  ): Promise<StepOutcome> {
    const told: EventDraft[] = [];
    const opening = this.#runner.open(step.address, [
      ...this.#told.splice(0),
      ...(start === undefined ? [] : [start]),
    ]);
    const outcome = await attempt(() => body({ tell: (draft) => void told.push(draft), ...opening }));
    if (!this.#runner.dropped) this.#runner.record(step, outcome, told);
    return outcome;
  }
}

/** Thrown by `continueAsNew` to leave the agent's code; never seen by it unless it catches everything. */
export class ContinueAsNew {
  readonly state: JsonValue;

  constructor(state: JsonValue) {
    this.state = state;
  }
}

/** A stop is not an outcome of the step: whoever replays is stopped again (C2). Everything else that is thrown is recorded (J5). */
async function attempt(body: () => Promise<unknown>): Promise<StepOutcome> {
  try {
    return { kind: "ok", value: ((await body()) ?? null) as JsonValue };
  } catch (error) {
    const fault = Fault.from(error);
    if (fault instanceof CancellationError || fault.code === "lease_lost") throw fault;
    return { kind: "failed", failure: fault.toJSON() };
  }
}

function isOutcome(value: JsonValue | TaskOutcome): value is TaskOutcome {
  return typeof value === "object" && value !== null && "status" in value && "output" in value;
}
