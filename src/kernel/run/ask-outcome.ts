import type { Failure } from "../base/fault.ts";
import type { JsonValue } from "../base/json-value.ts";

/**
 * The outcome of `ctx.ask`. `timed_out` means that the target did not answer in time; the target itself has not failed.
 * `partial` is the partial output of a paused target and `null` after a timeout.
 */
export type AskOutcome =
  | { readonly kind: "replied"; readonly body: JsonValue }
  | { readonly kind: "timed_out" | "target_paused"; readonly partial: JsonValue }
  | { readonly kind: "target_failed" | "target_cancelled"; readonly failure: Failure | null };
