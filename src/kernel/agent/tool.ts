import type { ToolResult } from "../messages/tool-result.ts";
import type { CancelSignal } from "../base/cancel-signal.ts";
import type { JsonValue } from "../base/json-value.ts";
import type { RunContext } from "./run-context.ts";
import type { RunFacts } from "../run/run-facts.ts";
import type { RunMeta } from "../run/run-meta.ts";
import type { JsonSchema } from "../base/schema.ts";

/** What may go wrong when a tool is called by mistake. `critical` wants a person unless policy says otherwise. */
export type ToolRisk = "safe" | "high" | "critical";

/**
 * How calls of one turn run beside each other. A `sequential` call stands at its place: it begins when those before it have settled, and
 * those after it begin when it has; nothing runs beside it. The others run side by side (trap O5).
 */
export type ToolConcurrency = "parallel" | "sequential";

/** What a tool's body is given besides its input. */
export interface ToolContext {
  readonly meta: RunMeta;
  readonly facts: RunFacts;
  /** As `RunContext.signal`; also when the call takes too long. What the body does after it is not recorded. */
  readonly signal: CancelSignal;
  /** The same on every attempt of this call (J6): hand it to services that can tell a repeat. */
  readonly idempotencyKey: string;
  readonly callId: string;
  /** Shown to watchers; not kept, and the model does not see it. */
  readonly progress: (update: JsonValue) => void;
  /** For a body that itself takes journaled steps, scoped under this call (J7). */
  readonly ctx: RunContext;
}

/**
 * A tool as the runtime sees it: schema checked and results shaped. Made by `tool()`.
 *
 * - T1 `parse` throws `invalid_argument` with a message the model can act on; what it returns is what `execute` gets.
 * - T2 A body that throws is a result with `isError`, not a fault of the run, unless it throws a cancellation, an exhausted
 *   budget or a termination.
 * - T3 `coerce` changes only what does not fit, and only where nothing is lost by it. Gate, person and body see what it returns, so
 *   that a rule about arguments judges those that are used.
 */
export interface Tool<Input = unknown> {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: JsonSchema;
  readonly risk: ToolRisk;
  /** It may change or delete what it touches. Unknown counts as true. */
  readonly destructive: boolean;
  /** It edits files, which a person can look at and take back: what the mode `acceptEdits` lets through. */
  readonly edits: boolean;
  readonly concurrency: ToolConcurrency;
  /** `null`: none. A tool that suspends has none. */
  readonly timeoutMs: number | null;
  /** Its body waits durably, for a person or another agent: no timeout, no open call while it waits. */
  readonly suspends: boolean;
  /** Whether this very call needs a person's yes, beside what the permissions say. */
  needsApproval(input: Input): boolean | Promise<boolean>;
  /** T3. Absent: the arguments are taken as the model gave them. */
  coerce?(input: JsonValue): JsonValue;
  parse(input: JsonValue): Input | Promise<Input>;
  execute(input: Input, context: ToolContext): Promise<ToolResult>;
}
