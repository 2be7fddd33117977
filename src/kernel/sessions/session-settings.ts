import { type ChatMessage, messageText } from "../messages/chat-message.ts";
import type { ThinkingLevel } from "../messages/model.ts";
import { runTitle } from "../run/run-record.ts";
import type { ModelReference, SessionEntry } from "./session-entry.ts";

/** What the entries of a path set for the invocations that continue it. */
export interface SessionSettings {
  /** The model that replaces the agent's main model. `null` if the path sets none. */
  readonly model: ModelReference | null;
  /** The thinking level. `null` if the path sets none. */
  readonly thinkingLevel: ThinkingLevel | null;
}

const noSettings: SessionSettings = Object.freeze({ model: null, thinkingLevel: null });

/**
 * Returns the settings in force at the end of a path: the latest entry of each kind wins. A compaction carries the
 * settings in force at its place, so that a path that starts at a compaction gives the same result.
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
