import {
  canonicalJson,
  ownAnswer,
  type Guardrail,
  type GuardrailDecision,
  type JsonValue,
  type SettledCall,
  type Tool,
  type ToolCall,
  type ToolResult,
  is,
  optionTable,
  type OptionKind,
  type OptionKinds,
} from "../../../kernel/index.ts";
import { namePattern } from "../permissions/name-pattern.ts";

/** Options of `loopDetection`. */
export interface LoopDetectionOptions {
  /** Thresholds for a call that fails repeatedly with the same arguments. */
  readonly exactFailure?: { readonly warn?: number; readonly block?: number };
  /** Thresholds for a tool that fails repeatedly with any arguments. */
  readonly sameToolFailure?: { readonly warn?: number; readonly halt?: number };
  /** Thresholds for a read-only call that returns the same result repeatedly. */
  readonly sameResult?: { readonly warn?: number; readonly block?: number };
  /** Determines which tools are read-only. Default: tools that are not destructive. */
  readonly idempotent?: (tool: Tool) => boolean;
  /** Names or patterns of tools that are called repeatedly on purpose. `sameResult` does not apply to them. */
  readonly polled?: readonly string[];
}

const allow: GuardrailDecision = Object.freeze({ decision: "allow" });

/** A threshold of a loop rule. */
function threshold(count: number): OptionKind<number> & { readonly default: number } {
  return is.integer({ from: 1, or: [Infinity, "never"], default: count });
}

type Thresholds<Rule extends "exactFailure" | "sameToolFailure" | "sameResult"> = NonNullable<
  LoopDetectionOptions[Rule]
>;

const exactTable = optionTable({ warn: threshold(2), block: threshold(5) } satisfies OptionKinds<
  Thresholds<"exactFailure">
>);
const toolTable = optionTable({ warn: threshold(3), halt: threshold(8) } satisfies OptionKinds<
  Thresholds<"sameToolFailure">
>);
const sameTable = optionTable({ warn: threshold(2), block: threshold(5) } satisfies OptionKinds<
  Thresholds<"sameResult">
>);
const knownOptions = optionTable({
  exactFailure: is.any,
  sameToolFailure: is.any,
  sameResult: is.any,
  idempotent: is.callback(),
  polled: is.list({ of: is.text() }),
} satisfies OptionKinds<LoopDetectionOptions>);

/**
 * Creates a guardrail that detects repeated calls. Each of its three rules counts over the calls of one invocation.
 * A success of the tool, or of the same call, ends a series of failures; a different result ends a series of equal
 * results.
 *
 * It counts from the history that it receives, so that a process that resumes the run continues the count. A
 * refused call counts as a failed one, because the model sees no difference.
 */
export function loopDetection(options: LoopDetectionOptions = {}): Guardrail {
  knownOptions.read("loopDetection()", options);
  const exact = exactTable.read("exactFailure of loopDetection()", options.exactFailure ?? {});
  const tool = toolTable.read("sameToolFailure of loopDetection()", options.sameToolFailure ?? {});
  const same = sameTable.read("sameResult of loopDetection()", options.sameResult ?? {});
  const { idempotent = ({ destructive }: Tool) => !destructive } = options;
  const polled = (options.polled ?? []).map(namePattern);
  const onlyLooks = (of: Tool): boolean => idempotent(of) && !polled.some((fits) => fits(of.name));

  return Object.freeze({
    name: "loop_detection",
    beforeCall: (call, context) => {
      const { toolName } = call;
      const rows = countRows({ toolName, input: context.sent }, context.history);
      if (rows.toolFailures >= tool.halt) return stopped("halt", failedInARow(toolName, rows.toolFailures));
      if (rows.callFailures >= exact.block)
        return stopped("block", `${failedAlike(toolName, rows.callFailures)}. Try something else`);
      if (onlyLooks(context.tool) && rows.sameResults >= same.block)
        return stopped("block", `${sameAgain(toolName, rows.sameResults)}. Use it, or try something else`);
      return allow;
    },
    afterCall: (call, result, context) => {
      const { toolName } = call;
      const { history } = context;
      // The history has the arguments that the model sent.
      const sent = { ...call, input: context.sent };
      const { toolFailures, callFailures, sameResults } = countRows(sent, history, { call: sent, result });
      if (toolFailures >= tool.halt) return stopped("halt", failedInARow(toolName, toolFailures));
      if (callFailures >= exact.warn)
        return stopped(
          "warn",
          `${failedAlike(toolName, callFailures)}. Change the arguments or try something else`,
        );
      if (toolFailures >= tool.warn)
        return stopped("warn", `${failedInARow(toolName, toolFailures)}. Reconsider how you use it`);
      if (!result.isError && onlyLooks(context.tool) && sameResults >= same.warn)
        return stopped("warn", `${sameAgain(toolName, sameResults)}. Another call will not change it`);
      return allow;
    },
  } satisfies Guardrail);
}

interface Rows {
  readonly toolFailures: number;
  readonly callFailures: number;
  readonly sameResults: number;
}

/** Counts the current series of failures and of equal results that end with the newest call. */
function countRows(
  { toolName, input }: Pick<ToolCall, "toolName" | "input">,
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

/** Cached keys of calls, so that the cost does not grow with the history (F2). */
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
  return `${toolName} has returned the same result ${times} times for these arguments`;
}
