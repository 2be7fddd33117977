import type { SessionId } from "../base/identity.ts";

/** What a system prompt is built for. */
export interface PromptQuery {
  /** Channel that the input came from. `null` means the terminal. Prompts are cached by channel. */
  readonly channel: string | null;
  /** Id of the session. `null` if the invocation has no session. */
  readonly sessionId: SessionId | null;
  /** Names of the tools that the agent has. */
  readonly toolNames: readonly string[];
}

/**
 * Builds an agent's system prompt from files, profiles, skills and memory. The same query returns the same bytes until
 * `reload`.
 */
export interface PromptSource {
  /** Builds the system prompt. `fromCache` tells whether the text was built by an earlier call. */
  build(query: PromptQuery): Promise<{ readonly text: string; readonly fromCache: boolean }>;
  /**
   * Makes the next `build` read again what the prompt is built from, because a review may have changed memory or skills.
   * It returns the same bytes if nothing has changed. Called in the process that ran the review, at least once per
   * review. If absent, the source has no cache.
   */
  invalidate?(): void | Promise<void>;
  /** Clears the cache and reads the files again. */
  reload(): Promise<void>;
}
