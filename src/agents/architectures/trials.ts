import { messageText, type AgentSession, type ChatMessage, type Transcript } from "../../kernel/index.ts";
import { opening } from "../agent-input.ts";
import { adopt } from "./drive.ts";
import type { Question } from "./question.ts";
import { isSilent } from "./spoken-answer.ts";
import { additionsTo } from "./user-additions.ts";

/** What is tried again and again, each time in a session of its own that begins with what was said before. */
export class Trials {
  readonly #question: Question;
  readonly #before: Transcript;
  /** What the user added, to whichever attempt. */
  readonly #heard: ChatMessage[] = [];

  constructor(question: Question, before: Transcript) {
    this.#question = question;
    this.#before = before;
  }

  /** As the next attempt is told it. */
  get task(): string {
    return [this.#question.prompt, ...this.#heard.map(messageText)].join("\n\n");
  }

  begin(inner: AgentSession): Attempt {
    inner.messages = this.#before;
    inner.attachments = this.#question.attachments;
    return { inner, knew: this.#heard.length, knows: this.#heard.length, score: 0 };
  }

  /** However it ended. */
  end(attempt: Attempt): void {
    this.#heard.push(...additionsTo(attempt.inner, this.#before.length));
    attempt.knows = this.#heard.length;
  }

  /** What it said and came to is the invocation's. What the user said to other attempts is there too, as it was said. */
  adopt(session: AgentSession, { inner, knew, knows }: Attempt): void {
    adopt(session, inner);
    if (this.#heard.length === 0) return;
    const { prompt, attachments } = this.#question;
    session.messages = this.#before.append(
      opening(prompt, attachments),
      ...this.#heard.slice(0, knew),
      ...inner.messages.slice(this.#before.length + 1),
      ...this.#heard.slice(knows),
    );
  }
}

export interface Attempt {
  readonly inner: AgentSession;
  /** How much of what the user added it began with. */
  readonly knew: number;
  /** And ended with. */
  knows: number;
  score: number;
}

/** The later among equals. One that says nothing is not better than one that says something, whatever its score. */
export function isBetter(one: Attempt, other: Attempt): boolean {
  const [hasWords, hadWords] = [!isSilent(one.inner.output), !isSilent(other.inner.output)];
  return hasWords === hadWords ? one.score >= other.score : hasWords;
}
