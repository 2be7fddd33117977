import {
  agentSession,
  assistantMessage,
  jsonText,
  type AgentSession,
  type ChatMessage,
  type FinishReason,
  type HostedAgent,
  type JsonValue,
  type SessionId,
  type Transcript,
  type Turn,
} from "../../kernel/index.ts";
import { openings, type ReadInput } from "../base/agent-input.ts";
import { isBlank } from "../base/answer-text.ts";
import { withAnswer } from "../interception/guardrails/guarded-run.ts";
import { outputWithAnswers } from "../team/handed-answers.ts";
import { answeredInPlace, beforeInterruption } from "../base/interrupted-end.ts";
import { OpenSessions } from "../context/prompt-history.ts";

export interface ConversationOptions {
  readonly agent: HostedAgent;
  readonly sessionId: SessionId;
  readonly input: ReadInput;
  readonly turn: Turn;
}

/**
 * The conversation of one invocation: the messages before it, and those that its rounds have added. The first round
 * has the prompt of the caller; each stop hook that continues the invocation starts another round.
 */
export class InvocationConversation {
  readonly sessions = new OpenSessions();
  /** The conversation before this invocation, as its model sees it. */
  readonly history: Transcript;
  readonly #options: ConversationOptions;
  #session: AgentSession;
  #prompt: string;
  /** Number of messages before the current round. */
  #roundFrom: number;
  /** The last answer of earlier rounds. */
  #earlierOutput = "";

  constructor(options: ConversationOptions) {
    const { input, turn } = options;
    this.#options = options;
    this.history = input.message === undefined ? beforeInterruption(turn.history) : turn.history;
    this.#session = this.#begin();
    this.#prompt = input.prompt;
    this.#roundFrom = this.history.length;
  }

  get session(): AgentSession {
    return this.#session;
  }

  get prompt(): string {
    return this.#prompt;
  }

  /**
   * The answer so far. If a round has no answer, the answer of the previous round stays. The session gets only the
   * answer of this round.
   */
  get output(): string {
    const { output } = this.#session;
    return isBlank(output) ? this.#earlierOutput || output : output;
  }

  /** B5: the answer so far, with the answers of children that came after it. */
  get stoppedOutput(): string {
    return outputWithAnswers(this.output, this.#options.agent, this.#session, this.history.length);
  }

  /** Why the model stopped in the call that gave the answer so far. `null` if no model gave it. */
  get finishReason(): FinishReason | null {
    return this.#session.replies.reasonOf(this.output);
  }

  /** The messages that the invocation has added to the history. */
  get added(): readonly ChatMessage[] {
    return this.#session.messages.slice(this.history.length);
  }

  /** Whether texts of interrupted invocations at the end of the session were left out of the history. */
  get omitsInterruption(): boolean {
    return this.history.length < this.#options.turn.history.length;
  }

  /** Starts again with the history. Middleware may run the agent several times, each time with a new conversation. */
  restart(): void {
    this.#session = this.#begin();
    this.#prompt = this.#options.input.prompt;
    this.#roundFrom = this.history.length;
    this.#earlierOutput = "";
  }

  startRound(prompt: string): void {
    this.#prompt = prompt;
    this.#roundFrom = this.#session.messages.length;
    this.#earlierOutput = this.output;
    this.#session.output = "";
  }

  /** Adds the question and the answer of the round for an architecture that added no messages itself. */
  completeRound(answer: string = this.#session.output): void {
    const session = this.#session;
    if (session.messages.length === this.#roundFrom)
      session.messages = session.messages.append(...openings(this.#prompt, session.attachments));
    if (answer !== "" && !this.#isAnswered)
      session.messages = session.messages.append(assistantMessage(answer));
    session.attachments = none;
  }

  /** S1: keeps the part of an interrupted answer that readers have received, as output and in the session. */
  keepPartial(partial: string): void {
    const session = this.#session;
    session.output = partial;
    this.completeRound();
    if (session.messages.at(-1)?.role !== "assistant")
      session.messages = session.messages.append(assistantMessage(partial));
  }

  /** Makes the output that middleware returned the answer. `own` is the output of the agent itself, if it ran. */
  adopt(output: JsonValue, own: { readonly output: JsonValue } | undefined): void {
    const session = this.#session;
    const answer = jsonText(output);
    if (own === undefined) {
      const { message } = this.#options.input;
      const asked = session.messages.length === this.history.length ? message : undefined;
      session.messages = answeredInPlace(session, asked, answer);
      return;
    }
    const isOwn = output === own.output;
    this.completeRound(isOwn && isBlank(session.output) ? "" : answer);
    if (!isOwn) this.replaceAnswer(answer);
  }

  replaceAnswer(answer: string): void {
    this.#session.messages = withAnswer(this.#session.messages, answer);
  }

  #begin(): AgentSession {
    const { sessionId: id, turn, input } = this.#options;
    const { instructions } = turn;
    const { attachments } = input;
    return this.sessions.add(agentSession({ id, instructions, messages: this.history, attachments }));
  }

  /** Whether the round contains an answer. The last message is checked first, because it usually is the answer. */
  get #isAnswered(): boolean {
    const { messages } = this.#session;
    for (let index = messages.length - 1; index >= this.#roundFrom; index--)
      if (messages.at(index)?.role === "assistant") return true;
    return false;
  }
}

const none: readonly never[] = [];
