import { Fault, type JsonValue, type RunFacts, type ToolCall } from "../../kernel/index.ts";
import { namePattern } from "./name-pattern.ts";

/** Calls a rule is about: those of a tool by its name or a pattern (`mcp.*`), or only those with certain arguments. */
export type PermissionRule =
  | string
  | {
      readonly tool: string;
      /** The arguments as the model gave them. What it throws counts against the call. */
      readonly when?: (input: JsonValue, facts: RunFacts) => boolean;
      /** What the model and the person asked are told. */
      readonly reason?: string;
    };

/** What a rule does to the calls it is about. */
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
      `when of the ${kind} rule for ${tool} must be a function of the arguments`,
    );
  }
  const named = namePattern(tool);
  return {
    kind,
    reason: reason ?? defaultReason(kind, tool),
    fits: (call, facts) => named(call.toolName) && (when === undefined || holds(kind, when, call, facts)),
  };
}

/** Fails closed: a predicate that throws, or says neither yes nor no, makes no allowance and lifts no ban. */
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
    // Neither hidden nor fatal: the call is refused or asked about, with the rule as the reason.
    return kind !== "allow";
  }
}

function defaultReason(kind: RuleKind, tool: string): string {
  return kind === "ask" ? `the rule for ${tool} says to ask` : `the rule for ${tool} forbids it`;
}
