import { Fault, type JsonValue, type RunFacts, type ToolCall } from "../../kernel/index.ts";
import { namePattern } from "./name-pattern.ts";

/**
 * The calls to which a rule applies: calls of tools by name or pattern (`mcp__*`), optionally only with certain
 * arguments.
 */
export type PermissionRule =
  | string
  | {
      readonly tool: string;
      /** Receives the arguments as the model sent them. If it throws, the rule decides against the call. */
      readonly when?: (input: JsonValue, facts: RunFacts) => boolean;
      /** The reason that the model and the person who is asked receive. */
      readonly reason?: string;
    };

/** The effect of a rule. */
export type RuleKind = "allow" | "ask" | "deny";

export interface ReadRule {
  readonly kind: RuleKind;
  readonly reason: string;
  fits(call: ToolCall, facts: RunFacts): boolean;
}

export function readRule(kind: RuleKind, rule: PermissionRule): ReadRule {
  const { tool, when, reason } = typeof rule === "string" ? { tool: rule } : rule;
  if (when !== undefined && typeof when !== "function") {
    throw new Fault(
      "invalid_argument",
      `invalid when of the ${kind} rule for ${tool}: expected a function of the arguments`,
    );
  }
  const named = namePattern(tool);
  return {
    kind,
    reason: reason ?? defaultReason(kind, tool),
    fits: (call, facts) => named(call.toolName) && (when === undefined || holds(kind, when, call, facts)),
  };
}

/**
 * Whether a rule applies. It fails closed: a predicate that throws or returns no boolean does not allow, but does ask
 * and deny.
 */
function holds(
  kind: RuleKind,
  when: (input: JsonValue, facts: RunFacts) => boolean,
  { input }: ToolCall,
  facts: RunFacts,
): boolean {
  try {
    const answer: unknown = when(input, facts);
    return kind === "allow" ? answer === true : answer !== false;
  } catch {
    // The error neither hides nor ends the run: the call is denied or asked about, with the rule as the reason.
    return kind !== "allow";
  }
}

function defaultReason(kind: RuleKind, tool: string): string {
  return kind === "ask" ? `the rule for ${tool} says to ask` : `the rule for ${tool} forbids it`;
}
