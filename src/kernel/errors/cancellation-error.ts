import { Fault, hasCode } from "../base/fault.ts";
import type { JsonValue } from "../base/json-value.ts";

/** Why a run was told to stop: by someone, or by its deadline (B5). The two end in different statuses. */
export type CancellationStatus = "cancelled" | "deadline_exceeded";

export interface CancellationOptions {
  readonly status?: CancellationStatus;
  readonly cause?: unknown;
  readonly partial?: string;
  readonly childOutput?: JsonValue;
}

/** Thrown by `check()` (C2). `reason` travels from whoever cancelled down to every descendant (C1). */
export class CancellationError extends Fault {
  declare readonly code: "cancelled";
  readonly reason: string;
  readonly status: CancellationStatus;
  /** What watchers had been shown of the answer that the stop broke off. For whoever catches it: it is not kept with the error. */
  readonly partial: string;
  /** What a child that was waited for had to show when it was stopped as well. Not kept either. */
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
