import type { CallSettings } from "../messages/call-settings.ts";
import type { AgentContext, EphemeralSource } from "./prompt-source.ts";
import type { AgentSession } from "./agent-session.ts";
import type { HostedAgent } from "./hosted-agent.ts";
import type { Budget } from "../limits/budget.ts";
import type { ChatMessage } from "../messages/chat-message.ts";
import type { UserPart } from "../messages/content.ts";
import type { HookRegistry } from "./middleware.ts";
import type { DrainMode } from "../run/run-meta.ts";
import type { SessionId } from "../base/identity.ts";
import type { JsonValue } from "../base/json-value.ts";
import type { Memory } from "./memory.ts";
import type { Model, ResponseFormat } from "../messages/model.ts";
import type { Permissions } from "./permissions.ts";
import type { LlmReply } from "../messages/llm-reply.ts";
import type { LlmRequest } from "./llm-request.ts";
import type { RunContext } from "./run-context.ts";
import type { SpawnOptions, SpawnOutcome } from "../run/spawn-options.ts";
import type { RunFacts } from "../run/run-facts.ts";
import type { JsonSchema } from "../base/schema.ts";
import type { Telemetry } from "./telemetry.ts";
import type { ToolHost } from "./tool-host.ts";
import type { ToolCall, ToolResult } from "../messages/tool-call.ts";
import type { Tool } from "./tool.ts";
import type { PrepareStep, StopCondition } from "./turn.ts";

/**
 * F1: flags that tell which parts are not configured and therefore not in the call path. The agent sets them for each
 * invocation.
 */
export interface FastFlags {
  /** Whether the agent does not have the middleware `auditLogger`. */
  readonly fastAudit: boolean;
  /** Whether the agent has neither telemetry nor the middleware `tracing`. */
  readonly fastTelemetry: boolean;
  /** Whether the agent has no permissions. */
  readonly fastPermissions: boolean;
  /** Whether the agent has neither hooks nor an event observer. */
  readonly fastHooks: boolean;
  /**
   * Whether steps are not journaled. Always `false`, because the runtime journals every step, also with the memory
   * store.
   */
  readonly fastRuntime: boolean;
  /** Whether neither the task nor a task above it has a limit on tokens, cost and turns, and there is no deadline. */
  readonly fastBudget: boolean;
}

/**
 * Everything that an architecture may use during one invocation. Read-only. A part that is not configured is `null`.
 */
export interface Dependencies extends FastFlags {
  /** The run context of the task. Everything durable goes through it. */
  readonly ctx: RunContext;
  /** The role whose model is `model`: `main`, or the role that was passed to `scopeForWorker`. */
  readonly role: string;
  /** The agent's model, called through `ctx.llm`: a recorded answer is not paid again. */
  readonly model: Model;
  /** The agent's tools, called through `ctx.tool`: every call passes the checks before a call. */
  readonly tools: ToolHost;
  /** The prompt window of a session of this invocation. An architecture reads the history only through it. */
  readonly history: AgentContext;
  /** The agent's long-term memory. */
  readonly memory: Memory | null;
  /** The budget of the task and its current use. */
  readonly budget: Budget;
  /** The permissions of the agent. */
  readonly permissions: Permissions | null;
  /** The hooks of the tool calls of the agent. */
  readonly hooks: HookRegistry | null;
  /** The agent's telemetry. */
  readonly telemetry: Telemetry | null;
  /**
   * Maximum number of turns of this loop: the agent's `maxTurns` option. A loop that reaches it ends with status
   * `max_turns`. Spawned agents have loops and limits of their own. `budget.maxTurns` is a different limit: it counts
   * the model calls of the whole task and all its descendants, and exceeding it is `budget_exhausted` (B6).
   */
  readonly maxTurns: number;
  /**
   * The settings of the submission for the model calls of this scope. `model` applies them; code that calls
   * `ctx.llm` passes them itself. `toolChoice` is the exception: it applies only to the first call of the loop.
   * `null` if the submission has no settings.
   */
  readonly settings: CallSettings | null;
  /** Whether a reader streams the run. If `true`, emit events promptly instead of in batches. */
  readonly streaming: boolean;
  /** User, session and run of the invocation. */
  readonly context: RunFacts;
  /** Sources of live state that the model sees before each turn. */
  readonly ephemeral: readonly EphemeralSource[];
  /**
   * How many waiting steering inputs the loop reads at once. `null` in the scope of a worker, because only the
   * invocation's main loop reads steering.
   */
  readonly steering: DrainMode | null;
  /** Whether steering waited when the invocation began. The main loop then reads it before its first model call. */
  readonly isSteered: boolean;
  /**
   * How many waiting follow-ups the loop reads at once. `null` in the scope of a worker, because only the main loop
   * reads follow-ups.
   */
  readonly followUps: DrainMode | null;
  /** Called before each turn of the main loop. `null` if it is not configured, and in the scope of a worker. */
  readonly prepareStep: PrepareStep | null;
  /**
   * Called after each turn of the main loop that has tool results. `null` if it is not configured, and in the scope
   * of a worker.
   */
  readonly stopWhen: StopCondition | null;
  /**
   * Required format of the final answer. `null` means text. The format does not apply to intermediate work, which
   * is always text.
   */
  readonly outputFormat: ResponseFormat | null;

  /**
   * Creates an empty session for a role. Its id is derived from the parent's, so that no session contains messages
   * of another.
   */
  freshSession(role: string, instructions: string): AgentSession;
  /**
   * Returns dependencies for intermediate work in a role. They use the model of that role, read no steering or
   * follow-ups and require no output format.
   *
   * In a branch of `ctx.parallel` or in a tool's body, pass the `ctx` that the branch or the body received. The
   * returned dependencies then have the agent's own tools but none of the extra tools of this scope. J7: on replay,
   * calls inside a recorded body do not run, so their results would not reach the listeners of `withExtraTools`.
   */
  scopeForWorker(role: string, ctx?: RunContext): Dependencies;
  /**
   * Returns dependencies with additional tools, listed after the agent's own. If several tools have the same name,
   * the tool that was added first wins, and an added tool wins over the agent's own.
   *
   * J7: on replay, the body of a recorded call does not run. An architecture must therefore take its decisions from
   * `onResult`, which receives every result of the added tools, on a replay too, from the journal. The results of
   * one turn arrive in the order of their calls, and before a later sequential call starts.
   */
  withExtraTools(tools: readonly Tool[], onResult?: ExtraToolListener): Dependencies;
  /** Returns dependencies whose loop has another maximum number of turns. */
  withMaxTurns(maxTurns: number): Dependencies;
  /**
   * Validates a value against a schema. Returns one message per problem; an empty array means that the value is valid.
   */
  problemsOf(schema: JsonSchema, value: JsonValue): Promise<readonly string[]>;
  /**
   * Handles the fault of a model call that the architecture made with `ctx.llm`. If the request exceeded the
   * context window, one `compaction` step shortens the transcript, and the model is called again. It throws any
   * other fault again, and also the fault of a transcript that cannot be shortened. `Dependencies.model` does all
   * this itself. `sessionId` is the session whose prompt window the request contains; the later windows of this
   * session are shorter, too. Without `sessionId`, only this call is shorter.
   */
  callShorter(fault: unknown, request: LlmRequest, sessionId?: SessionId): Promise<LlmReply>;
  /** Spawns one of the agents that the architecture declares in `declaredWorkers`. */
  spawnWorker(worker: HostedAgent, input: WorkerInput, options?: SpawnOptions): Promise<SpawnOutcome>;
}

/** Receives the result of a call of a tool that `Dependencies.withExtraTools` added. */
export type ExtraToolListener = (result: ToolResult, call: ToolCall) => void;

/** The input of a spawned worker: a text, or a brief with more than text. */
export type WorkerInput = string | WorkerBrief;

/** The input of a spawned worker with attachments, instructions, history or an output schema. */
export interface WorkerBrief {
  /** The task of the worker: a text, or content parts with images and files. */
  readonly prompt: string | readonly UserPart[];
  /** Instructions in addition to the worker's own. */
  readonly instructions?: string;
  /** Messages that replace the worker's own history. */
  readonly history?: readonly ChatMessage[];
  /** JSON Schema that the worker's answer must match. If absent, the answer is text. */
  readonly output?: JsonSchema;
}
