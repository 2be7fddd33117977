import {
  Fault,
  type ApprovalHandler,
  type ApprovalMemory,
  type PermissionDecision,
  type PermissionMode,
  type Permissions,
  type RunFacts,
  type Tool,
  type ToolCall,
} from "../../kernel/index.ts";
import { inMemoryApprovals } from "./approval-memory.ts";
import { readRule, type PermissionRule, type ReadRule, type RuleKind } from "./permission-rule.ts";

export interface PermissionRules {
  readonly mode?: PermissionMode;
  readonly allow?: readonly PermissionRule[];
  readonly ask?: readonly PermissionRule[];
  readonly deny?: readonly PermissionRule[];
}

export interface PermissionsOptions extends PermissionRules {
  /** Rules for one user each, beside those for all. They are never looked at for anyone else. */
  readonly users?: Readonly<Record<string, PermissionRules>>;
  /** The same for runs without a user. */
  readonly anonymous?: PermissionRules;
  /**
   * What to do with a call that needs a person: `wait` until somebody answers the run (`run.approve`), over restarts; or a handler, asked in this process.
   * Absent: such a call is denied.
   */
  readonly onAsk?: "wait" | ApprovalHandler;
  /** Where an approval with `remember` is kept. Absent: in this process, for as long as it lives. */
  readonly memory?: ApprovalMemory;
}

/**
 * Who may call what. A deny beats an ask beats an allow beats the mode; a user's own rules and those for all count alike.
 *
 * Where no rule fits, the tool's own facts and the mode decide, and what is not known counts as the worst:
 *
 * | | `critical` | destructive, edits files | destructive | else |
 * |---|---|---|---|---|
 * | `default` | ask | ask | ask | allow |
 * | `acceptEdits` | ask | allow | ask | allow |
 * | `bypass` | allow | allow | allow | allow |
 */
export class PermissionPolicy implements Permissions {
  readonly onAsk?: "wait" | ApprovalHandler;
  readonly memory: ApprovalMemory;
  readonly #everyone: ReadRules;
  readonly #users: ReadonlyMap<string | null, ReadRules>;

  constructor({
    users = {},
    anonymous,
    onAsk,
    memory = inMemoryApprovals(),
    ...everyone
  }: PermissionsOptions = {}) {
    if (onAsk !== undefined && onAsk !== "wait" && typeof onAsk !== "function") {
      throw new Fault(
        "invalid_argument",
        `onAsk must be "wait", a function or absent; it is ${JSON.stringify(onAsk)}`,
      );
    }
    if (onAsk !== undefined) this.onAsk = onAsk;
    this.memory = memory;
    this.#everyone = readRules(everyone, "permissions");
    const own = new Map<string | null, ReadRules>();
    for (const [user, rules] of Object.entries(users))
      own.set(user, readRules(rules, `permissions of ${user}`));
    if (anonymous !== undefined) own.set(null, readRules(anonymous, "permissions without a user"));
    this.#users = own;
  }

  check(call: ToolCall, tool: Tool, facts: RunFacts): PermissionDecision {
    const own = this.#users.get(facts.userId);
    for (const kind of ["deny", "ask", "allow"] as const) {
      const rule = own?.find(kind, call, facts) ?? this.#everyone.find(kind, call, facts);
      if (rule === undefined) continue;
      return kind === "allow" ? { decision: "allow" } : { decision: kind, reason: rule.reason };
    }
    return byMode(own?.mode ?? this.#everyone.mode ?? "default", tool);
  }
}

export function permissions(options: PermissionsOptions = {}): PermissionPolicy {
  return new PermissionPolicy(options);
}

interface ReadRules {
  readonly mode: PermissionMode | undefined;
  find(kind: RuleKind, call: ToolCall, facts: RunFacts): ReadRule | undefined;
}

const modes: readonly string[] = ["default", "acceptEdits", "bypass"] satisfies PermissionMode[];

function readRules({ mode, allow = [], ask = [], deny = [] }: PermissionRules, where: string): ReadRules {
  if (mode !== undefined && !modes.includes(mode)) {
    throw new Fault(
      "invalid_argument",
      `mode of the ${where} is ${JSON.stringify(mode)}: it must be one of ${modes.join(", ")}`,
    );
  }
  const read = {
    allow: allow.map((rule) => readRule("allow", rule)),
    ask: ask.map((rule) => readRule("ask", rule)),
    deny: deny.map((rule) => readRule("deny", rule)),
  };
  return { mode, find: (kind, call, facts) => read[kind].find((rule) => rule.fits(call, facts)) };
}

/** A tool that came from elsewhere may lack what its type promises: then the worst is taken. */
function byMode(mode: PermissionMode, tool: Partial<Tool>): PermissionDecision {
  const { name = "the tool", risk, destructive, edits } = tool;
  if (mode === "bypass") return { decision: "allow" };
  if (risk !== "safe" && risk !== "high") return { decision: "ask", reason: `${name} is critical` };
  if (destructive === false) return { decision: "allow" };
  if (mode === "acceptEdits" && edits === true) return { decision: "allow" };
  return { decision: "ask", reason: `${name} may change or delete what it touches` };
}
