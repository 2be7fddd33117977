import type { Channel } from "../run/channel.ts";
import type { SessionId } from "../base/identity.ts";

/** What a system prompt is built for. */
export interface PromptQuery {
  /** Channel that the input came from. `null` means the terminal. Prompts are cached by its platform. */
  readonly channel: Channel | null;
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
   * Clears the cache, so that the next `build` reads the files again. A reviewer that has executed a tool calls it, because
   * memory or skills may have changed: in the process that ran the review, at least once per review. `build` then returns
   * the same bytes if nothing has changed.
   */
  reload(): Promise<void>;
}

/** What the instructions of an agent need of a prompt source. A source without `reload` has no cache. */
export type InstructionsSource = Pick<PromptSource, "build"> & Partial<Pick<PromptSource, "reload">>;
