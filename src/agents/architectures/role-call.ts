import {
  addUsage,
  eventDraft,
  messageText,
  Transcript,
  userMessage,
  type AgentSession,
  type Dependencies,
  type EventDraft,
  type JsonObject,
  type ResponseFormat,
  type UserPart,
} from "../../kernel/index.ts";

export interface RoleCall {
  /** Whose model is asked; the main one where the role has none of its own. */
  readonly role: string;
  readonly instructions: string;
  readonly prompt: string;
  readonly attachments?: readonly UserPart[];
  readonly format?: ResponseFormat;
}

/**
 * One model call in a role: a turn, told and counted, that sees nothing but its prompt and leaves nothing in the conversation. In a branch
 * of `ctx.parallel`, give it the branch's dependencies (`scopeForWorker`).
 */
export async function askRole(session: AgentSession, deps: Dependencies, call: RoleCall): Promise<string> {
  const { role, instructions, prompt, attachments = [], format } = call;
  const { ctx } = deps;
  ctx.check();
  const turn = ++session.turns;
  ctx.tell(eventDraft("turn_start", { turn }));
  const asked = attachments.length === 0 ? prompt : [{ type: "text", text: prompt } as const, ...attachments];
  const { message, usage, stopReason } = await ctx.llm({
    transcript: Transcript.of([userMessage(asked)]),
    instructions,
    role,
    ...(format && { responseFormat: format }),
  });
  session.cumulativeUsage = addUsage(session.cumulativeUsage, usage);
  ctx.tell(eventDraft("turn_end", { turn, stopReason, toolCalls: 0 }));
  return messageText(message);
}

/** What an architecture says of itself: `plan.created`. */
export function note(architecture: string, name: string, data: JsonObject = {}): EventDraft {
  return eventDraft("architecture_event", { architecture, name: `${architecture}.${name}`, data });
}
