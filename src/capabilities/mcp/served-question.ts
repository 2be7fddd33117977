import { inputRequired, type ElicitResult } from "@modelcontextprotocol/server";
import type { ApprovalDecision, ApprovalRequest, JsonObject, JsonValue } from "../../kernel/index.ts";

type InputRequest = ReturnType<typeof inputRequired.elicit>;
type FormSchema = Extract<
  Parameters<typeof inputRequired.elicit>[0]["requestedSchema"],
  { readonly type: "object" }
>;

/** What was put to a person inside a run, put to the one at the host. A question that came from an MCP server goes on as it came. */
export function hostQuestion({ input, toolName, reason }: ApprovalRequest): InputRequest {
  const { message, requestedSchema, url } = elicitationOf(input) ?? {};
  if (typeof message !== "string") {
    const asked = `${toolName} wants to run with ${JSON.stringify(input)} (${reason}). Is it to?`;
    return inputRequired.elicit({ message: asked, requestedSchema: { type: "object", properties: {} } });
  }
  if (typeof url === "string") return inputRequired.elicitUrl({ message, url });
  return inputRequired.elicit({ message, requestedSchema: requestedSchema as unknown as FormSchema });
}

/** The host's answer, as the run is given it. Anything that is not a clear yes is none. */
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

/** The question of a tool that asks for something to be filled in or visited, rather than for leave to run. */
function elicitationOf(input: JsonValue): JsonObject | undefined {
  if (typeof input !== "object" || input === null || Array.isArray(input)) return undefined;
  const { message, requestedSchema, url } = input as JsonObject;
  const isForm = typeof requestedSchema === "object" && requestedSchema !== null;
  return typeof message === "string" && (isForm || typeof url === "string")
    ? (input as JsonObject)
    : undefined;
}
