import {
  canonicalJson,
  Fault,
  type Guardrail,
  type GuardrailDecision,
  type JsonValue,
  type SettledCall,
  type Tool,
  type ToolCall,
  type ToolResult,
} from "../../kernel/index.ts";
import { namePattern } from "../permissions/name-pattern.ts";
import { ownAnswer } from "./judged-result.ts";

export interface LoopDetectionOptions {
  /** The same call with the same arguments, failing. */
  readonly exactFailure?: { readonly warn?: number; readonly block?: number };
  /** The same tool, failing, whatever the arguments. */
  readonly sameToolFailure?: { readonly warn?: number; readonly halt?: number };
  /** The same call of a tool that only looks, with the same result. */
  readonly sameResult?: { readonly warn?: number; readonly block?: number };
  /** Which tools only look. Unless told, those that are not destructive. */
  readonly idempotent?: (tool: Tool) => boolean;
  /** Tools that are polled on purpose, by name or pattern: the rule of the same result is not for them. */
  readonly polled?: readonly string[];
}

const allow: GuardrailDecision = Object.freeze({ decision: "allow" });

/**
 * Notices a model that goes in circles. Three rules, each counted over the calls of one invocation: a success of the tool, or of the
 * very call, ends a row of failures; another result ends a row of same results.
 *
 * Counted from the history that the gate hands over, so that a process that takes the run over counts on where the last one was. A call
 * that was refused counts as one that failed: to the model it is the same.
 */
export function loopDetection(options: LoopDetectionOptions = {}): Guardrail {
  const exact = { warn: 2, block: 5, ...options.exactFailure };
  const tool = { warn: 3, halt: 8, ...options.sameToolFailure };
  const same = { warn: 2, block: 5, ...options.sameResult };
  checkThresholds({ exact, tool, same });
  const { idempotent = ({ destructive }: Tool) => !destructive } = options;
  const polled = (options.polled ?? []).map(namePattern);
  const onlyLooks = (of: Tool): boolean => idempotent(of) && !polled.some((fits) => fits(of.name));

  return Object.freeze({
    name: "loop_detection",
    beforeCall: (call, context) => {
      const { toolName } = call;
      const rows = countRows(call, context.history);
      if (rows.toolFailures >= tool.halt) return stopped("halt", failedInARow(toolName, rows.toolFailures));
      if (rows.callFailures >= exact.block)
        return stopped("block", `${failedAlike(toolName, rows.callFailures)}. Do something else`);
      if (onlyLooks(context.tool) && rows.sameResults >= same.block)
        return stopped("block", `${sameAgain(toolName, rows.sameResults)}. Use it, or do something else`);
      return allow;
    },
    afterCall: (call, result, context) => {
      const { toolName } = call;
      const { history } = context;
      const { toolFailures, callFailures, sameResults } = countRows(call, history, { call, result });
      if (toolFailures >= tool.halt) return stopped("halt", failedInARow(toolName, toolFailures));
      if (callFailures >= exact.warn)
        return stopped(
          "warn",
          `${failedAlike(toolName, callFailures)}. Change the arguments or do something else`,
        );
      if (toolFailures >= tool.warn)
        return stopped("warn", `${failedInARow(toolName, toolFailures)}. Think again about how it is used`);
      if (!result.isError && onlyLooks(context.tool) && sameResults >= same.warn)
        return stopped("warn", `${sameAgain(toolName, sameResults)}. Asking again changes nothing`);
      return allow;
    },
  } satisfies Guardrail);
}

interface Rows {
  readonly toolFailures: number;
  readonly callFailures: number;
  readonly sameResults: number;
}

/** The rows that end with the newest call. */
function countRows(
  { toolName, input }: ToolCall,
  history: readonly SettledCall[],
  newest?: SettledCall,
): Rows {
  const key = canonicalJson(input);
  let [toolFailures, callFailures, sameResults] = [0, 0, 0];
  let [toolRow, callRow, sameRow] = [true, true, true];
  let answer: string | undefined;
  for (let index = history.length; index >= 0 && (toolRow || callRow || sameRow); index--) {
    const settled = index === history.length ? newest : history[index];
    if (settled?.call.toolName !== toolName) continue;
    const { isError } = settled.result;
    if (!isError) toolRow = false;
    else if (toolRow) toolFailures++;
    if (keyOf(settled.call) !== key) continue;
    if (isError) {
      if (callRow) callFailures++;
      continue;
    }
    callRow = false;
    const given = answerOf(settled.result);
    answer ??= given;
    if (answer !== given) sameRow = false;
    else if (sameRow) sameResults++;
  }
  return { toolFailures, callFailures, sameResults };
}

/** Each is worked out once, however long the history grows (F2). */
const keys = new WeakMap<object, string>();
const answers = new WeakMap<object, string>();

function keyOf(call: { readonly input: JsonValue }): string {
  return remembered(keys, call, () => canonicalJson(call.input));
}

function answerOf(result: ToolResult): string {
  return remembered(answers, result, () => ownAnswer(result.output));
}

function remembered(memory: WeakMap<object, string>, of: object, make: () => string): string {
  const known = memory.get(of);
  if (known !== undefined) return known;
  const made = make();
  memory.set(of, made);
  return made;
}

function stopped(decision: "warn" | "block" | "halt", reason: string): GuardrailDecision {
  return { decision, reason };
}

function failedInARow(toolName: string, times: number): string {
  return `${toolName} has failed ${times} times in a row`;
}

function failedAlike(toolName: string, times: number): string {
  return `${toolName} has failed ${times} times with these arguments`;
}

function sameAgain(toolName: string, times: number): string {
  return `${toolName} has given the same result ${times} times for these arguments`;
}

function checkThresholds(rules: Readonly<Record<string, Readonly<Record<string, number>>>>): void {
  for (const [rule, thresholds] of Object.entries(rules)) {
    for (const [name, value] of Object.entries(thresholds)) {
      if (value === Infinity || (Number.isSafeInteger(value) && value > 0)) continue;
      throw new Fault(
        "invalid_argument",
        `${name} of the loop rule ${rule} is ${value}: it must be an integer from 1, or Infinity for never`,
      );
    }
  }
}
