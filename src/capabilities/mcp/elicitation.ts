import type { ElicitRequest, ElicitResult } from "@modelcontextprotocol/client";
import type {
  ApprovalDecision,
  JsonObject,
  JsonValue,
  PersonQuestion,
  ToolContext,
} from "../../kernel/index.ts";

/** A question that a server asks a person: a form to fill in, or a URL to visit. */
export type Elicitation = ElicitRequest["params"];

/** Returns the question as the input of an `approval_request`. An answer is valid only for exactly this question. */
export function questionOf(elicitation: Elicitation): JsonObject {
  // The JSON round trip removes fields that the package leaves `undefined`.
  const { message, mode, url, elicitationId, requestedSchema } = JSON.parse(
    JSON.stringify(elicitation),
  ) as JsonObject;
  return Object.fromEntries(
    Object.entries({ message, mode, url, elicitationId, requestedSchema }).filter(
      ([, value]) => value !== undefined,
    ),
  ) as JsonObject;
}

/**
 * Converts a person's decision to the server's form: `approved` answers with `input`, `denied` declines, `skipped`
 * cancels.
 */
export function elicitResult(decision: ApprovalDecision, elicitation: Elicitation): ElicitResult {
  switch (decision.decision) {
    case "approved":
      return elicitation.mode === "url"
        ? { action: "accept" }
        : { action: "accept", content: contentOf(decision.input) };
    case "denied":
      return { action: "decline" };
    case "skipped":
      return { action: "cancel" };
    // A decision comes from outside, so it may be any value.
    default:
      return { action: "cancel" };
  }
}

function contentOf(input: JsonValue | undefined): NonNullable<ElicitResult["content"]> {
  return typeof input === "object" && input !== null && !Array.isArray(input)
    ? (input as NonNullable<ElicitResult["content"]>)
    : {};
}

/**
 * Asks a person the question of a server during a call, durably. The question is recorded first. If the call is
 * repeated after a crash and the server asks the same question, it gets the recorded answer; another question is
 * cancelled.
 */
export async function askInRun(
  server: string,
  { ctx, callId }: ToolContext,
  toolName: string,
  elicitation: Elicitation,
): Promise<ElicitResult> {
  const question = questionOf(elicitation);
  const asked = await ctx.step("mcp elicitation", async () => question);
  if (!sameJson(asked, question)) return { action: "cancel" };
  const reason = `MCP server ${server} asks: ${elicitation.message}`;
  const put: PersonQuestion = { kind: "elicitation", toolName, callId, input: question, reason };
  return elicitResult(await ctx.approval(put), elicitation);
}

function sameJson(one: JsonValue, other: JsonValue): boolean {
  return JSON.stringify(sorted(one)) === JSON.stringify(sorted(other));
}

function sorted(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, inner]) => [key, sorted(inner)]));
}
