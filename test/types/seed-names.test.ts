import { expect, test } from "vitest";
import type {
  AgentContext,
  AgentId,
  AgentMiddleware,
  AgentPhase,
  AgentSession,
  Architecture,
  AuditLog,
  Budget,
  ChatMessage,
  ChatMiddleware,
  CompactionStrategy,
  Dependencies,
  ExecutionBudget,
  Extension,
  FunctionMiddleware,
  Guardrail,
  HistoryProvider,
  HookRegistry,
  HostedAgent,
  Memory,
  Middleware,
  Model,
  Permissions,
  RunContext,
  RunResult,
  Runtime,
  SpawnBudget,
  Telemetry,
  ToolHost,
  TopicId,
  Usage,
} from "../../src/entries/index.ts";

/** Interfaces that `reeve` must export. Otherwise this file does not compile. */
export type SeedTypes = [
  AgentContext,
  AgentId,
  AgentMiddleware,
  AgentPhase,
  AgentSession,
  Architecture,
  AuditLog,
  Budget,
  ChatMessage,
  ChatMiddleware,
  CompactionStrategy,
  Dependencies,
  ExecutionBudget,
  Extension,
  FunctionMiddleware,
  Guardrail,
  HistoryProvider,
  HookRegistry,
  HostedAgent,
  Memory,
  Middleware<never>,
  Model,
  Permissions,
  RunContext,
  RunResult,
  Runtime,
  SpawnBudget,
  Telemetry,
  ToolHost,
  TopicId,
  Usage,
];

const reeve: Readonly<Record<string, unknown>> = await import("../../src/entries/index.ts");
const kernel: Readonly<Record<string, unknown>> = await import("../../src/entries/kernel.ts");

test.each([
  "BudgetExhaustedError",
  "CancellationError",
  "CancellationToken",
  "HistoryRetention",
  "HookEvent",
  "MiddlewareTermination",
  "Priority",
  "RetryPolicy",
])("reeve exports the same %s as reeve/kernel", (name) => {
  expect(reeve[name]).toBeDefined();
  expect(reeve[name]).toBe(kernel[name]);
});

test.each(["RunMeta", "Supervision"])(
  "%s of reeve adds default sources to the class of reeve/kernel, and instanceof accepts both",
  (name) => {
    const [own, parent] = [reeve[name], kernel[name]] as readonly { readonly prototype: object }[];
    expect(Object.getPrototypeOf(own)).toBe(parent);
    expect(Object.create(parent?.prototype ?? null)).toBeInstanceOf(own as never);
  },
);

test.each([
  "Agent",
  "ExecutionTracker",
  "HookManager",
  "InformationAgent",
  "MiddlewarePipeline",
  "OrchestratorAgent",
  "ReActAgent",
  "RunLogger",
  "SpawnTracker",
])("reeve exports the class %s", (name) => {
  expect(reeve[name]).toBeTypeOf("function");
});
