import {
  Fault,
  isCritical,
  scopeOfCall,
  type ApprovalHandler,
  type ApprovalMemory,
  type CallDetails,
  type PermissionDecision,
  type PermissionMode,
  type PermissionRule,
  type Permissions,
  type RuleKind,
  type RunFacts,
  type Tool,
  type ToolCall,
  is,
  optionTable,
  type OptionKinds,
} from "../../../kernel/index.ts";
import { inMemoryApprovals } from "./approval-memory.ts";
import { readRules, type ReadRule, type RuledCall } from "./permission-rule.ts";

interface PermissionRules {
  readonly mode?: PermissionMode;
  readonly allow?: readonly PermissionRule[];
  readonly ask?: readonly PermissionRule[];
  readonly deny?: readonly PermissionRule[];
}

export interface PermissionsOptions extends PermissionRules {
  /** Rules for single users, in addition to the common rules. They apply to no other user. */
  readonly users?: Readonly<Record<string, PermissionRules>>;
  /** Rules for runs without a user. */
  readonly anonymous?: PermissionRules;
  /**
   * What happens to a call that needs a person's approval. `"wait"`: it waits durably for `run.approve`. A handler
   * is asked in this process. If absent, such a call is denied.
   */
  readonly onAsk?: "wait" | ApprovalHandler;
  /** Where approvals with `remember` are stored. Default: in memory, as long as the process lives. */
  readonly memory?: ApprovalMemory;
}

const ruleTable = optionTable({
  mode: is.choice(["default", "acceptEdits", "bypass"]),
  allow: is.list(),
  ask: is.list(),
  deny: is.list(),
} satisfies OptionKinds<PermissionRules>);

const knownOptions = optionTable({
  mode: is.choice(["default", "acceptEdits", "bypass"]),
  allow: is.list(),
  ask: is.list(),
  deny: is.list(),
  users: is.any,
  anonymous: is.any,
  onAsk: is.any,
  memory: is.withMethods(["has", "add", "delete"]),
} satisfies OptionKinds<PermissionsOptions>);

/**
 * Decides which calls are allowed. A deny rule overrides an ask rule, an ask rule overrides an allow rule, and rules override the
 * mode. A user's rules and the common rules have equal rank.
 *
 * If no rule applies, the properties of the tool and the mode decide. An unknown property counts as its most restrictive value:
 *
 * | | `critical` | destructive, edits files | destructive | reaches a new host or other scope | otherwise |
 * |---|---|---|---|---|---|
 * | `default` | ask | ask | ask | ask once | allow |
 * | `acceptEdits` | ask | allow | ask | ask once | allow |
 * | `bypass` | allow | allow | allow | allow | allow |
 */
export class PermissionPolicy implements Permissions {
  readonly onAsk?: "wait" | ApprovalHandler;
  readonly memory: ApprovalMemory;
  readonly #everyone: RuleSet;
  readonly #users: ReadonlyMap<string | null, RuleSet>;

  constructor(options: PermissionsOptions = {}) {
    const {
      users = {},
      anonymous,
      onAsk,
      memory = inMemoryApprovals(),
      ...everyone
    } = knownOptions.read("permissions()", options);
    if (onAsk !== undefined && onAsk !== "wait" && typeof onAsk !== "function") {
      throw new Fault(
        "invalid_argument",
        `invalid onAsk ${JSON.stringify(onAsk)}: expected "wait", a function, or no value`,
      );
    }
    if (onAsk !== undefined) this.onAsk = onAsk;
    this.memory = memory;
    this.#everyone = ruleSet(everyone, "permissions");
    const own = new Map<string | null, RuleSet>();
    for (const [user, rules] of Object.entries(users))
      own.set(user, ruleSet(rules, `permissions of ${user}`));
    if (anonymous !== undefined) own.set(null, ruleSet(anonymous, "permissions without a user"));
    this.#users = own;
    // Tools and architectures may reach the object, and must not replace the person that it asks.
    Object.freeze(this);
  }

  /** Decides about a call. If `details` is absent, the arguments of `call` count as parsed. */
  check(call: ToolCall, tool: Tool, facts: RunFacts, details?: CallDetails): PermissionDecision {
    const { sent, parsed, folder = null } = details ?? { sent: call.input, parsed: call.input };
    const ruled = { call, facts, sent, parsed, folder };
    const own = this.#users.get(facts.userId);
    for (const kind of ["deny", "ask", "allow"] as const) {
      const rules = [...(own?.matching(kind, ruled) ?? []), ...this.#everyone.matching(kind, ruled)];
      if (rules.length > 0) return byRules(kind, rules);
    }
    return byMode(own?.mode ?? this.#everyone.mode ?? "default", tool, parsed);
  }
}

/**
 * Creates permissions from rules. A rule that denies takes precedence over one that asks, and a rule that asks over
 * one that allows.
 *
 * @example
 * ```ts
 * import { Agent, permissions } from "reeve";
 *
 * const clerk = new Agent({
 *   name: "clerk",
 *   model: "anthropic/claude-sonnet-5",
 *   permissions: permissions({ mode: "acceptEdits", deny: ["bash"], ask: ["mcp__*"], onAsk: "wait" }),
 * });
 * ```
 */
export function permissions(options: PermissionsOptions = {}): PermissionPolicy {
  return new PermissionPolicy(options);
}

interface RuleSet {
  readonly mode: PermissionMode | undefined;
  matching(kind: RuleKind, ruled: RuledCall): readonly ReadRule[];
}

function ruleSet(rules: PermissionRules, where: string): RuleSet {
  const { mode, allow, ask, deny } = ruleTable.read(where, rules);
  const read = {
    allow: readRules(where, "allow", allow),
    ask: readRules(where, "ask", ask),
    deny: readRules(where, "deny", deny),
  };
  return { mode, matching: (kind, ruled) => read[kind].filter((rule) => rule.fits(ruled)) };
}

/** Decides by the rules of one kind that apply. If a person is asked, they see the reasons of all these rules. */
function byRules(kind: RuleKind, rules: readonly ReadRule[]): PermissionDecision {
  if (kind === "allow") return { decision: "allow" };
  const reason = [...new Set(rules.map((rule) => rule.reason))].join("; ");
  if (kind === "deny") return { decision: "deny", reason };
  return { decision: "ask", reason, rules: rules.map(({ id }) => id) };
}

/** Decides by the mode. A tool of unknown origin may lack properties; the most restrictive value is then assumed. */
function byMode(mode: PermissionMode, tool: Partial<Tool>, parsed: unknown): PermissionDecision {
  const { name = "the tool", destructive, edits } = tool;
  if (mode === "bypass") return { decision: "allow" };
  if (isCritical(tool)) return { decision: "ask", reason: `${name} is critical` };
  const isAccepted = mode === "acceptEdits" && edits === true;
  if (destructive !== false && !isAccepted)
    return { decision: "ask", reason: `${name} may change or delete data` };
  const scope = scopeOfCall(tool, parsed);
  if (scope === null) return { decision: "allow" };
  // The scope is a field of a remembered approval, so it is no part of the rule's identity.
  return { decision: "ask", reason: `${name} reaches ${scope}`, once: true, rules: ["approvalScope"] };
}
