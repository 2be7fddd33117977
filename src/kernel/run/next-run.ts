import type { RunId, SessionId } from "../base/identity.ts";
import type { JsonObject, JsonValue } from "../base/json-value.ts";
import type { ExecutionBudget } from "../limits/execution-budget.ts";
import type { HistoryRetention } from "../limits/history-retention.ts";
import type { Priority } from "../limits/priority.ts";
import type { Hash } from "../base/hash.ts";
import type { RunKind } from "./run-record.ts";

/**
 * A run that is submitted in the commit that ends another run. `ctx.report({ next })` of a root task requests it. The
 * new run has the agent, user, tenant and channel of the run that ends.
 */
export interface NextRun {
  /** Distinguishes the next runs of one run: 1 to 64 letters, digits, `_` or `-`. */
  readonly key: string;
  /** What the new run does. Default: `"invocation"`. */
  readonly kind?: RunKind;
  /** Input of the new run. */
  readonly input: JsonValue;
  /**
   * Makes the new run a child that shares the prompt of the run that ends, as `Runtime.spawnChild` does. `tools` are the
   * names of the tools that it may call; `place` names the place within the session in which it runs, so that it makes
   * neither the session nor runs at other places busy. If absent, the new run has a prompt of its own.
   */
  readonly shares?: { readonly tools: readonly string[] | null; readonly place: string };
  /**
   * Whether the run is left out if its agent has an unfinished run in the same session or, with `shares`, at the same
   * place. Default: `false`.
   */
  readonly isAlone?: boolean;
  /** Session of the new run. `null` gives it a new session. Default: the session of the run that ends. */
  readonly sessionId?: SessionId | null;
  /** Budget of the new run. It replaces the agent's own budget. Default: the agent's own budget. */
  readonly budget?: Partial<ExecutionBudget>;
  /** Priority of the new run. Default: the priority of the run that ends. */
  readonly priority?: Priority;
  /** How long the history of the new run is kept. Default: `HistoryRetention.PERMANENT`. */
  readonly retention?: HistoryRetention;
  /** Data of the new run. Default: the metadata of the run that ends. */
  readonly metadata?: JsonObject;
}

/**
 * The id of a next run. It is derived from the run that ends, so that a repeated end never submits a second run. A run
 * that was resumed ends again: `ends` counts its earlier ends, and its next runs have other ids.
 */
export function nextRunId(hash: Hash, runId: RunId, key: string, ends: number): RunId {
  return `run_${hash(`${runId} ${key} ${ends}`).slice(0, 32)}` as RunId;
}
