import type { AgentId, RunId, SessionId } from "../base/identity.ts";
import type { Failure } from "../base/fault.ts";
import type { JsonValue } from "../base/json-value.ts";
import type { Usage } from "../messages/usage.ts";

/** How an invocation ended. Closed: switch on it. */
export const runStatuses = Object.freeze([
  "completed",
  "max_turns",
  "budget_exhausted",
  "deadline_exceeded",
  "guardrail_tripped",
  "cancelled",
  "paused",
  "failed",
] as const);

export type RunStatus = (typeof runStatuses)[number];

/** What was charged for calls nobody reported the usage of (B3). `costUsd` `null`: not known. */
export interface UnreportedSpend {
  readonly tokens: number;
  readonly costUsd: number | null;
}

/** What an invocation leaves behind. Whatever the status, `output` holds what there is of an answer. */
export interface RunResult<Output = string> {
  readonly output: Output;
  readonly status: RunStatus;
  /** In an architecture's own words, when it did not complete. */
  readonly interruptionReason: string | null;
  /** Of the whole tree, as providers reported it. */
  readonly usage: Usage;
  /** All that was charged, `lost` included. `null`: not known. */
  readonly costUsd: number | null;
  readonly unreported: UnreportedSpend;
  readonly turns: number;
  readonly runId: RunId;
  readonly sessionId: SessionId;
  readonly agentId: AgentId;
  /** Of status `failed`, and of stops that were faults. */
  readonly error: Failure | null;
  readonly metadata: { readonly [key: string]: JsonValue };
}
