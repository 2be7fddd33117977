import {
  assistantMessage,
  interruptedMessage,
  isInterruptedMessage,
  toolCallsOf,
  toolMessage,
  toolResultPart,
  type AgentSession,
  type ChatMessage,
  type InterruptedStatus,
  type ToolResult,
  type Transcript,
} from "../../kernel/index.ts";

/** Why calls have no result, and which calls of the last message already had one when the invocation was stopped. */
export interface Stopped extends Pick<AgentSession, "settled"> {
  readonly reason: string;
  /** Id of the call whose tool had already been executed when the invocation was stopped. */
  readonly performed?: string | undefined;
}

/** How an invocation was interrupted. */
export interface InterruptedEnd extends Stopped {
  readonly status: InterruptedStatus;
  /** The guardrail or middleware that stopped the invocation. */
  readonly by?: string | undefined;
  /** Whether a guardrail checks outputs and has not checked the last text. */
  readonly isUnchecked: boolean;
}

/**
 * S1: returns the messages of an interrupted invocation in the form that its session stores. Open calls get a
 * result, and one text at the end says that the invocation was interrupted. If an output guardrail has not checked
 * the last text, this text is left out.
 */
export function interruptedEnd(
  messages: readonly ChatMessage[],
  { status, by, isUnchecked, ...stopped }: InterruptedEnd,
): readonly ChatMessage[] {
  const last = messages.at(-1);
  const results = unanswered(last, stopped);
  if (results !== undefined) return [...messages, results, interruptedMessage(status, { by })];
  if (last?.role !== "assistant") return [...messages, interruptedMessage(status, { by })];
  const said = isUnchecked ? { ...last, content: [] } : last;
  return [...messages.slice(0, -1), interruptedMessage(status, { by, said })];
}

/**
 * S1: returns results for the calls of a message that have none, because a call without a result must never be
 * visible. For a call that was executed, the result does not say that it was not executed, because the model would
 * repeat it.
 */
export function unanswered(
  last: ChatMessage | undefined,
  { reason, settled, performed }: Stopped,
): ChatMessage | undefined {
  if (last?.role !== "assistant") return undefined;
  const calls = toolCallsOf(last);
  if (calls.length === 0) return undefined;
  const without = ({ callId }: { readonly callId: string }): ToolResult => ({
    output: { type: "text", text: `[${callId === performed ? "withheld" : "not executed"}: ${reason}]` },
    isError: true,
  });
  return toolMessage(calls.map((call, index) => toolResultPart(call, settled[index] ?? without(call))));
}

/**
 * Returns the conversation for an answer that middleware gave without running the agent, or after the agent failed.
 * `asked` is the user's message if the conversation does not contain it.
 */
export function answeredInPlace(
  { messages, settled }: AgentSession,
  asked: ChatMessage | undefined,
  answer: string,
): Transcript {
  const open = unanswered(messages.at(-1), { reason: "answered in its place", settled });
  const added = [asked, open, assistantMessage(answer)];
  return messages.append(...added.filter((message) => message !== undefined));
}

/**
 * Returns the conversation that an invocation without a new message continues. Texts of interrupted invocations at
 * its end are removed, because the model makes the interrupted turn again.
 */
export function beforeInterruption(history: Transcript): Transcript {
  let end = history.length;
  while (end > 0 && isInterruptedMessage(history.at(end - 1) as ChatMessage)) end--;
  return end === history.length ? history : history.upTo(end);
}
