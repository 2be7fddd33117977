import { messageText, type AgentSession, type ChatMessage, type Transcript } from "../../kernel/index.ts";
import { opening } from "../base/agent-input.ts";
import { adoptOutcome } from "./inner-run.ts";
import type { PromptContext } from "../context/prompt-context.ts";
import { isBlank } from "../base/answer-text.ts";
import { userMessagesAfter } from "../base/user-messages.ts";

/**
 * The attempts at one task. Each attempt runs in its own session, which starts with the messages from before the
 * task.
 */
export class Attempts {
  readonly #promptContext: PromptContext;
  readonly #initialMessages: Transcript;
  /** Messages that the user added during any attempt, in order. */
  readonly #additions: ChatMessage[] = [];

  constructor(promptContext: PromptContext, initialMessages: Transcript) {
    this.#promptContext = promptContext;
    this.#initialMessages = initialMessages;
  }

  /** The task as the next attempt sees it: the prompt and everything that the user has added since then. */
  get task(): string {
    return [this.#promptContext.prompt, ...this.#additions.map(messageText)].join("\n\n");
  }

  /** Prepares a session for the next attempt. */
  begin(inner: AgentSession): Attempt {
    inner.messages = this.#initialMessages;
    inner.attachments = this.#promptContext.attachments;
    return {
      inner,
      additionsAtStart: this.#additions.length,
      additionsAtEnd: this.#additions.length,
      score: 0,
    };
  }

  /**
   * Collects the messages that the user added during an attempt. Call it after every attempt, also after one that
   * failed or was cancelled.
   */
  end(attempt: Attempt): void {
    this.#additions.push(...userMessagesAfter(attempt.inner, this.#initialMessages.length));
    attempt.additionsAtEnd = this.#additions.length;
  }

  /**
   * Makes the messages and the outcome of one attempt those of the invocation. Messages that the user added to
   * other attempts are kept in their order.
   */
  adopt(session: AgentSession, { inner, additionsAtStart, additionsAtEnd }: Attempt): void {
    adoptOutcome(session, inner);
    if (this.#additions.length === 0) return;
    const { prompt, attachments } = this.#promptContext;
    session.messages = this.#initialMessages.append(
      opening(prompt, attachments),
      ...this.#additions.slice(0, additionsAtStart),
      ...inner.messages.slice(this.#initialMessages.length + 1),
      ...this.#additions.slice(additionsAtEnd),
    );
  }
}

/** One attempt at a task. */
export interface Attempt {
  /** The session that the attempt runs in. */
  readonly inner: AgentSession;
  /** Number of the user's added messages when the attempt started. */
  readonly additionsAtStart: number;
  /** Number of the user's added messages when the attempt ended. */
  additionsAtEnd: number;
  /** Score of the attempt from 0 to 1. It is 0 until the attempt is evaluated. */
  score: number;
}

/**
 * Whether an attempt is better than an earlier one. An attempt with text is better than one without, whatever the
 * scores. Otherwise the higher score decides, and of two equal ones the later attempt is better.
 */
export function isBetter(one: Attempt, other: Attempt): boolean {
  const [hasText, otherHasText] = [!isBlank(one.inner.output), !isBlank(other.inner.output)];
  return hasText === otherHasText ? one.score >= other.score : hasText;
}
