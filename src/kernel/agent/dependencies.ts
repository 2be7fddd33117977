import type { AgentContext } from "./agent-context.ts";
import type { AgentSession } from "./agent-session.ts";
import type { HostedAgent } from "./hosted-agent.ts";
import type { AuditLog } from "./audit-log.ts";
import type { Budget } from "../limits/budget.ts";
import type { ChatMessage } from "../messages/chat-message.ts";
import type { UserPart } from "../messages/content.ts";
import type { EphemeralSource } from "./ephemeral-source.ts";
import type { HookRegistry } from "./hook-registry.ts";
import type { DrainMode } from "../run/input-queue.ts";
import type { JsonValue } from "../base/json-value.ts";
import type { Memory } from "./memory.ts";
import type { Model, ResponseFormat } from "../messages/model.ts";
import type { Permissions } from "./permissions.ts";
import type { RunContext, SpawnOptions, SpawnOutcome } from "./run-context.ts";
import type { RunFacts } from "../run/run-facts.ts";
import type { JsonSchema } from "../base/schema.ts";
import type { Telemetry } from "./telemetry.ts";
import type { ToolHost } from "./tool-host.ts";
import type { ToolCall } from "../messages/tool-call.ts";
import type { Tool } from "./tool.ts";
import type { ToolResult } from "../messages/tool-result.ts";

/** F1: true where a layer is not configured and so is not in the call path. Set by the agent, anew for each invocation. */
export interface FastFlags {
  readonly fastAudit: boolean;
  readonly fastTelemetry: boolean;
  readonly fastPermissions: boolean;
  readonly fastHooks: boolean;
  readonly fastBudget: boolean;
}

/** Everything an architecture may use, for one invocation. Read-only. What is not configured is `null`. */
export interface Dependencies extends FastFlags {
  /** The seed's `runtime`: everything durable is done through it. */
  readonly ctx: RunContext;
  /** Which of the agent's models `model` is: `main` unless scoped. */
  readonly role: string;
  /** A journaled front of `ctx.llm`: it cannot be paid for twice. */
  readonly model: Model;
  /** A journaled front of `ctx.tool`: it cannot go round the gate. */
  readonly tools: ToolHost;
  /** The only way to what was said: a session of this invocation, as its model is to see it. */
  readonly history: AgentContext;
  readonly memory: Memory | null;
  readonly budget: Budget;
  readonly permissions: Permissions | null;
  readonly hooks: HookRegistry | null;
  readonly telemetry: Telemetry | null;
  readonly auditLog: AuditLog | null;
  readonly maxTurns: number;
  /** Someone reads along: keep events prompt rather than batched. */
  readonly streaming: boolean;
  readonly context: RunFacts;
  /** Live state to show before each turn. */
  readonly ephemeral: readonly EphemeralSource[];
  /** How many of the inputs that wait are heard at a time; `null` in a worker's scope: who drives the invocation listens. */
  readonly steering: DrainMode | null;
  readonly followUps: DrainMode | null;
  /** What the answer is to be; `null`: text, as all work on the way to it is. */
  readonly outputFormat: ResponseFormat | null;

  /** An empty session in a role of its own, with an id derived from the parent's, so that none sees another's messages. */
  freshSession(role: string, instructions: string): AgentSession;
  /**
   * For work in a role, on the way to the answer: it asks that role's model, hears nobody and owes no format. In a branch of
   * `ctx.parallel`, or in a tool's body, give the `ctx` from there: it has the agent's own tools, and no extra ones but those it is given
   * there (J7: who goes by the results of a loop's tools would on replay not be told of calls inside a body).
   */
  scopeForWorker(role: string, ctx?: RunContext): Dependencies;
  /**
   * Tools beside the agent's own, told of after them. Of several of one name the first that was brought, by the outermost, is the only one;
   * the agent's own come last. J7: on replay a body runs again only if it had no result, so what an architecture goes
   * by it takes from `onResult`, which is told of every result: in whatever session the call was made, those of one turn in their order,
   * and before a sequential call after it begins.
   */
  withExtraTools(tools: readonly Tool[], onResult?: ExtraToolListener): Dependencies;
  withMaxTurns(maxTurns: number): Dependencies;
  /** What is wrong with a value by a schema; nothing when it fits. */
  problemsOf(schema: JsonSchema, value: JsonValue): Promise<readonly string[]>;
  /** Hires one of the declared workers. */
  spawnChild(worker: HostedAgent, input: WorkerInput, options?: SpawnOptions): Promise<SpawnOutcome>;
}

/** What came of a call of an extra tool. */
export type ExtraToolListener = (result: ToolResult, call: ToolCall) => void;

/** What a worker is told: a text, or more than that. */
export type WorkerInput = string | WorkerBrief;

export interface WorkerBrief {
  /** With images and files where there are some. */
  readonly prompt: string | readonly UserPart[];
  /** Beside its own instructions. */
  readonly instructions?: string;
  /** What was said before, in place of its own history. */
  readonly history?: readonly ChatMessage[];
  /** Its answer is to be JSON that fits. */
  readonly output?: JsonSchema;
}
