import {
  addUsage,
  eventDraft,
  messageText,
  Transcript,
  type AgentSession,
  type Dependencies,
  type EmittableEvent,
  type JsonObject,
  type LlmRequest,
  type ResponseFormat,
  type UserPart,
} from "../../kernel/index.ts";
import { opening } from "../base/agent-input.ts";
import { samplingOf } from "../base/call-settings.ts";

/** Maximum number of times that a turn which the provider paused is continued. */
export const maxPauses = 5;

/** One model call in a role. */
export interface RoleCall {
  /** Role whose model is called. If the role has no model, the main model is called. */
  readonly role: string;
  readonly instructions: string;
  readonly prompt: string;
  /** Conversation before the prompt. Default: empty. */
  readonly history?: Transcript;
  readonly attachments?: readonly UserPart[];
  /** Requested format of the reply. If absent, the reply is free text. */
  readonly format?: ResponseFormat;
}

/**
 * Makes one model call in a role and returns the text of the reply. The call counts as a turn, sees only what `call`
 * contains and adds nothing to the conversation. In a branch of `ctx.parallel`, pass the dependencies of the branch
 * (`scopeForWorker`).
 */
export async function askRole(session: AgentSession, deps: Dependencies, call: RoleCall): Promise<string> {
  const { role, instructions, prompt, history = Transcript.empty, attachments = [], format } = call;
  const { ctx } = deps;
  let transcript = history.append(opening(prompt, attachments));
  for (let text = "", pauses = 0; ; pauses++) {
    ctx.check();
    const turn = ++session.turns;
    ctx.emitEvent(eventDraft("turn_start", { turn }));
    const request: LlmRequest = {
      transcript,
      instructions,
      role,
      ...samplingOf(deps.settings),
      ...(format && { responseFormat: format }),
    };
    const reply = await ctx.llm(request).catch((error: unknown) => deps.callShorter(error, request));
    const { message, usage, stopReason } = reply;
    session.cumulativeUsage = addUsage(session.cumulativeUsage, usage);
    ctx.emitEvent(eventDraft("turn_end", { turn, stopReason, toolCalls: 0 }));
    text += messageText(message);
    session.replies.add(text, stopReason);
    if (stopReason !== "pause" || pauses === maxPauses) return text;
    transcript = transcript.append(message);
  }
}

/** Creates an event of an architecture. Its name is `<architecture>.<name>`, for example `plan.created`. */
export function architectureEvent(architecture: string, name: string, data: JsonObject = {}): EmittableEvent {
  return eventDraft("architecture_event", { architecture, name: `${architecture}.${name}`, data });
}
