import { classifyError, errorKinds, Fault, modelErrorKind, type ErrorKind } from "../../../kernel/index.ts";

/** The names of all kinds of failure. */
export const errorKindNames: readonly string[] = Object.keys(errorKinds);

/**
 * Returns the kind of a call's failure. `undefined` if the call itself did not fail, because it was cancelled,
 * blocked, or out of budget.
 */
export function failureKind(error: unknown): ErrorKind | undefined {
  if (!Fault.is(error)) return classifyError(error).kind;
  const { code } = error;
  const kind = modelErrorKind(code);
  if (kind !== undefined) return kind;
  if (code === "tool_timeout") return "timeout";
  // Middleware replaced the error's text; the original error is the cause.
  if (code === "tool_failed" && error.cause !== undefined) return failureKind(error.cause);
  return code === "tool_failed" || code === "internal" ? "unknown" : undefined;
}
