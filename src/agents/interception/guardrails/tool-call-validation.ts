import {
  Fault,
  type GuardedCall,
  type Guardrail,
  type GuardrailDecision,
  type JsonValue,
  type OnGuardrailError,
  type ToolCall,
  is,
  optionTable,
  type OptionKinds,
} from "../../../kernel/index.ts";
import { namePattern } from "../permissions/name-pattern.ts";

/** Options of `toolCallValidation`. */
export interface ToolCallValidationOptions {
  /** The only tools that may be called, by name or pattern. Default: all. */
  readonly only?: readonly string[];
  /** Maximum number of calls of each tool in one invocation, by name or pattern. */
  readonly maxCalls?: Readonly<Record<string, number>>;
  /** Maximum length of the arguments in characters of JSON. */
  readonly maxArgumentLength?: number;
  /** Custom checks, by tool name or pattern. A check returns what is wrong with the arguments, or `undefined`. */
  readonly checks?: Readonly<Record<string, ArgumentCheck>>;
  /** The decision for an invalid call. Default: `"block"`. */
  readonly decision?: "warn" | "block" | "halt";
  /**
   * The verdict that replaces an error. Default: as for every guardrail (S4), `"block"` for the input and for tool
   * calls.
   */
  readonly onError?: OnGuardrailError;
}

/** Checks the arguments of a call. It returns what is wrong with them, or `undefined`. */
export type ArgumentCheck = (
  input: JsonValue,
  context: GuardedCall,
) => string | undefined | Promise<string | undefined>;

const knownOptions = optionTable({
  only: is.list({ of: is.text() }),
  maxCalls: is.any,
  maxArgumentLength: is.number({ from: 0, default: Infinity }),
  checks: is.any,
  decision: is.choice(["warn", "block", "halt"], { default: "block" }),
  onError: is.choice(["block", "allow"]),
} satisfies OptionKinds<ToolCallValidationOptions>);

/**
 * Creates a guardrail for rules that a schema cannot express: which tools may be called, how often, and how long
 * and with which content their arguments may be.
 */
export function toolCallValidation(options: ToolCallValidationOptions): Guardrail {
  const { decision, maxArgumentLength, onError } = knownOptions.read("toolCallValidation()", options);
  const only = options.only?.map(namePattern);
  const limits = Object.entries(options.maxCalls ?? {}).map(([pattern, limit]) => readLimit(pattern, limit));
  const checks = Object.entries(options.checks ?? {}).map(([pattern, check]) => ({
    fits: namePattern(pattern),
    check,
  }));
  const objection = async (call: ToolCall, context: GuardedCall): Promise<string | undefined> => {
    const { toolName, input } = call;
    if (only !== undefined && !only.some((fits) => fits(toolName)))
      return `${toolName} may not be called; allowed are: ${options.only?.join(", ") || "no tools"}`;
    for (const { fits, limit, pattern } of limits) {
      if (!fits(toolName)) continue;
      const made = context.history.filter(({ call: earlier }) => fits(earlier.toolName)).length;
      if (made >= limit) return `${pattern} may be called ${limit} times and was called ${made} times`;
    }
    const length = maxArgumentLength === Infinity ? 0 : JSON.stringify(input).length;
    if (length > maxArgumentLength)
      return `the arguments have ${length} characters; the limit is ${maxArgumentLength}`;
    for (const { fits, check } of checks) {
      const wrong = fits(toolName) ? await check(input, context) : undefined;
      if (wrong !== undefined) return wrong;
    }
    return undefined;
  };
  return Object.freeze({
    name: "tool_call_validation",
    ...(onError !== undefined && { onError }),
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
    throw new Fault(
      "invalid_argument",
      `invalid maxCalls ${limit} of ${pattern}: expected an integer from 0`,
    );
  }
  return { pattern, limit, fits: namePattern(pattern) };
}
