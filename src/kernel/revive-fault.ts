import { BudgetExhaustedError, type BudgetDimension } from "./budget-exhausted-error.ts";
import { CancellationError, type CancellationStatus } from "./cancellation-error.ts";
import { isFaultCode } from "./fault-code.ts";
import { Fault, type Failure, type FaultOptions } from "./fault.ts";
import type { JsonObject } from "./json.ts";
import { MiddlewareTermination } from "./middleware-termination.ts";

/**
 * The fault a failure was made of, of the right class. Total: a stored code this release does not know, or details
 * that do not fit their subclass, become `internal` and keep what was stored in their details.
 */
export function reviveFault(failure: Failure): Fault {
  const { code, message, details = {} } = failure;
  const options = failure.cause === undefined ? {} : { cause: reviveFault(failure.cause) };
  switch (code) {
    case "cancelled":
      return reviveCancellation(details, options) ?? unreadable(failure);
    case "budget_exhausted":
      return reviveExhaustion(details, options) ?? unreadable(failure);
    case "guardrail_tripped":
      return reviveTermination(details, options) ?? unreadable(failure);
    default:
      if (!isFaultCode(code)) return unreadable(failure);
      return new Fault(code, message, failure.details === undefined ? options : { ...options, details });
  }
}

function reviveCancellation({ reason, status }: JsonObject, options: FaultOptions): Fault | undefined {
  if (typeof reason !== "string" || !isCancellationStatus(status)) return undefined;
  return new CancellationError(reason, { ...options, status });
}

function reviveExhaustion(details: JsonObject, options: FaultOptions): Fault | undefined {
  const { dimension, limit, used, ...rest } = details;
  if (!isDimension(dimension) || typeof limit !== "number" || typeof used !== "number") return undefined;
  return new BudgetExhaustedError({ ...options, dimension, limit, used, details: rest });
}

function reviveTermination(details: JsonObject, options: FaultOptions): Fault | undefined {
  const { reason, by, ...rest } = details;
  if (typeof reason !== "string" || (by !== undefined && typeof by !== "string")) return undefined;
  return new MiddlewareTermination(reason, {
    ...options,
    ...(by === undefined ? {} : { by }),
    details: rest,
  });
}

function isCancellationStatus(value: unknown): value is CancellationStatus {
  return value === "cancelled" || value === "deadline_exceeded";
}

function isDimension(value: unknown): value is BudgetDimension {
  return value === "tokens" || value === "costUsd" || value === "turns" || value === "agents";
}

function unreadable({ code, message, details }: Failure): Fault {
  return new Fault("internal", message, { details: { storedCode: code, ...details } });
}
