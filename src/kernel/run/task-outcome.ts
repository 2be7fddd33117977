import type { Failure } from "../base/fault.ts";
import type { RunStatus } from "./run-result.ts";
import type { JsonObject, JsonValue } from "../base/json-value.ts";

export interface TaskOutcome {
  readonly status: "completed" | "failed" | "cancelled" | "paused";
  readonly output: JsonValue;
  readonly failure: Failure | null;
  readonly interruption?: Interruption;
  readonly metadata?: JsonObject;
}

/** An early end that the agent decided on itself. */
export interface Interruption {
  readonly status: Extract<RunStatus, "max_turns" | "guardrail_tripped" | "failed">;
  /** In the architecture's own words. */
  readonly reason: string;
}

/** What becomes of a child when its parent ends first. */
export type OnParentEnd = "wait" | "cancel" | "detach";

/** H5: `suspend` waits to be recalled; `return-partial` ends with what there is. */
export type OnPause = "suspend" | "return-partial";
