import {
  jsonText,
  type AgentSession,
  type ApprovalDecision,
  type Architecture,
  type Dependencies,
  type EmittableEvent,
  type JsonValue,
} from "../../kernel/index.ts";
import { architectureEvent } from "../context/role-call.ts";

/**
 * Name of the tool for which a person is asked. It is the same as that of the tool `ask_human`, so that user
 * interfaces treat both alike.
 */
const toolName = "ask_human";

/**
 * An architecture that forwards its input to a person and returns the person's answer. The wait survives restarts
 * and does not count for the deadline. If the person refuses or does not answer, the outcome is still valid;
 * `metadata` says what happened.
 */
export class UserProxy implements Architecture {
  readonly name = "user_proxy";
  readonly requiresModel = false;
  readonly hasOwnCalls = false;

  async *run(session: AgentSession, { ctx }: Dependencies, prompt: string): AsyncIterable<EmittableEvent> {
    const attachments = session.attachments.filter(({ type }) => type !== "text");
    const shown = attachments.length === 0 ? {} : { attachments: attachments as unknown as JsonValue };
    const decision = await ctx.approval({
      toolName,
      callId: ctx.taskId,
      input: { question: prompt, ...shown },
      reason: prompt,
    });
    session.output = answerOf(decision);
    session.metadata["decision"] = decision.decision;
    if (decision.by !== undefined) session.metadata["by"] = decision.by;
    yield architectureEvent(this.name, "answered", { decision: decision.decision });
  }

  declaredWorkers(): Readonly<Record<string, never>> {
    return {};
  }
}

export function userProxy(): UserProxy {
  return new UserProxy();
}

function answerOf(decision: ApprovalDecision): string {
  if (decision.decision === "skipped") return "skipped";
  if (decision.decision === "denied")
    return decision.reason === undefined ? "denied" : `denied: ${decision.reason}`;
  const { input = null } = decision;
  return input === null ? "approved" : jsonText(input);
}
