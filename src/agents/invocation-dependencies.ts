import {
  agentSession,
  messageText,
  modelFor,
  rootTaskId,
  toolCallsOf,
  Transcript,
  type HostedAgent,
  type AgentContext,
  type AgentSession,
  type Budget,
  type CallSettings,
  type Dependencies,
  type ExtraToolListener,
  type JsonSchema,
  type JsonValue,
  type LlmReply,
  type LlmRequest,
  type Model,
  type ModelRequest,
  type ModelResponse,
  type ModelStreamPart,
  type ResponseFormat,
  type ReplyReasons,
  type RunContext,
  type RunFacts,
  type SessionId,
  type SpawnOptions,
  type SpawnOutcome,
  type Tool,
  type ToolHost,
  type ToolResult,
  type ToolSpec,
  type WorkerInput,
} from "../kernel/index.ts";
import type { SchemaCheck } from "./answer-format.ts";
import type { TaskBudget } from "./task-budget.ts";
import type { OpenSessions } from "./prompt-history.ts";
import type { CompactionPlan } from "./compaction/compaction-plan.ts";
import { isOverflow, shortenTranscript } from "./compaction/overflow.ts";
import { summaryRole } from "./compaction/summary-role.ts";
import { samplingOf } from "./calling/call-settings.ts";
import { SearchedSpecs } from "./searched-specs.ts";

/** The dependencies that are the same in every scope of an invocation. */
export interface InvocationParts extends Pick<
  Dependencies,
  "memory" | "permissions" | "hooks" | "telemetry" | "ephemeral" | "streaming" | "settings"
> {
  readonly agent: HostedAgent;
  readonly sessionId: AgentSession["id"];
  readonly sessions: OpenSessions;
  /**
   * Returns the conversation for a scope. A window makes its summaries in the scope that reads it, because another
   * scope may have a call in flight (J2).
   */
  readonly historyIn: (ctx: RunContext) => AgentContext;
  readonly budget: TaskBudget;
  /** Names of the agent's middleware. */
  readonly layers: ReadonlySet<string>;
  readonly check: SchemaCheck;
  /** How transcripts that exceed the context window are shortened. `null` if they are not. */
  readonly compaction: Pick<CompactionPlan, "strategy" | "keepRecentTokens"> | null;
  /** The tool specifications that were frozen when the invocation began. */
  readonly specs: readonly ToolSpec[];
  /** Notes why the replies of `deps.model` ended, so that an answer that was cut is recognised. */
  readonly replies: ReplyReasons;
}

interface ResultWatcher {
  readonly tools: readonly Tool[];
  readonly onResult: ExtraToolListener;
}

interface Scope extends Pick<
  Dependencies,
  "steering" | "isSteered" | "followUps" | "prepareStep" | "stopWhen" | "outputFormat"
> {
  readonly ctx: RunContext;
  readonly history: AgentContext;
  readonly role: string;
  readonly extra: readonly Tool[];
  readonly watchers: readonly ResultWatcher[];
  readonly maxTurns: number;
}

/** The dependencies of an architecture in one scope of an invocation. */
export class InvocationDependencies implements Dependencies {
  readonly #parts: InvocationParts;
  readonly #scope: Scope;
  #tools: ToolHost | undefined;
  #model: Model | undefined;

  constructor(parts: InvocationParts, scope: Scope) {
    this.#parts = parts;
    this.#scope = scope;
  }

  get ctx(): RunContext {
    return this.#scope.ctx;
  }

  get role(): string {
    return this.#scope.role;
  }

  get maxTurns(): number {
    return this.#scope.maxTurns;
  }

  get context(): RunFacts {
    return this.#scope.ctx.facts;
  }

  get model(): Model {
    return (this.#model ??= new JournaledModel(this.#parts, this.#scope));
  }

  get tools(): ToolHost {
    return (this.#tools ??= new JournaledTools(this.#parts, this.#scope));
  }

  get history(): AgentContext {
    return this.#scope.history;
  }

  get memory(): Dependencies["memory"] {
    return this.#parts.memory;
  }

  get budget(): Budget {
    return this.#parts.budget;
  }

  get permissions(): Dependencies["permissions"] {
    return this.#parts.permissions;
  }

  get hooks(): Dependencies["hooks"] {
    return this.#parts.hooks;
  }

  get telemetry(): Dependencies["telemetry"] {
    return this.#parts.telemetry;
  }

  get streaming(): boolean {
    return this.#parts.streaming;
  }

  get settings(): Dependencies["settings"] {
    const { settings } = this.#parts;
    // Only the main loop of the invocation chooses a tool.
    return settings !== null && this.#scope.steering === null ? samplingOf(settings) : settings;
  }

  get ephemeral(): Dependencies["ephemeral"] {
    return this.#parts.ephemeral;
  }

  get steering(): Dependencies["steering"] {
    return this.#scope.steering;
  }

  get isSteered(): boolean {
    return this.#scope.isSteered;
  }

  get followUps(): Dependencies["followUps"] {
    return this.#scope.followUps;
  }

  get prepareStep(): Dependencies["prepareStep"] {
    return this.#scope.prepareStep;
  }

  get stopWhen(): Dependencies["stopWhen"] {
    return this.#scope.stopWhen;
  }

  get outputFormat(): ResponseFormat | null {
    return this.#scope.outputFormat;
  }

  get fastAudit(): boolean {
    return !this.#parts.layers.has("audit-logger");
  }

  get fastTelemetry(): boolean {
    return this.#parts.telemetry === null && !this.#parts.layers.has("tracing");
  }

  get fastPermissions(): boolean {
    return this.#parts.permissions === null;
  }

  get fastHooks(): boolean {
    return this.#parts.hooks === null && this.#parts.agent.callPath?.observer === undefined;
  }

  get fastRuntime(): boolean {
    return false;
  }

  get fastBudget(): boolean {
    return this.#parts.budget.isUnlimited;
  }

  freshSession(role: string, instructions: string): AgentSession {
    const { sessions, sessionId } = this.#parts;
    const id = sessions.free(`${sessionId.slice(0, 180)}__${role}`);
    return sessions.add(agentSession({ id, instructions }));
  }

  scopeForWorker(role: string, ctx: RunContext = this.#scope.ctx): Dependencies {
    const { historyIn } = this.#parts;
    const isElsewhere = ctx !== this.#scope.ctx;
    const unheard = {
      steering: null,
      isSteered: false,
      followUps: null,
      prepareStep: null,
      stopWhen: null,
      outputFormat: null,
    };
    const elsewhere = isElsewhere ? { history: historyIn(ctx), extra: [], watchers: [] } : {};
    return new InvocationDependencies(this.#parts, { ...this.#scope, ...unheard, ...elsewhere, role, ctx });
  }

  withExtraTools(tools: readonly Tool[], onResult?: ExtraToolListener): Dependencies {
    const { extra: outer, watchers: others } = this.#scope;
    // Tools that a tool of an outer scope hides are not called, so their results are not reported to this listener.
    const own = tools.filter(
      ({ name }, index) => ![...outer, ...tools.slice(0, index)].some((tool) => tool.name === name),
    );
    const extra = [...outer, ...own];
    const watchers = onResult === undefined ? others : [...others, { tools: own, onResult }];
    return new InvocationDependencies(this.#parts, { ...this.#scope, extra, watchers });
  }

  withMaxTurns(maxTurns: number): Dependencies {
    return new InvocationDependencies(this.#parts, { ...this.#scope, maxTurns });
  }

  callShorter(fault: unknown, request: LlmRequest, sessionId?: SessionId): Promise<LlmReply> {
    return callShorter(this.#parts, this.#scope, fault, request, sessionId);
  }

  async problemsOf(schema: JsonSchema, value: JsonValue): Promise<readonly string[]> {
    return this.#parts.check(schema, value);
  }

  spawnWorker(worker: HostedAgent, input: WorkerInput, options?: SpawnOptions): Promise<SpawnOutcome> {
    return this.#scope.ctx.spawn(worker.id, input as JsonValue, options);
  }
}

/**
 * Calls the model again with a shorter transcript after an overflow. The next invocation would start with the same
 * conversation, so the overflow of the invocation's own session also requests its compaction.
 */
async function callShorter(
  { compaction, sessionId: ownId }: InvocationParts,
  { ctx, history }: Scope,
  fault: unknown,
  request: LlmRequest,
  sessionId: SessionId | undefined,
): Promise<LlmReply> {
  if (!isOverflow(fault) || compaction === null) throw fault;
  const transcript =
    sessionId === undefined
      ? await shortenTranscript({ ctx, plan: compaction, role: summaryRole }, request.transcript)
      : await history.shorten?.(sessionId);
  if (transcript === null || transcript === undefined) throw fault;
  if (sessionId === ownId && ctx.taskId === rootTaskId) ctx.requestCompaction();
  return ctx.llm({ ...request, transcript });
}

/** The agent's tools and those of the scope. If two have the same name, the scope's tool is used. */
class JournaledTools implements ToolHost {
  readonly #parts: InvocationParts;
  readonly #scope: Scope;
  #specs: SearchedSpecs | undefined;

  constructor(parts: InvocationParts, scope: Scope) {
    this.#parts = parts;
    this.#scope = scope;
  }

  list(conversation?: Transcript): readonly ToolSpec[] {
    this.#specs ??= new SearchedSpecs(this.#allSpecs());
    if (conversation === undefined) return this.#specs.all;
    return this.#specs.sent(conversation, () => [...this.#scope.extra, ...(this.#parts.agent.tools ?? [])]);
  }

  #allSpecs(): readonly ToolSpec[] {
    const { specs } = this.#parts;
    const { extra } = this.#scope;
    if (extra.length === 0) return specs;
    const names = new Set(extra.map(({ name }) => name));
    return [...specs.filter(({ name }) => !names.has(name)), ...extra.map(specOf)];
  }

  find(name: string): Tool | undefined {
    const named = (tool: Tool): boolean => tool.name === name;
    return this.#scope.extra.find(named) ?? this.#parts.agent.tools?.find(named);
  }

  async call(call: Parameters<ToolHost["call"]>[0]): Promise<Awaited<ReturnType<ToolHost["call"]>>> {
    const [result] = await this.callAll([call]);
    return result as Awaited<ReturnType<ToolHost["call"]>>;
  }

  callAll(
    calls: Parameters<ToolHost["callAll"]>[0],
    options: Parameters<ToolHost["callAll"]>[1] = {},
  ): ReturnType<ToolHost["callAll"]> {
    const { ctx, extra, watchers } = this.#scope;
    if (extra.length === 0) return ctx.tools(calls, options);
    const onResult = inOrder(calls, watchers, options.onResult);
    const { only } = options;
    return ctx.tools(calls, { extra, ...(only && { only }), ...(onResult && { onResult }) });
  }
}

/** Calls a listener with the results in the order of the calls, so that every replay calls it in the same order. */
function inOrder(
  calls: Parameters<ToolHost["callAll"]>[0],
  watchers: readonly ResultWatcher[],
  onResult: NonNullable<Parameters<ToolHost["callAll"]>[1]>["onResult"],
): typeof onResult {
  if (watchers.length === 0) return onResult;
  const results: (ToolResult | undefined)[] = calls.map(() => undefined);
  let told = 0;
  return (result, index) => {
    onResult?.(result, index);
    results[index] = result;
    for (; told < calls.length; told++) {
      const [next, call] = [results[told], calls[told]];
      if (next === undefined || call === undefined) return;
      for (const { tools, onResult: tell } of watchers)
        if (tools.some(({ name }) => name === call.toolName)) tell(next, call);
    }
  };
}

export function specOf({ name, description, inputSchema, foundBy }: Tool): ToolSpec {
  const spec = { name, description, inputSchema };
  return foundBy === undefined ? spec : { ...spec, foundBy };
}

/**
 * A model whose calls are journaled. Its messages form a separate conversation. Only the finish reasons of the
 * invocation's session note its replies.
 */
class JournaledModel implements Model {
  readonly provider: string;
  readonly modelId: string;
  readonly supportsStructuredOutput: boolean;
  readonly #settings: CallSettings;
  readonly #parts: InvocationParts;
  readonly #scope: Scope;
  readonly #replies: ReplyReasons;

  constructor(parts: InvocationParts, scope: Scope) {
    const { agent, settings, replies } = parts;
    this.#parts = parts;
    const {
      provider = "",
      modelId = "",
      supportsStructuredOutput = false,
    } = modelFor(agent, scope.role) ?? {};
    this.supportsStructuredOutput = supportsStructuredOutput;
    this.provider = provider;
    this.modelId = modelId;
    this.#settings = samplingOf(settings);
    this.#scope = scope;
    this.#replies = replies;
  }

  async generate({ messages, ...rest }: ModelRequest): Promise<ModelResponse> {
    const { ctx, role } = this.#scope;
    const [first, ...others] = messages;
    const instructions = first?.role === "system" ? { instructions: first.content } : {};
    const transcript = Transcript.of(first?.role === "system" ? others : messages);
    const call: LlmRequest = { ...this.#settings, ...rest, ...instructions, transcript, role };
    let reply: LlmReply;
    try {
      reply = await ctx.llm(call);
    } catch (error) {
      reply = await callShorter(this.#parts, this.#scope, error, call, undefined);
    }
    this.#replies.add(messageText(reply.message), reply.stopReason);
    const { costUsd, ...usage } = reply.usage;
    return {
      message: reply.message,
      stopReason: reply.stopReason,
      usage: { ...usage, ...(costUsd !== null && { costUsd }) },
      modelId: reply.model.modelId,
    };
  }

  /** Returns the whole answer as one part. Readers of the run have received the deltas before. */
  async *stream(request: ModelRequest): AsyncIterable<ModelStreamPart> {
    const response = await this.generate(request);
    const text = messageText(response.message);
    if (text !== "") yield { type: "text_delta", text };
    for (const { callId, toolName, input } of toolCallsOf(response.message))
      yield { type: "tool_input_delta", callId, toolName, text: JSON.stringify(input) };
    yield { type: "finish", ...response };
  }
}
