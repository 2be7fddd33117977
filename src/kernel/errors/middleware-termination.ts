import { Fault, hasCode } from "../base/fault.ts";
import type { JsonObject } from "../base/json-value.ts";

export interface TerminationOptions {
  /** The middleware or guardrail that stopped the run. */
  readonly by?: string;
  readonly details?: JsonObject;
  readonly cause?: unknown;
}

/** Thrown by a middleware to stop the run as `guardrail_tripped`. Not an error of the run: a decision about it. */
export class MiddlewareTermination extends Fault {
  declare readonly code: "guardrail_tripped";
  readonly reason: string;
  readonly by: string | undefined;

  constructor(reason: string, { by, details, ...options }: TerminationOptions = {}) {
    const named = by === undefined ? {} : { by };
    super("guardrail_tripped", reason, { ...options, details: { ...details, reason, ...named } }, true);
    this.reason = reason;
    this.by = by;
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    return this === MiddlewareTermination
      ? hasCode(value, "guardrail_tripped")
      : super[Symbol.hasInstance](value);
  }
}

const performed = "performed";

/** The same stop of a call whose tool was carried out before it came. */
export function afterPerforming(stop: MiddlewareTermination, callId: string): MiddlewareTermination {
  const { reason, by, details, cause } = stop;
  const named = by === undefined ? {} : { by };
  return new MiddlewareTermination(reason, {
    ...named,
    ...(cause === undefined ? {} : { cause }),
    details: { ...details, [performed]: callId },
  });
}

/** The call that was carried out before the stop came, if there is one. */
export function performedBefore(stop: Fault): string | undefined {
  const callId = stop.details?.[performed];
  return typeof callId === "string" ? callId : undefined;
}
