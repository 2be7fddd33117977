import { inputRequired, type ElicitResult } from "@modelcontextprotocol/server";
import type { ApprovalDecision, ApprovalRequest, JsonObject, JsonValue } from "../../kernel/index.ts";

type InputRequest = ReturnType<typeof inputRequired.elicit>;
type FormSchema = Extract<
  Parameters<typeof inputRequired.elicit>[0]["requestedSchema"],
  { readonly type: "object" }
>;

/**
 * Converts an approval request of a run to a question for the host's user. A question of an MCP server is passed on
 * unchanged.
 */
export function hostQuestion({ input, toolName, reason }: ApprovalRequest): InputRequest {
  const { message, requestedSchema, url } = elicitationOf(input) ?? {};
  if (typeof message !== "string") {
    const asked = `${toolName} is about to run with ${JSON.stringify(input)} (${reason}). Allow it?`;
    return inputRequired.elicit({ message: asked, requestedSchema: { type: "object", properties: {} } });
  }
  if (typeof url === "string") return inputRequired.elicitUrl({ message, url });
  return inputRequired.elicit({ message, requestedSchema: requestedSchema as unknown as FormSchema });
}

/** Converts the host's answer to a decision. Any answer that does not accept or decline skips the question. */
export function hostDecision(
  answer: unknown,
  { input, by }: { readonly input: JsonValue; readonly by: string },
): ApprovalDecision {
  const { action, content } = (answer ?? {}) as Partial<ElicitResult>;
  if (action === "decline") return { decision: "denied", by };
  if (action !== "accept") return { decision: "skipped", by };
  const given = elicitationOf(input) === undefined ? undefined : (content ?? {});
  return { decision: "approved", by, ...(given && { input: given }) };
}

/**
 * Returns the question if it asks a person for a form or a URL visit, and `undefined` if it asks for permission to run
 * a tool.
 */
function elicitationOf(input: JsonValue): JsonObject | undefined {
  if (typeof input !== "object" || input === null || Array.isArray(input)) return undefined;
  const { message, requestedSchema, url } = input as JsonObject;
  const isForm = typeof requestedSchema === "object" && requestedSchema !== null;
  return typeof message === "string" && (isForm || typeof url === "string")
    ? (input as JsonObject)
    : undefined;
}
