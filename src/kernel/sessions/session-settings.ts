import type { ThinkingLevel } from "../messages/thinking-level.ts";
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
