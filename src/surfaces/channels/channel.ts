import type { Clock, JsonValue, MaybePromise, UserPart } from "../../kernel/index.ts";

/** A message of a person, as a channel received it. */
export interface IncomingMessage {
  /** Id of the message. Unique in its conversation: a repeated message has no further effect (N1). */
  readonly messageId: string;
  /** Id of the conversation, such as a chat. Answers go there. */
  readonly conversationId: string;
  /** Id of the sender, as the platform vouches for it. Never a name that the sender can choose. */
  readonly senderId: string;
  /** Name of the sender, for lists. It has no influence on access. */
  readonly senderName?: string;
  /**
   * Whether only the sender can read the conversation. Pairing codes are sent only in such conversations. Default:
   * `true`.
   */
  readonly isPrivate?: boolean;
  readonly text: string;
  /** References to files. `ChannelAdapter.attachment` loads them when the run is submitted. */
  readonly attachments?: readonly JsonValue[];
  /** Position in the conversation. Messages that wait are answered in this order. Default: the order of arrival. */
  readonly order?: number;
}

/** An answer to a question of a run, such as a pressed button. */
export interface IncomingDecision {
  readonly conversationId: string;
  readonly senderId: string;
  /** `data` of the chosen `Choice`, as the sender's program returned it. It is checked. */
  readonly data: string;
}

/** What became of a received message. */
export type Receipt =
  /** The message is stored. It will be answered even if this process dies. */
  | { readonly kind: "accepted" }
  /** The message was received before. */
  | { readonly kind: "duplicate" }
  /** The sender is unknown and was sent this text, which contains a pairing code. */
  | { readonly kind: "pairing"; readonly text: string }
  /** The message is dropped, with a line in the log. */
  | { readonly kind: "refused" };

/** The outcome of a decision, with a text for the person who made it. */
export interface DecisionReceipt {
  /**
   * `accepted`: the decision was applied. `late`: another answer was first. `refused`: the sender may not answer.
   * `unknown`: there is no such question, or its run has ended.
   */
  readonly kind: "accepted" | "late" | "refused" | "unknown";
  readonly text: string;
}

/** One of the answers that a question offers. */
export interface Choice {
  readonly label: string;
  /** At most 64 bytes of ASCII. The channel passes it to `ChannelPort.decide`. */
  readonly data: string;
}

/** One message to a conversation. */
export interface OutgoingMessage {
  /** Id of the delivery. A message that is sent again after a crash has the same id. */
  readonly deliveryId: string;
  readonly kind: "answer" | "question" | "notice" | "notification";
  readonly conversationId: string;
  readonly text: string;
  /** The message that this one answers. */
  readonly replyTo?: string;
  /** The run that the message is about. */
  readonly runId?: string;
  /** How the run ended. Only the kind `answer` has it. */
  readonly status?: string;
  /** Number of this piece, from 1, and the number of pieces of the text. */
  readonly piece: number;
  readonly pieces: number;
  /** The answers that a question offers. */
  readonly choices?: readonly Choice[];
  /** Facts for programs. Only the kind `notification` has them. */
  readonly data?: JsonValue;
}

/** The outcome of sending one message. */
export type SendOutcome =
  /** `ref` names the message for `closeQuestion`. */
  | { readonly kind: "sent"; readonly ref?: string }
  /** The message was not accepted and is sent again. Default of `afterMs`: a delay that grows with the attempts. */
  | { readonly kind: "retry"; readonly reason: string; readonly afterMs?: number }
  /** The message can never be delivered, for example because the person has blocked the bot. */
  | { readonly kind: "failed"; readonly reason: string };

/** Which message of which sender is meant. */
export type MessageName = Pick<IncomingMessage, "conversationId" | "messageId" | "senderId">;

/** The state of a message, for a channel that answers in its response. */
export interface MessageOutcome {
  readonly state: "queued" | "running" | "answered";
  readonly runId?: string;
  /** How the run ended, once it has. */
  readonly status?: string;
  /** The answer in its pieces, once there is one. */
  readonly texts: readonly string[];
  /**
   * The open questions of the run. If the run stopped at a limit and the sender may raise it, the offer of a top-up
   * is included.
   */
  readonly questions: readonly OpenQuestion[];
}

/** A question of a run that waits for an answer in this conversation. */
export interface OpenQuestion {
  readonly text: string;
  readonly choices: readonly Choice[];
}

/** The functions of its host that a channel uses. Each method resolves when its effect is durable. */
export interface ChannelPort {
  readonly clock: Clock;
  /** Stores a message, if its sender may write (N1, N3). */
  receive(message: IncomingMessage): Promise<Receipt>;
  /** Answers a question, if the sender may (N4). */
  decide(decision: IncomingDecision): Promise<DecisionReceipt>;
  /**
   * Returns the state of a message of a sender. It waits until the message is answered or a person is asked, or
   * until the signal aborts. `undefined` if the message is unknown, or belongs to another sender.
   */
  outcome(message: MessageName, signal: AbortSignal): Promise<MessageOutcome | undefined>;
  /** Whether `once` has stored an id. */
  hasSeen(id: string): Promise<boolean>;
  /** Stores an id for a time. Returns `false` if any process has already stored it. */
  once(id: string, forMs: number): Promise<boolean>;
  /** A value that the channel keeps, such as the position of its poll loop. */
  readCursor(): Promise<JsonValue | undefined>;
  writeCursor(value: JsonValue): Promise<void>;
  /** Writes one line to the log of the server. */
  log(line: string): void;
}

/**
 * A way in which people reach agents: a fetch handler, a poll loop, or both. Every channel passes `channelContract`
 * of `reeve/testing/contracts` together with its host, which checks:
 *
 * - N1 A message is answered once, however often and in whichever order it arrives: the id of its run follows from
 *   the ids of channel, conversation and message.
 * - N2 The messages of a session are answered one after the other, in the order of `order`. A message waits while
 *   an earlier one is being processed.
 * - N3 Only senders in the exact allow list or with a pairing reach an agent. The run has the user and the tenant
 *   of its sender. After a pairing is revoked, its sender is sent nothing more.
 * - N4 Only the user of a run answers its questions, in the conversation of the run. The first answer counts; the
 *   sender of a later one is informed.
 * - N5 An answer is delivered at least once, also if the process dies after the run has ended. A process that dies
 *   while it sends repeats at most the piece in flight of each conversation.
 * - N6 Of several processes on one store, one polls and sends. All of them receive.
 */
export interface ChannelAdapter {
  /** Unique name of the channel: 1 to 32 lower-case letters, digits and `-`, starting with a letter. */
  readonly name: string;
  /** The platform, such as `telegram`. It is the `channel` of the runs and selects the rules for their answers. */
  readonly platform: string;
  /** What is wrong with the id of a sender in an allow list. `undefined` if nothing is. Default: every text is valid. */
  senderProblem?(senderId: string): string | undefined;
  /** Cuts a text into pieces that `send` accepts. The same text must give the same pieces. Default: the text itself. */
  pieces?(text: string): readonly string[];
  /** Sends a message. A rejected promise counts as `retry`. */
  send(message: OutgoingMessage, signal: AbortSignal): Promise<SendOutcome>;
  /** Answers a request at `/channels/NAME`. The channel must authenticate it. A thrown `Fault` becomes an error response. */
  fetch?(request: Request, port: ChannelPort): Promise<Response>;
  /** Receives messages until the signal aborts. If it rejects, the host logs the error and calls it again later. */
  poll?(port: ChannelPort, signal: AbortSignal): Promise<void>;
  /** Prepares the platform before the first message, for example by registering the address of `fetch`. */
  start?(signal: AbortSignal): Promise<void>;
  /**
   * Shows that an answer is being prepared. Called at the start of a run and every few seconds. An error is
   * ignored.
   */
  showTyping?(conversationId: string, signal: AbortSignal): Promise<void>;
  /** Removes the choices of a question that is decided, and shows the decision. An error is ignored. */
  closeQuestion?(question: ClosedQuestion, signal: AbortSignal): Promise<void>;
  /** Loads a file of a message. */
  attachment?(reference: JsonValue, signal: AbortSignal): MaybePromise<UserPart>;
}

/** A question of a channel that is decided. */
export interface ClosedQuestion {
  readonly conversationId: string;
  /** `ref` of the sent question. */
  readonly ref: string;
  readonly text: string;
  /** How the question ended, as a text. */
  readonly decision: string;
}
