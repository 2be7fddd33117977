import {
  canonicalJson,
  describeValue,
  Fault,
  MiddlewareTermination,
  readProperty,
  reasonToAsk,
  stopsTask,
  withObjections,
  type AfterCall,
  type BeforeCall,
  type CallVerdict,
  type GatedCall,
  type ToolResult,
} from "../../kernel/index.ts";
import { failedResult } from "./received-call.ts";

/** A decision of a check before a call after which no further check is asked. */
export type FinalVerdict = Extract<CallVerdict, { decision: "allow" | "answer" | "ask" | "deny" }>;

/**
 * Asks the checks before a call, in order, for the first decision that counts. If no check decides, the tool's own
 * need for approval decides. If a check throws or returns an invalid verdict, the call is denied. `isEdited` says
 * that a person has edited the arguments; the checks may then not edit them.
 */
export async function decideBefore(
  entries: readonly BeforeCall[],
  gated: GatedCall,
  isEdited = false,
): Promise<FinalVerdict | Extract<CallVerdict, { decision: "edit" }>> {
  for (const entry of entries) {
    let verdict: CallVerdict | undefined;
    try {
      verdict = checked(await entry.decide(gated));
    } catch (error) {
      if (stopsTask(error)) throw error;
      return { decision: "deny", by: entry.name, reason: failureOf(entry, error) };
    }
    switch (verdict?.decision) {
      case undefined:
      case "warn":
        continue;
      case "edit":
        if (isEdited || canonicalJson(verdict.input) === canonicalJson(gated.sent)) continue;
        return verdict;
      case "halt":
        throw new MiddlewareTermination(verdict.reason, { by: verdict.by });
      case "terminate":
        return { decision: "deny", by: entry.name, reason: failureOf(entry, misplaced(verdict)) };
      case "allow":
      case "answer":
      case "ask":
      case "deny":
        return verdict;
    }
  }
  return ownVerdict(gated);
}

/** Returns what a tool itself decides about a call, by its risk, its `approvalScope` and its `needsApproval`. */
export function ownVerdict({
  tool,
  parsed,
  needsApproval,
}: Pick<GatedCall, "tool" | "parsed" | "needsApproval">): FinalVerdict {
  const reason = reasonToAsk(tool, parsed) ?? (needsApproval ? `${tool.name} requires approval` : undefined);
  return reason === undefined ? { decision: "allow" } : { decision: "ask", by: "tool", reason };
}

/**
 * Asks the checks after a call, in order, and returns the result with their changes. If a check throws or returns
 * an invalid verdict, the result is withheld.
 */
export async function decideAfter(
  entries: readonly AfterCall[],
  gated: GatedCall,
  result: ToolResult,
): Promise<ToolResult> {
  let given = result;
  for (const entry of entries) {
    try {
      const verdict = checked(await entry.decide(gated, given));
      if (verdict !== undefined) given = applied(given, verdict);
    } catch (error) {
      if (stopsTask(error)) throw error;
      given = failedResult(`[withheld: ${failureOf(entry, error)}]`);
    }
  }
  return given;
}

function applied(result: ToolResult, verdict: CallVerdict): ToolResult {
  switch (verdict.decision) {
    case "allow":
      return result;
    case "warn":
      return withObjections(result, verdict.objections);
    case "answer":
      return verdict.result;
    case "terminate":
      return verdict.result.terminate ? verdict.result : { ...verdict.result, terminate: true };
    case "deny":
      return failedResult(verdict.text ?? `[withheld by the ${verdict.by}: ${verdict.reason}]`);
    case "halt":
      throw new MiddlewareTermination(verdict.reason, { by: verdict.by });
    case "ask":
    case "edit":
      throw misplaced(verdict);
  }
}

/**
 * Returns the verdict of a check. Throws if it is invalid, because a policy that cannot be evaluated must not allow
 * a call.
 */
function checked(verdict: CallVerdict | undefined): CallVerdict | undefined {
  const problem = verdict === undefined ? undefined : problemOf(verdict);
  if (problem === undefined) return verdict;
  throw new Fault("invalid_argument", `invalid verdict: ${problem}`);
}

/** Returns what is wrong with a verdict. The check is at run time, because not every check is type-checked. */
function problemOf(verdict: unknown): string | undefined {
  if (typeof verdict !== "object" || verdict === null)
    return `expected an object with a decision, or undefined, not ${describeValue(verdict)}`;
  const decision = readProperty(verdict, "decision");
  switch (decision) {
    case "allow":
    case "warn":
    case "halt":
      return undefined;
    case "ask":
    case "deny":
      return typeof readProperty(verdict, "reason") === "string"
        ? undefined
        : `the decision ${decision} requires a reason as text`;
    case "edit":
      return readProperty(verdict, "input") === undefined
        ? "the decision edit requires the input"
        : undefined;
    case "answer":
    case "terminate":
      return readProperty(readProperty(verdict, "result"), "output") === undefined
        ? `the decision ${decision} requires a result with an output`
        : undefined;
    default:
      return `unknown decision ${describeValue(decision)}; use allow, answer, ask, deny, edit, halt, terminate or warn`;
  }
}

function failureOf({ name }: BeforeCall | AfterCall, error: unknown): string {
  return `${name} failed: ${Fault.from(error).message}`;
}

function misplaced({ decision }: CallVerdict): Fault {
  return new Fault("invalid_argument", `the decision ${decision} is not possible in this phase of a call`);
}
