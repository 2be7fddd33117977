import type {
  AgentId,
  ApprovalDecision,
  ApprovalRequest,
  EventData,
  Failure,
  FilePart,
  FinishReason,
  JsonValue,
  RunId,
  RunStatus,
  TaskId,
  ToolResult,
  UserMessage,
} from "../../../kernel/index.ts";

interface PartOfTask {
  readonly taskId: TaskId;
  /** Whether the messages of the task are part of the run's answer. `false` only for tasks of sub-agents. */
  readonly isAnswer: boolean;
}

/** A part of a message. `messageId` is unique in the store and the same for every reader. */
interface PartOfMessage extends PartOfTask {
  readonly messageId: string;
}

/**
 * A part about a tool call. `callId` is unique in the store and the same for every reader. It starts with the id of
 * the run. If a provider uses the same id for several calls, each further one has a suffix.
 */
interface PartOfCall extends PartOfTask {
  readonly callId: string;
  readonly toolName: string;
}

/**
 * A part about a question. `questionId` contains the ids of the run and of the approval, so that it is unique in
 * the store.
 */
interface PartOfQuestion extends PartOfTask {
  readonly questionId: string;
  readonly request: ApprovalRequest;
}

/**
 * What a client of a chat protocol shows of a run. All protocols encode these parts, so that they show the same as
 * `AgentStream.text`.
 */
export type AnswerPart =
  /** A message starts. The parts of one message are not mixed with those of another message of the same task. */
  | (PartOfMessage & { readonly type: "message_start" })
  /**
   * A piece of the text of a message. `piece` is what `AgentStream.text` yields. It is the text, with an empty line
   * before it if the reader has received text of another message or of an earlier attempt. It is empty if the
   * task's messages are not part of the answer.
   */
  | (PartOfMessage & { readonly type: "text"; readonly text: string; readonly piece: string })
  | (PartOfMessage & { readonly type: "reasoning"; readonly text: string })
  /**
   * All pieces of the message are invalid, because a new attempt starts it again. There is no second
   * `message_start`.
   */
  | (PartOfMessage & { readonly type: "message_reset" })
  | (PartOfMessage & { readonly type: "file"; readonly file: FilePart })
  | (PartOfMessage & { readonly type: "message_end" })
  /**
   * A model, or code of the agent, calls a tool. `messageId` is the message that contains the call, if there is
   * one.
   */
  | (PartOfCall & { readonly type: "tool_call"; readonly input: JsonValue; readonly messageId?: string })
  | (PartOfCall & { readonly type: "tool_update"; readonly update: JsonValue })
  | (PartOfCall & {
      readonly type: "tool_result";
      readonly result: ToolResult;
      readonly status: "ok" | "error" | "denied";
      /** Whether a person denied or skipped the call. */
      readonly isRefused: boolean;
    })
  /**
   * A person is asked, or a client-side tool is called. `callId` is the call of an earlier `tool_call` part that
   * the person may permit or the client executes. It is `null` if there was no such part, because code asks the
   * question, or a sub-agent that is not shown.
   */
  | (PartOfQuestion & { readonly type: "question"; readonly callId: string | null })
  | (PartOfQuestion & {
      readonly type: "decision";
      readonly callId: string | null;
      readonly decision: ApprovalDecision;
    })
  /** A user message that was added during the run, such as steering. */
  | (PartOfTask & { readonly type: "user_message"; readonly message: UserMessage; readonly seq: number })
  /** A task of a sub-agent starts. */
  | {
      readonly type: "agent_start";
      readonly taskId: TaskId;
      readonly agentId: AgentId;
      readonly parentId: TaskId;
      readonly handsOver: boolean;
    }
  | {
      readonly type: "agent_end";
      readonly taskId: TaskId;
      readonly agentId: AgentId;
      readonly status: RunStatus;
      readonly output: JsonValue;
      readonly failure: Failure | null;
    }
  /** The run cannot continue without answers to these questions. It is then the last part of the stream. */
  | { readonly type: "waiting"; readonly questions: readonly WaitingQuestion[] }
  /** The run has ended. The last part. */
  | AnswerEnd;

/** A question without an answer. */
export interface WaitingQuestion extends ApprovalRequest, PartOfTask {
  /** The `questionId` of the question's part. */
  readonly questionId: string;
  /** The `callId` of the question's part. */
  readonly shownCallId: string | null;
}

/** How a run has ended. `usage`, `costUsd` and `turns` cover all its tasks. */
export interface AnswerEnd extends Omit<EventData["run_end"], "lost"> {
  readonly type: "end";
  readonly output: JsonValue;
  readonly failure: Failure | null;
  readonly finishReason: FinishReason | null;
  /** Why the run did not complete. `null` for a completed run. */
  readonly reason: string | null;
  /** S5: the run that answers input which this run has not read. `null` if this run has read all input. */
  readonly carriedOverTo: RunId | null;
}
