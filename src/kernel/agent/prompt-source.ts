import type { SessionId } from "../base/identity.ts";

export interface PromptQuery {
  /** `null`: the terminal. Prompts are cached by channel. */
  readonly channel: string | null;
  readonly sessionId: SessionId | null;
  readonly toolNames: readonly string[];
}

/** Where an agent's system prompt comes from: files, profiles, skills, memory. Byte-identical for the same query until `reload`. */
export interface PromptSource {
  build(query: PromptQuery): Promise<{ readonly text: string; readonly fromCache: boolean }>;
  /** Forgets what is cached and reads the files again. */
  reload(): Promise<void>;
}
