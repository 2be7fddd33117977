import { describeValue } from "../base/describe-value.ts";
import { Fault } from "../base/fault.ts";
import type { UserPart } from "../messages/content.ts";
import type { SessionId } from "../base/identity.ts";
import type { JsonValue } from "../base/json-value.ts";
import { readProperty } from "../base/read-property.ts";
import type { ToolResult } from "../messages/tool-call.ts";
import { ReplyReasons } from "../messages/llm-reply.ts";
import { Transcript } from "../messages/transcript.ts";
import { noUsage, type Usage } from "../messages/usage.ts";

/**
 * The mutable state of one invocation. The architecture writes it while it runs; the agent reads the result from it. It
 * is not stored: a replay rebuilds it from the journal.
 */
export interface AgentSession {
  /**
   * Id of the session that the invocation continues. For a worker, which is an agent started by this one, it is
   * derived from the id of the parent's session.
   */
  readonly id: SessionId;
  /** The system prompt of this session. */
  readonly instructions: string;
  /**
   * The conversation so far, without the system prompt. A value of another type is refused: use `messages.append(message)`
   * or `Transcript.of(list)`.
   */
  messages: Transcript;
  /**
   * Content parts of an input that is more than one plain text, in order and including its texts. The first prompt
   * contains these parts; after that the list is empty.
   */
  attachments: readonly UserPart[];
  /**
   * Results of the tool calls in the last message, by position, while a batch of calls runs. `undefined` marks a call
   * without a result. Empty between turns.
   */
  settled: readonly (ToolResult | undefined)[];
  /** Number of turns that the loop has completed. */
  turns: number;
  /** The answer so far. */
  output: string;
  /**
   * Finish reasons of the model's replies in this session. The finish reason of the run is that of the reply with
   * the answer.
   */
  readonly replies: ReplyReasons;
  /** Usage of all model calls of this session. */
  cumulativeUsage: Usage;
  /**
   * Number of tokens that the provider counted for the last model call whose request contained the whole
   * conversation, including the answer, and the number of messages that these tokens cover. `null` if no such call
   * was made.
   */
  reported: { readonly tokens: number; readonly messages: number } | null;
  /** Whether the architecture stopped before it had an answer. */
  interrupted: boolean;
  /**
   * Why the architecture stopped early; `null` if it did not. The reason `max_output` gives the run the status
   * `max_output`. Any other reason that starts with `max_` is a limit and gives the status `max_turns`; any other reason
   * gives the status `failed`.
   */
  interruptionReason: string | null;
  /** Data of the architecture, such as plans and hand-offs, by key. */
  readonly metadata: Record<string, JsonValue>;
}

/** Creates the state of a new invocation: no output, no turns and no usage. */
export function agentSession(
  fields: Pick<AgentSession, "id" | "instructions"> & Partial<Pick<AgentSession, "messages" | "attachments">>,
): AgentSession {
  const { messages: first = Transcript.empty, ...others } = fields;
  let messages = first;
  return {
    get messages() {
      return messages;
    },
    set messages(value: Transcript) {
      messages = requireTranscript(value);
    },
    attachments: [],
    settled: [],
    turns: 0,
    output: "",
    replies: new ReplyReasons(),
    cumulativeUsage: noUsage,
    reported: null,
    interrupted: false,
    interruptionReason: null,
    metadata: {},
    ...others,
  };
}

/**
 * Refuses a list of messages. It compares the form and not the class, because code may use another copy of this
 * package.
 */
function requireTranscript(value: Transcript): Transcript {
  if (value instanceof Transcript) return value;
  if (typeof readProperty(value, "append") === "function") return value;
  throw new Fault(
    "invalid_argument",
    `invalid session.messages: expected a Transcript, not ${describeValue(value)}; use session.messages.append(message), or Transcript.of(messages) for a new list`,
  );
}
