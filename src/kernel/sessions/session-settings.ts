import { type ChatMessage, messageText } from "../messages/chat-message.ts";
import type { ThinkingLevel } from "../messages/model.ts";
import { runTitle } from "../run/run-record.ts";
import type { ModelReference, SessionEntry } from "./session-entry.ts";

/** The settings that the entries of a path make for the invocations that continue the path. */
export interface SessionSettings {
  /** The model that replaces the agent's main model. `null` if the path sets no model. */
  readonly model: ModelReference | null;
  /** The thinking level. `null` if the path sets no level. */
  readonly thinkingLevel: ThinkingLevel | null;
}

const noSettings: SessionSettings = Object.freeze({ model: null, thinkingLevel: null });

/**
 * Returns the settings that apply at the end of a path: for each kind, those of the latest entry. A compaction
 * entry contains the settings that apply at its place, so that a path that starts at a compaction gives the same
 * result.
 */
export function sessionSettings(path: readonly SessionEntry[]): SessionSettings {
  let settings = noSettings;
  for (const entry of path) {
    if (entry.type === "model_change") {
      const { provider, modelId } = entry;
      settings = { ...settings, model: { provider, modelId } };
    } else if (entry.type === "thinking_level_change") settings = { ...settings, thinkingLevel: entry.level };
    else if (entry.type === "compaction") {
      const { model = settings.model, thinkingLevel = settings.thinkingLevel } = entry;
      settings = { model, thinkingLevel };
    }
  }
  return settings;
}

/**
 * What an agent is doing in one session (S5). Invocations, compaction and navigation start only in phase `idle`; in any
 * other phase they fail with `agent_busy`. The phase returns to `idle` after success and after failure.
 */
export type AgentPhase = "idle" | "turn" | "compaction";

/** Returns the title of a session that starts with this message. `null` if it is not a user's message with text. */
export function sessionTitle(message: ChatMessage): string | null {
  return message.role === "user" ? runTitle(messageText(message)) : null;
}
