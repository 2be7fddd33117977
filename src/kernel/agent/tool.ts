import type { ProviderToolSpec } from "../messages/model.ts";
import type { ToolResult } from "../messages/tool-call.ts";
import type { CancelSignal } from "../base/cancel-signal.ts";
import type { JsonValue } from "../base/json-value.ts";
import type { RunContext } from "./run-context.ts";
import type { RunFacts } from "../run/run-facts.ts";
import type { RunMeta } from "../run/run-meta.ts";
import type { TaskFolder } from "../run/task-folder.ts";
import type { JsonSchema } from "../base/schema.ts";

/**
 * How much damage a mistaken call can do. A `critical` call needs a person's approval unless the permissions allow it;
 * without permissions it behaves like a call of a tool with `needsApproval`.
 */
export type ToolRisk = "safe" | "high" | "critical";

/**
 * How the calls of one turn run relative to each other. `parallel` calls run concurrently. A `sequential` call starts
 * when all calls before it have settled, and the calls after it start when it has settled (trap O5).
 */
export type ToolConcurrency = "parallel" | "sequential";

/** What a tool's body receives in addition to its input. */
export interface ToolContext<Context = unknown> {
  /** Run id, cancellation, deadline, trace and tenant of the task. */
  readonly meta: RunMeta;
  /** User, session, run and metadata of the task. */
  readonly facts: RunFacts<Context>;
  /** The live context of the run (`facts.context`). `undefined` if the run has none. */
  readonly context: Context;
  /**
   * Aborted like `RunContext.signal`, and when the call times out. What the body does after an abort is not recorded.
   */
  readonly signal: CancelSignal;
  /** J6: key that is the same on every attempt of this call. Pass it to services that detect repeated requests. */
  readonly idempotencyKey: string;
  /** Id that the provider gave the call. */
  readonly callId: string;
  /** Sends a progress update to readers of the run. Updates are not stored, and the model does not see them. */
  readonly progress: (update: JsonValue) => void;
  /** J7: run context for journaled steps inside the body, scoped under this call. */
  readonly ctx: RunContext;
  /**
   * D1: the folder in which the task works. If set, a tool that uses files works in `folder.path` instead of
   * `folder.origin`. `null` if the task has no folder; the tool then uses the root for which it was made.
   */
  readonly folder: TaskFolder | null;
}

/**
 * Origin of a tool whose behaviour another program decides, such as an MCP server. That program may change the tool
 * at any time, so that an approval is valid only for the origin, description and schema that the person saw.
 */
interface ToolOrigin {
  /** Name of the server in the configuration. */
  readonly server: string;
  /** Name of the tool at that server. */
  readonly name: string;
}

/**
 * A tool as the runtime sees it: with validated input and formatted results. `tool()` creates one.
 *
 * - T1: `parse` throws `invalid_argument` with a message that the model can act on. `execute` receives what `parse`
 *   returns.
 * - T2: an error that the body throws becomes a result with `isError`; it is not a fault of the run. A
 *   cancellation, an exhausted budget and a termination are exceptions and stop the run.
 * - T3: `coerce` changes only values that do not match the schema, and only without loss. `parse` coerces as well.
 * - T4: `parse` is pure: equal arguments give equal results. It runs before the checks, so that rules and people
 *   judge the input that `execute` receives. It runs again when another process takes over the call.
 *
 * @example
 * ```ts
 * import { tool, type Tool } from "reeve";
 * import { z } from "zod";
 *
 * const weather: Tool<{ city: string }> = tool({
 *   name: "weather",
 *   description: "Return the current weather of a city",
 *   inputSchema: z.object({ city: z.string() }),
 *   execute: async ({ city }) => `It is sunny in ${city}.`,
 * });
 * ```
 */
export interface Tool<Input = unknown, Context = unknown> {
  /** Name by which the model calls the tool. */
  readonly name: string;
  /** Text by which the model decides when to call the tool. */
  readonly description: string;
  /** JSON Schema of the arguments. */
  readonly inputSchema: JsonSchema;
  /**
   * The full tool, if this one is a version of it with a shortened description or schema. Approvals then apply to
   * the full tool. If absent, they apply to this tool.
   */
  readonly represents?: Tool;
  /**
   * Name of the search tool that finds this tool. The model receives this tool only after a result of the search
   * tool has named it, or after the model has called it. `toolSearch()` sets this field. If absent, the model
   * always receives the tool.
   */
  readonly foundBy?: string;
  /** Present if the provider of the model executes the tool, so that `execute` is never called. `providerTool()` sets it. */
  readonly provider?: ProviderToolSpec;
  /** Server and original name of a remote tool, such as a tool of an MCP server. If absent, the tool is local code. */
  readonly origin?: ToolOrigin;
  /** The type of the context that the tool needs. Used by the compiler only; no tool object has this property. */
  readonly contextType?: (context: Context) => void;
  /** How much damage a mistaken call can do. */
  readonly risk: ToolRisk;
  /** Whether the tool may change or delete data. Use `true` if that is unknown. */
  readonly destructive: boolean;
  /**
   * Whether the tool only edits files, whose changes a person can review and undo. The mode `acceptEdits` allows such
   * calls.
   */
  readonly edits: boolean;
  /**
   * Whether a child that shares its parent's prompt (`RunContext.child`) may call the tool. `never` is for a tool
   * that controls live state of the parent, such as a browser. With `listed` such a child may call the tool only if
   * its `tools` option names it. If absent, the child may call the tool like any other tool.
   */
  readonly inChildren?: "never" | "listed";
  /** How calls of the tool run relative to other calls of the same turn. */
  readonly concurrency: ToolConcurrency;
  /** Maximum duration of a call, in milliseconds. `null` means unlimited. A tool with `suspends` has no timeout. */
  readonly timeoutMs: number | null;
  /**
   * Whether the body can wait for a person or another agent, also over a restart. Such a call has no timeout and is
   * not in flight while it waits.
   */
  readonly suspends: boolean;
  /** Whether this call needs a person's approval, whatever the permissions say. */
  needsApproval(input: Input): boolean | Promise<boolean>;
  /**
   * Returns what the call reaches, such as the host of a URL, or `null` if the call needs no approval for it. The
   * permission modes `default` and `acceptEdits` ask once for each value, and an approval is remembered for this
   * value only. Without permissions, each call with a value needs a person's approval. If the method is absent, the
   * value is `null` for every call.
   */
  approvalScope?(input: Input): string | null;
  /** T3: converts arguments to match the schema. If absent, the arguments are used as the model sent them. */
  coerce?(input: JsonValue): JsonValue;
  /** T1: validates the arguments and returns the input of `execute`. */
  parse(input: JsonValue): Input | Promise<Input>;
  /** Executes one call. */
  execute(input: Input, context: ToolContext<Context>): Promise<ToolResult>;
}
