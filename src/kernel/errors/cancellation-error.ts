import { Fault, hasCode } from "../base/fault.ts";
import type { JsonValue } from "../base/json-value.ts";

/** Why a task was cancelled: by a request, or because its deadline passed (B5). Each leads to its own status. */
export type CancellationStatus = "cancelled" | "deadline_exceeded";

export interface CancellationOptions {
  readonly status?: CancellationStatus;
  readonly cause?: unknown;
  readonly partial?: string;
  readonly childOutput?: JsonValue;
}

/** C2: `check()` throws this error in a cancelled task. C1: the reason of the cancel reaches every descendant. */
export class CancellationError extends Fault {
  declare readonly code: "cancelled";
  readonly reason: string;
  readonly status: CancellationStatus;
  /**
   * The text that readers of the stream had received before the cancel interrupted the answer. It is not serialised
   * with the error.
   */
  readonly partial: string;
  /** The output of a cancelled child that this task was waiting for. It is not serialised with the error. */
  readonly childOutput: JsonValue;

  constructor(
    reason: string,
    { status = "cancelled", partial = "", childOutput = null, ...options }: CancellationOptions = {},
  ) {
    super("cancelled", reason, { ...options, details: { reason, status } }, true);
    this.reason = reason;
    this.status = status;
    this.partial = partial;
    this.childOutput = childOutput;
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    return this === CancellationError ? hasCode(value, "cancelled") : super[Symbol.hasInstance](value);
  }
}
