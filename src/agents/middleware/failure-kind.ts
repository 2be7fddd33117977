import { classifyError, Fault, type ErrorKind } from "../../kernel/index.ts";

const modelFault = "model_";

/** What kind of failure a call met; `undefined` when it was none of the call's: a stop, a decision, a spent budget. */
export function failureKind(error: unknown): ErrorKind | undefined {
  if (!Fault.is(error)) return classifyError(error).kind;
  const { code } = error;
  if (code.startsWith(modelFault)) return code.slice(modelFault.length) as ErrorKind;
  if (code === "tool_timeout") return "timeout";
  // In other words, by a layer.
  if (code === "tool_failed" && error.cause !== undefined) return failureKind(error.cause);
  return code === "tool_failed" || code === "internal" ? "unknown" : undefined;
}
