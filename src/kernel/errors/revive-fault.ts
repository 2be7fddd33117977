import { FatalError } from "./fatal-error.ts";
import {
  causesKept,
  type Failure,
  Fault,
  type FaultCode,
  type FaultOptions,
  isFaultCode,
} from "../base/fault.ts";
import type { JsonObject } from "../base/json-value.ts";
import {
  type BudgetDimension,
  BudgetExhaustedError,
  type ExhaustedCap,
  type RefusedReservation,
} from "./budget-exhausted-error.ts";
import { CancellationError, type CancellationStatus } from "./cancellation-token.ts";
import { MiddlewareTermination } from "./middleware-termination.ts";

/**
 * Recreates the fault of a stored failure, with its class. It never throws: if the code is unknown, the details do
 * not fit the subclass or the failure is unreadable, the fault has the code `internal` and the stored data in its
 * details.
 */
export function reviveFault(failure: Failure): Fault {
  return revive(failure, causesKept);
}

function revive(stored: unknown, causesLeft: number): Fault {
  const { code, message, details, cause } = isObject(stored) ? stored : {};
  const hasCause = cause !== undefined && cause !== null && causesLeft > 0;
  const options = hasCause ? { cause: revive(cause, causesLeft - 1) } : {};
  const text = typeof message === "string" ? message : "a stored failure could not be read";
  const fits = details === undefined || isObject(details);
  const known = isFaultCode(code) && fits ? reviveKnown(code, text, details, options) : undefined;
  return known ?? unreadable(text, code, details, options);
}

function reviveKnown(
  code: FaultCode,
  message: string,
  details: JsonObject | undefined,
  options: FaultOptions,
): Fault | undefined {
  switch (code) {
    case "cancelled":
      return reviveCancellation(details ?? {}, options);
    case "budget_exhausted":
      return reviveExhaustion(details ?? {}, options);
    case "guardrail_tripped":
      return reviveTermination(details ?? {}, options);
    case "fatal":
      return new FatalError(message, details === undefined ? options : { ...options, details });
    default:
      return new Fault(code, message, details === undefined ? options : { ...options, details });
  }
}

function reviveCancellation({ reason, status }: JsonObject, options: FaultOptions): Fault | undefined {
  if (typeof reason !== "string" || !isCancellationStatus(status)) return undefined;
  return new CancellationError(reason, { ...options, status });
}

function reviveExhaustion(details: JsonObject, options: FaultOptions): Fault | undefined {
  const { dimension, limit, used, refused, cap, ...rest } = details;
  if (!isDimension(dimension) || typeof limit !== "number" || typeof used !== "number") return undefined;
  if (refused !== undefined && !isRefused(refused)) return undefined;
  if (cap !== undefined && !isCap(cap)) return undefined;
  const reasons = { ...(refused !== undefined && { refused }), ...(cap !== undefined && { cap }) };
  return new BudgetExhaustedError({ ...options, dimension, limit, used, ...reasons, details: rest });
}

function reviveTermination(details: JsonObject, options: FaultOptions): Fault | undefined {
  const { reason, ...rest } = details;
  if (typeof reason !== "string") return undefined;
  const by = typeof rest["by"] === "string" ? { by: rest["by"] } : {};
  return new MiddlewareTermination(reason, { ...options, ...by, details: rest });
}

function isCancellationStatus(value: unknown): value is CancellationStatus {
  return value === "cancelled" || value === "deadline_exceeded";
}

function isRefused(value: unknown): value is RefusedReservation {
  if (typeof value !== "object" || value === null) return false;
  const { reserved, remaining, spent, unreported } = value as Partial<RefusedReservation>;
  return [reserved, remaining, spent, unreported].every((each) => typeof each === "number");
}

function isCap(value: unknown): value is ExhaustedCap {
  if (typeof value !== "object" || value === null) return false;
  const { name, tenantId, userId, day, resetsAt, ...amounts } = value as Partial<ExhaustedCap>;
  const { limitUsd, spentUsd, heldUsd, neededUsd } = amounts;
  return (
    [name, day, resetsAt].every((each) => typeof each === "string") &&
    [tenantId, userId].every((each) => each === null || typeof each === "string") &&
    [limitUsd, spentUsd, heldUsd, neededUsd].every((each) => typeof each === "number")
  );
}

function isDimension(value: unknown): value is BudgetDimension {
  return value === "tokens" || value === "costUsd" || value === "turns" || value === "agents";
}

function unreadable(message: string, code: unknown, details: unknown, options: FaultOptions): Fault {
  const stored = {
    ...(isObject(details) ? details : {}),
    ...(typeof code === "string" ? { storedCode: code } : {}),
  };
  return new Fault("internal", message, { ...options, details: stored });
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * Whether an error must end the task even if code around the call could handle it. Such errors are a cancel, an
 * exhausted budget, a termination, and middleware that violates its contract, which a model cannot correct.
 */
export function stopsTask(error: unknown): boolean {
  return (
    error instanceof CancellationError ||
    error instanceof BudgetExhaustedError ||
    error instanceof MiddlewareTermination ||
    (Fault.is(error) && error.code === "middleware_misuse")
  );
}
