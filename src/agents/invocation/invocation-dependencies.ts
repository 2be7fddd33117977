import {
  agentSession,
  type AgentContext,
  type AgentSession,
  type Budget,
  type Dependencies,
  type ExtraToolListener,
  type HostedAgent,
  type JsonSchema,
  type JsonValue,
  type LlmReply,
  type LlmRequest,
  type Model,
  type ResponseFormat,
  type RunContext,
  type RunFacts,
  type SessionId,
  type SpawnOptions,
  type SpawnOutcome,
  type Tool,
  type ToolHost,
  type WorkerInput,
} from "../../kernel/index.ts";
import { samplingOf } from "../base/call-settings.ts";
import { callShorter } from "./call-shorter.ts";
import type { InvocationParts, InvocationScope } from "./invocation-scope.ts";
import { JournaledModel } from "./journaled-model.ts";
import { JournaledTools } from "./journaled-tools.ts";

/** The dependencies of an architecture in one scope of an invocation. */
export class InvocationDependencies implements Dependencies {
  readonly #parts: InvocationParts;
  readonly #scope: InvocationScope;
  #tools: ToolHost | undefined;
  #model: Model | undefined;

  constructor(parts: InvocationParts, scope: InvocationScope) {
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
    const withoutLoopControl = {
      steering: null,
      isSteered: false,
      followUps: null,
      prepareStep: null,
      stopWhen: null,
      outputFormat: null,
    };
    const elsewhere = isElsewhere ? { history: historyIn(ctx), extra: [], watchers: [] } : {};
    return new InvocationDependencies(this.#parts, {
      ...this.#scope,
      ...withoutLoopControl,
      ...elsewhere,
      role,
      ctx,
    });
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
