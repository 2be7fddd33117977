import {
  addUsage,
  eventDraft,
  messageText,
  Transcript,
  type AgentSession,
  type Dependencies,
  type EmittableEvent,
  type JsonObject,
  type ResponseFormat,
  type UserPart,
} from "../../kernel/index.ts";
import { opening } from "../agent-input.ts";

export interface RoleCall {
  /** Whose model is asked; the main one where the role has none of its own. */
  readonly role: string;
  readonly instructions: string;
  readonly prompt: string;
  /** What was said before the prompt; nothing unless told. */
  readonly history?: Transcript;
  readonly attachments?: readonly UserPart[];
  readonly format?: ResponseFormat;
}

/**
 * One model call in a role: a turn, told and counted, that sees nothing but what it is given and leaves nothing in the conversation. In a branch
 * of `ctx.parallel`, give it the branch's dependencies (`scopeForWorker`).
 */
export async function askRole(session: AgentSession, deps: Dependencies, call: RoleCall): Promise<string> {
  const { role, instructions, prompt, history = Transcript.empty, attachments = [], format } = call;
  const { ctx } = deps;
  ctx.check();
  const turn = ++session.turns;
  ctx.emitEvent(eventDraft("turn_start", { turn }));
  const { message, usage, stopReason } = await ctx.llm({
    transcript: history.append(opening(prompt, attachments)),
    instructions,
    role,
    ...(format && { responseFormat: format }),
  });
  session.cumulativeUsage = addUsage(session.cumulativeUsage, usage);
  ctx.emitEvent(eventDraft("turn_end", { turn, stopReason, toolCalls: 0 }));
  return messageText(message);
}

/** What an architecture says of itself: `plan.created`. */
export function architectureEvent(architecture: string, name: string, data: JsonObject = {}): EmittableEvent {
  return eventDraft("architecture_event", { architecture, name: `${architecture}.${name}`, data });
}
