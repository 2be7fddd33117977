import {
  Fault,
  type GuardedCall,
  type Guardrail,
  type GuardrailDecision,
  type JsonValue,
  type ToolCall,
} from "../../kernel/index.ts";
import { namePattern } from "../permissions/name-pattern.ts";

export interface ToolCallValidationOptions {
  /** The only tools that may be called, by name or pattern. Absent: all. */
  readonly only?: readonly string[];
  /** The most calls of each tool in one invocation, by name or pattern. */
  readonly maxCalls?: Readonly<Record<string, number>>;
  /** The longest arguments, in characters of JSON. */
  readonly maxArgumentLength?: number;
  /** Checks of one's own, by name or pattern: what is wrong with these arguments, if something is. */
  readonly checks?: Readonly<Record<string, ArgumentCheck>>;
  /** Unless told, a call that does not pass is blocked. */
  readonly decision?: "warn" | "block" | "halt";
}

export type ArgumentCheck = (
  input: JsonValue,
  context: GuardedCall,
) => string | undefined | Promise<string | undefined>;

/** Holds calls to rules that a schema cannot say: which, how often, how long, and with what. */
export function toolCallValidation(options: ToolCallValidationOptions): Guardrail {
  const { decision = "block", maxArgumentLength = Infinity } = options;
  if (!(maxArgumentLength >= 0)) {
    throw new Fault(
      "invalid_argument",
      `maxArgumentLength is ${maxArgumentLength}: it must be a number from 0`,
    );
  }
  const only = options.only?.map(namePattern);
  const limits = Object.entries(options.maxCalls ?? {}).map(([pattern, limit]) => readLimit(pattern, limit));
  const checks = Object.entries(options.checks ?? {}).map(([pattern, check]) => ({
    fits: namePattern(pattern),
    check,
  }));
  const objection = async (call: ToolCall, context: GuardedCall): Promise<string | undefined> => {
    const { toolName, input } = call;
    if (only !== undefined && !only.some((fits) => fits(toolName)))
      return `${toolName} may not be called; these may: ${options.only?.join(", ") || "none"}`;
    for (const { fits, limit, pattern } of limits) {
      if (!fits(toolName)) continue;
      const made = context.history.filter(({ call: earlier }) => fits(earlier.toolName)).length;
      if (made >= limit) return `${pattern} may be called ${limit} times and has been called ${made} times`;
    }
    const length = maxArgumentLength === Infinity ? 0 : JSON.stringify(input).length;
    if (length > maxArgumentLength)
      return `its arguments are ${length} characters long, and ${maxArgumentLength} are allowed`;
    for (const { fits, check } of checks) {
      const wrong = fits(toolName) ? await check(input, context) : undefined;
      if (wrong !== undefined) return wrong;
    }
    return undefined;
  };
  return Object.freeze({
    name: "tool_call_validation",
    beforeCall: async (call: ToolCall, context: GuardedCall): Promise<GuardrailDecision> => {
      const reason = await objection(call, context);
      return reason === undefined ? { decision: "allow" } : { decision, reason };
    },
  });
}

function readLimit(
  pattern: string,
  limit: number,
): { readonly pattern: string; readonly limit: number; readonly fits: (name: string) => boolean } {
  if (!Number.isSafeInteger(limit) || limit < 0) {
    throw new Fault("invalid_argument", `maxCalls of ${pattern} is ${limit}: it must be an integer from 0`);
  }
  return { pattern, limit, fits: namePattern(pattern) };
}
