import type { SessionId } from "../../../kernel/index.ts";

/** Maximum number of sessions whose system prompt is kept. */
const mostSessions = 256;

/** The system prompts that this process built last, by session. The oldest ones are removed. */
export class RecentPrompts {
  readonly #prompts = new Map<SessionId, string>();

  /** Returns the prompt of a session, or an empty text. */
  get(sessionId: SessionId): string {
    return this.#prompts.get(sessionId) ?? "";
  }

  set(sessionId: SessionId, prompt: string): void {
    this.#prompts.delete(sessionId);
    this.#prompts.set(sessionId, prompt);
    if (this.#prompts.size <= mostSessions) return;
    const [oldest] = this.#prompts.keys();
    if (oldest !== undefined) this.#prompts.delete(oldest);
  }
}
