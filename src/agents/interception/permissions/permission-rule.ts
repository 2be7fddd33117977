import {
  type CallDetails,
  type PermissionRule,
  type RuleKind,
  type RunFacts,
  type ToolCall,
  is,
  optionTable,
  type OptionKinds,
} from "../../../kernel/index.ts";
import { namePattern } from "./name-pattern.ts";

/** A call as rules see it. */
export interface RuledCall extends CallDetails {
  readonly call: ToolCall;
  readonly facts: RunFacts;
}

export interface ReadRule {
  readonly kind: RuleKind;
  readonly reason: string;
  /**
   * Id of the rule, the same in every process. It consists of what the rule says and of its number among equal
   * rules.
   */
  readonly id: string;
  fits(ruled: RuledCall): boolean;
}

const knownOptions = optionTable({
  tool: is.any,
  when: is.callback({ hint: "the function receives the arguments of the call" }),
  reason: is.any,
} satisfies OptionKinds<Exclude<PermissionRule, string>>);

/** Reads the rules of one kind. `where` names the list to which they belong, in errors and in the ids of the rules. */
export function readRules(
  where: string,
  kind: RuleKind,
  rules: readonly PermissionRule[] = [],
): readonly ReadRule[] {
  const counts = new Map<string, number>();
  return rules.map((rule) => {
    const read = readRule(kind, rule);
    const text = JSON.stringify([where, read.tool, read.reason]);
    const number = (counts.get(text) ?? 0) + 1;
    counts.set(text, number);
    return { ...read, id: number === 1 ? text : `${text} ${number}` };
  });
}

function readRule(kind: RuleKind, rule: PermissionRule): Omit<ReadRule, "id"> & { readonly tool: string } {
  if (typeof rule !== "string") knownOptions.read(`a rule of ${kind}`, rule);
  const { tool, when, reason } = typeof rule === "string" ? { tool: rule } : rule;
  const named = namePattern(tool);
  return {
    kind,
    tool,
    reason: reason ?? defaultReason(kind, tool),
    fits: (ruled) => named(ruled.call.toolName) && (when === undefined || holds(kind, when, ruled)),
  };
}

/**
 * Whether a rule applies. If its predicate throws or returns no boolean, a rule that allows does not apply, and a
 * rule that asks or denies does.
 */
function holds(
  kind: RuleKind,
  when: NonNullable<Exclude<PermissionRule, string>["when"]>,
  { call: { toolName }, parsed, sent, facts, folder = null }: RuledCall,
): boolean {
  try {
    const answer: unknown = when(parsed, facts, { sent, toolName, kind, folder });
    return kind === "allow" ? answer === true : answer !== false;
  } catch {
    // The error neither hides nor ends the run: the call is denied or asked about, with the rule as the reason.
    return kind !== "allow";
  }
}

function defaultReason(kind: RuleKind, tool: string): string {
  return kind === "ask" ? `the rule for ${tool} says to ask` : `the rule for ${tool} forbids it`;
}
