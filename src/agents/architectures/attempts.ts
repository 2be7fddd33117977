import { messageText, type AgentSession, type ChatMessage, type Transcript } from "../../kernel/index.ts";
import { opening } from "../agent-input.ts";
import { adoptOutcome } from "./inner-run.ts";
import type { PromptContext } from "./prompt-context.ts";
import { isBlank } from "./answer-text.ts";
import { userMessagesAfter } from "./user-messages.ts";

/** What is tried again and again, each time in a session of its own that begins with what was said before. */
export class Attempts {
  readonly #promptContext: PromptContext;
  readonly #initialMessages: Transcript;
  /** What the user added, to whichever attempt. */
  readonly #additions: ChatMessage[] = [];

  constructor(promptContext: PromptContext, initialMessages: Transcript) {
    this.#promptContext = promptContext;
    this.#initialMessages = initialMessages;
  }

  /** As the next attempt is told it. */
  get task(): string {
    return [this.#promptContext.prompt, ...this.#additions.map(messageText)].join("\n\n");
  }

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

  /** However it ended. */
  end(attempt: Attempt): void {
    this.#additions.push(...userMessagesAfter(attempt.inner, this.#initialMessages.length));
    attempt.additionsAtEnd = this.#additions.length;
  }

  /** What it said and came to is the invocation's. What the user said to other attempts is there too, as it was said. */
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

export interface Attempt {
  readonly inner: AgentSession;
  /** How much of what the user added it began with. */
  readonly additionsAtStart: number;
  /** And ended with. */
  additionsAtEnd: number;
  score: number;
}

/** The later among equals. One that says nothing is not better than one that says something, whatever its score. */
export function isBetter(one: Attempt, other: Attempt): boolean {
  const [hasText, otherHasText] = [!isBlank(one.inner.output), !isBlank(other.inner.output)];
  return hasText === otherHasText ? one.score >= other.score : hasText;
}
