import type { ElicitRequest, ElicitResult } from "@modelcontextprotocol/client";
import type {
  ApprovalDecision,
  JsonObject,
  JsonValue,
  PersonQuestion,
  ToolContext,
} from "../../kernel/index.ts";

/** What a server asks a person for: a form, or a visit to an address. */
export type Elicitation = ElicitRequest["params"];

/** As it stands in an `approval_request`. Bound to these words: an answer to others is no answer to these. */
export function questionOf(elicitation: Elicitation): JsonObject {
  // Through JSON: what the package leaves `undefined` is not there.
  const { message, mode, url, elicitationId, requestedSchema } = JSON.parse(
    JSON.stringify(elicitation),
  ) as JsonObject;
  return Object.fromEntries(
    Object.entries({ message, mode, url, elicitationId, requestedSchema }).filter(
      ([, value]) => value !== undefined,
    ),
  ) as JsonObject;
}

/** `approved` answers with `input`, which fills the form; `denied` declines; `skipped` goes away without an answer. */
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
    // What came from outside may be anything.
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
 * Puts what a server asks during a call to a person, durably. What was asked is recorded first: should the call be made again after a
 * crash, a server that asks the same is given the answer there is, and one that asks something else is not.
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
  const put: PersonQuestion = { toolName, callId, input: question, reason };
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
