import type { AgentContext } from "./agent-context.ts";
import type { AgentSession } from "./agent-session.ts";
import type { Agent } from "./agent.ts";
import type { AuditLog } from "./audit-log.ts";
import type { Budget } from "./budget.ts";
import type { HookRegistry } from "./hook-registry.ts";
import type { Memory } from "./memory.ts";
import type { Model } from "./model.ts";
import type { Permissions } from "./permissions.ts";
import type { RunContext, SpawnOptions, SpawnOutcome } from "./run-context.ts";
import type { RunFacts } from "./run-facts.ts";
import type { Telemetry } from "./telemetry.ts";
import type { ToolHost } from "./tool-host.ts";
import type { Tool } from "./tool.ts";

/** F1: true where a layer is a no-op and so is not in the call path. Set by the agent, anew when configuration changes. */
export interface FastFlags {
  readonly fastAudit: boolean;
  readonly fastTelemetry: boolean;
  readonly fastPermissions: boolean;
  readonly fastHooks: boolean;
  readonly fastRuntime: boolean;
  readonly fastBudget: boolean;
}

/** Everything an architecture may use, for one invocation. Read-only. */
export interface Dependencies extends FastFlags {
  /** The seed's `runtime`: everything durable is done through it. */
  readonly ctx: RunContext;
  /** A journaled front of `ctx.llm`: it cannot be paid for twice. */
  readonly model: Model;
  /** A journaled front of `ctx.tool`: it cannot go round the gate. */
  readonly tools: ToolHost;
  readonly history: AgentContext;
  readonly memory: Memory;
  readonly budget: Budget;
  readonly permissions: Permissions;
  readonly hooks: HookRegistry;
  readonly telemetry: Telemetry;
  readonly auditLog: AuditLog | null;
  readonly maxTurns: number;
  /** Someone reads along: keep events prompt rather than batched. */
  readonly streaming: boolean;
  readonly context: RunFacts;

  /** An empty session for a worker, with an id derived from the parent's, so that none sees another's messages. */
  freshSession(role: string, instructions: string): AgentSession;
  /** The same, with a worker's model, tools and scope. */
  scopeForWorker(role: string, worker: Agent): Dependencies;
  withExtraTools(tools: readonly Tool[]): Dependencies;
  spawnChild(worker: Agent, prompt: string, options?: SpawnOptions): Promise<SpawnOutcome>;
}
