import {
  approvalDecisionTable,
  eventDraft,
  Fault,
  isApprovalDecision,
  scopeOfCall,
  stopsTask,
  type ApprovalHandler,
  type AskVerdict,
  type BeforeCall,
  type CallVerdict,
  type GatedCall,
  type PermissionDecision,
  type Permissions,
  type RememberedApproval,
} from "../../../kernel/index.ts";

/**
 * Creates the check that applies permissions and the tool's own `needsApproval`. It always decides. If permissions
 * throw, the call is denied. If a rule asks and no person can be asked, the call is denied too. A tool's own
 * request for approval waits for an answer, as it does without permissions. A remembered approval replaces a
 * question only if it covers everything that asks.
 */
export function permissionEntry(permissions: Permissions): BeforeCall {
  return {
    name: "permissions",
    decide: async (gated) => {
      const decision = await checked(permissions, gated);
      if (decision.decision === "deny") return denied(decision.reason);
      const ruled = decision.decision === "ask";
      if (!ruled && !gated.needsApproval) return { decision: "allow" };
      const once = ruled && decision.once === true && !gated.needsApproval;
      const rules = askingRules(decision, gated);
      if (await isRemembered(permissions, gated, { rules, once })) return { decision: "allow" };
      const { onAsk } = permissions;
      if (!ruled) return { ...ask("tool", ownQuestion(gated), onAsk ?? "wait"), rules };
      if (onAsk !== undefined)
        return { ...ask("permissions", shownReason(decision, gated), onAsk), rules, ...(once && { once }) };
      return denied(
        `${decision.reason}, but no one can be asked; set the option onAsk of permissions to "wait" or a handler`,
      );
    },
    remember: async (gated, decision, rules) => {
      const kind = decision.decision === "approved" && decision.remember === true ? "always" : "once";
      for (const rule of rules) await permissions.memory?.add(approvalOf(gated, rule, kind));
    },
  };
}

function approvalOf(gated: GatedCall, rule: string, kind: RememberedApproval["kind"]): RememberedApproval {
  const { tenantId, facts, agentId, call, tool, toolDigest, parsed } = gated;
  const scope = scopeOfCall(tool, parsed);
  return { tenantId, userId: facts.userId, agentId, toolName: call.toolName, toolDigest, scope, rule, kind };
}

async function checked(permissions: Permissions, gated: GatedCall): Promise<PermissionDecision> {
  const { call, tool, facts, sent, parsed, folder } = gated;
  try {
    const decision = await permissions.check(call, tool, facts, { sent, parsed, folder });
    if (["allow", "ask", "deny"].includes(decision.decision)) return decision;
    return {
      decision: "deny",
      reason: `permissions returned the invalid decision ${JSON.stringify(decision)}`,
    };
  } catch (error) {
    if (stopsTask(error)) throw error;
    return { decision: "deny", reason: `permissions failed: ${Fault.from(error).message}` };
  }
}

/** Returns the identities of everything that asks about a call: the rules, and the tool itself. */
function askingRules(decision: PermissionDecision, gated: GatedCall): readonly string[] {
  const own = gated.needsApproval ? [ownQuestion(gated)] : [];
  if (decision.decision !== "ask") return own;
  const { rules = [], reason } = decision;
  return [...(rules.length > 0 ? rules : [reason]), ...own];
}

/**
 * Returns the reason that a person sees. It includes the tool's own request for approval, because the answer covers
 * that too.
 */
function shownReason({ reason }: Asking, gated: GatedCall): string {
  return gated.needsApproval ? `${reason}; ${ownQuestion(gated)}` : reason;
}

/**
 * Whether remembered approvals cover everything that asks about the call. An approval of kind `once` is used only
 * if the check asks once.
 */
async function isRemembered(
  { memory }: Permissions,
  gated: GatedCall,
  { rules, once }: { readonly rules: readonly string[]; readonly once: boolean },
): Promise<boolean> {
  if (memory === undefined) return false;
  // `unknown`, because a memory that returns something else than `true` has not confirmed the approval.
  const has = async (rule: string, kind: RememberedApproval["kind"]): Promise<unknown> =>
    memory.has(approvalOf(gated, rule, kind));
  const covers = async (rule: string): Promise<boolean> =>
    (await has(rule, "always")) === true || (once && (await has(rule, "once")) === true);
  try {
    for (const rule of rules) if (!(await covers(rule))) return false;
    return true;
  } catch (error) {
    const failure = Fault.from(error).toJSON();
    gated.emitEvent(eventDraft("hook_error", { hook: "approval_memory", failure }));
    return false;
  }
}

type Asking = Extract<PermissionDecision, { decision: "ask" }>;

function ownQuestion({ call }: GatedCall): string {
  return `${call.toolName} requires approval`;
}

function denied(reason: string): CallVerdict {
  return { decision: "deny", by: "permissions", reason };
}

function ask(by: string, reason: string, onAsk: "wait" | ApprovalHandler): AskVerdict {
  return { decision: "ask", by, reason, ...(onAsk !== "wait" && { answer: strict(onAsk) }) };
}

/**
 * Wraps an approval handler so that an invalid answer denies the call. For example, `true` is not a valid decision.
 */
function strict(handler: ApprovalHandler): ApprovalHandler {
  return async (request, facts) => {
    const answer: unknown = await handler(request, facts);
    if (isApprovalDecision(answer)) {
      approvalDecisionTable.read("the decision of an approval handler", answer);
      return answer;
    }
    return {
      decision: "denied",
      reason: `the approval handler returned the invalid decision ${JSON.stringify(answer)}: expected { decision: "approved" | "denied" | "skipped" }`,
    };
  };
}
