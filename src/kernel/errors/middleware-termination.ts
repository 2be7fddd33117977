import { Fault, hasCode } from "../base/fault.ts";
import type { JsonObject } from "../base/json-value.ts";

export interface TerminationOptions {
  /** The middleware or guardrail that stopped the run. */
  readonly by?: string;
  readonly details?: JsonObject;
  readonly cause?: unknown;
}

/**
 * Middleware throws this error to stop the run as `guardrail_tripped`. It counts as a decision about the run and
 * not as an error.
 */
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

/** Returns the same termination with a mark that the tool of the call was executed before it. */
export function afterPerforming(stop: MiddlewareTermination, callId: string): MiddlewareTermination {
  const { reason, by, details, cause } = stop;
  const named = by === undefined ? {} : { by };
  return new MiddlewareTermination(reason, {
    ...named,
    ...(cause === undefined ? {} : { cause }),
    details: { ...details, [performed]: callId },
  });
}

/** Returns the id of the call whose tool was executed before the termination. `undefined` if no tool was executed. */
export function performedBefore(stop: Fault): string | undefined {
  const callId = stop.details?.[performed];
  return typeof callId === "string" ? callId : undefined;
}
