import { endText, mediaUrl, outputValue, type AnswerEnd, type AnswerPart } from "../../../agents/index.ts";
import {
  parseAgentId,
  totalTokens,
  type AgentId,
  type JsonObject,
  type JsonValue,
  type TaskId,
  type ToolOutput,
  visibleText,
} from "../../../kernel/index.ts";

/** One event of AG-UI, protocol version 1.0. */
export type AgUiEvent = { readonly type: string } & { readonly [field: string]: JsonValue };

export interface AgUiOptions {
  readonly threadId: string;
  /** The id that the client gave the run. */
  readonly runId: string;
  readonly metadata: JsonObject;
  /** The messages of the client up to the answered one. Given if the client may already have parts of the answer. */
  readonly snapshot?: readonly JsonObject[] | undefined;
  /** Ids of tool calls for which the client has sent a result. */
  readonly answeredCalls: ReadonlySet<string>;
}

type QuestionsPart = Extract<AnswerPart, { readonly type: "waiting" }>;

/** A message that is being sent. */
interface OpenMessage {
  readonly messageId: string;
  readonly tag: JsonObject;
  openKind: "text" | "reasoning" | undefined;
  /** Number of reasoning messages. Used for their ids. */
  reasoned: number;
  /** Whether the next text belongs to a new attempt. */
  isReset: boolean;
  /** Whether a text has been sent. */
  hasText: boolean;
}

/**
 * Encodes an answer as AG-UI events. A new attempt of a model call continues its message after an empty line,
 * because AG-UI cannot withdraw a message.
 */
export class AgUiEncoder {
  readonly #options: AgUiOptions;
  readonly #messages = new Map<string, OpenMessage>();
  /** The sub-agents that have started in this stream, with whether they are active now. */
  readonly #subAgents = new Map<TaskId, { readonly agentId: AgentId; isActive: boolean }>();
  readonly #calls = new Set<string>();

  constructor(options: AgUiOptions) {
    this.#options = options;
  }

  opening(): readonly AgUiEvent[] {
    const { threadId, runId, metadata, snapshot } = this.#options;
    const started = { type: "RUN_STARTED", threadId, runId, protocolVersion: "1.0", metadata };
    return snapshot === undefined ? [started] : [started, { type: "MESSAGES_SNAPSHOT", messages: snapshot }];
  }

  encode(part: AnswerPart): readonly AgUiEvent[] {
    switch (part.type) {
      case "message_start":
        this.#open(part);
        return [];
      case "text":
      case "reasoning":
        return this.#delta(this.#open(part), part.type, part.text);
      case "message_reset":
        this.#open(part).isReset = true;
        return [];
      case "file":
        return [this.#file(part)];
      case "message_end": {
        const message = this.#messages.get(part.messageId);
        this.#messages.delete(part.messageId);
        return message === undefined ? [] : close(message);
      }
      case "tool_call":
        return this.#call(part);
      case "tool_result":
        return this.#result(part);
      case "agent_start":
        return part.handsOver ? [] : this.#startAgent(part);
      case "agent_end":
        return this.#endAgent(part);
      case "waiting":
        return [...this.#closeAll(part), this.#waiting(part)];
      case "end":
        return [...this.#closeAll(), this.#end(part)];
      case "tool_update":
      case "question":
      case "decision":
      case "user_message":
        return [];
    }
  }

  /** Returns the events that end a run whose answer cannot be read to its end. */
  failure(message: string, code: string): readonly AgUiEvent[] {
    return [{ type: "RUN_ERROR", message, code }];
  }

  #open({
    messageId,
    taskId,
    isAnswer,
  }: AnswerPart & {
    readonly messageId: string;
    readonly taskId: TaskId;
    readonly isAnswer: boolean;
  }): OpenMessage {
    const known = this.#messages.get(messageId);
    if (known !== undefined) return known;
    const tag = tagOf(taskId, isAnswer);
    const message: OpenMessage = {
      messageId,
      tag,
      openKind: undefined,
      reasoned: 0,
      isReset: false,
      hasText: false,
    };
    this.#messages.set(messageId, message);
    return message;
  }

  #delta(message: OpenMessage, kind: "text" | "reasoning", text: string): readonly AgUiEvent[] {
    const { tag } = message;
    const events: AgUiEvent[] = [];
    // Reasoning is a message of its own. The text of a message may continue after it.
    if (kind === "reasoning" && message.openKind !== "reasoning")
      events.push(...this.#startReasoning(message));
    if (kind === "text" && message.openKind === "reasoning") events.push(...endReasoning(message));
    if (kind === "reasoning") {
      events.push({
        type: "REASONING_MESSAGE_CONTENT",
        messageId: reasoningId(message),
        delta: text,
        ...tag,
      });
      return events;
    }
    const { messageId } = message;
    if (message.openKind === undefined) {
      events.push({ type: "TEXT_MESSAGE_START", messageId, role: "assistant", ...tag });
      message.openKind = "text";
    }
    const delta = message.isReset && message.hasText ? `\n\n${text}` : text;
    message.isReset = false;
    message.hasText = true;
    events.push({ type: "TEXT_MESSAGE_CONTENT", messageId, delta, ...tag });
    return events;
  }

  #startReasoning(message: OpenMessage): readonly AgUiEvent[] {
    const ended = message.openKind === "text" ? closeText(message) : [];
    message.reasoned++;
    message.openKind = "reasoning";
    const messageId = reasoningId(message);
    const { tag } = message;
    return [
      ...ended,
      { type: "REASONING_START", messageId, ...tag },
      { type: "REASONING_MESSAGE_START", messageId, role: "reasoning", ...tag },
    ];
  }

  #file({ file, taskId, isAnswer }: AnswerPart & { readonly type: "file" }): AgUiEvent {
    const { mediaType, source } = file;
    return {
      type: "CUSTOM",
      name: "file",
      value: { url: mediaUrl(source, mediaType), mediaType },
      ...tagOf(taskId, isAnswer),
    };
  }

  #call({
    callId,
    toolName,
    input,
    messageId,
    taskId,
    isAnswer,
  }: AnswerPart & { readonly type: "tool_call" }): readonly AgUiEvent[] {
    this.#calls.add(callId);
    const tag = tagOf(taskId, isAnswer);
    const of = { toolCallId: callId, ...tag };
    const parent = messageId === undefined ? {} : { parentMessageId: messageId };
    return [
      { type: "TOOL_CALL_START", toolCallName: toolName, ...parent, ...of },
      { type: "TOOL_CALL_ARGS", delta: JSON.stringify(input), ...of },
      { type: "TOOL_CALL_END", ...of },
    ];
  }

  /**
   * Returns the events for a tool result. For a call that the client has executed itself there are none, because
   * the client has already added the result.
   */
  #result({
    callId,
    result,
    taskId,
    isAnswer,
  }: AnswerPart & { readonly type: "tool_result" }): readonly AgUiEvent[] {
    if (this.#options.answeredCalls.has(callId)) return [];
    const tag = tagOf(taskId, isAnswer);
    const messageId = `${callId}:result`;
    const content = outputText(result.output);
    return [{ type: "TOOL_CALL_RESULT", messageId, toolCallId: callId, content, role: "tool", ...tag }];
  }

  #startAgent({
    taskId,
    agentId,
    parentId,
  }: {
    readonly taskId: TaskId;
    readonly agentId: AgentId;
    readonly parentId?: TaskId;
  }): readonly AgUiEvent[] {
    this.#subAgents.set(taskId, { agentId, isActive: true });
    const parent =
      parentId !== undefined && this.#subAgents.has(parentId) ? { parentSubagentRunId: parentId } : {};
    return [{ type: "SUBAGENT_STARTED", subagentRunId: taskId, name: parseAgentId(agentId).name, ...parent }];
  }

  /**
   * Returns the events for the end of a sub-agent. If the sub-agent was active when the client's last run ended, it
   * is first started again in this run.
   */
  #endAgent(part: AnswerPart & { readonly type: "agent_end" }): readonly AgUiEvent[] {
    const { taskId, status, output, failure } = part;
    const known = this.#subAgents.get(taskId);
    const started = known === undefined ? this.#startAgent(part) : [];
    const agent = this.#subAgents.get(taskId);
    if (agent !== undefined) agent.isActive = false;
    if (status === "completed")
      return [
        ...started,
        { type: "SUBAGENT_FINISHED", subagentRunId: taskId, result: output, outcome: { type: "success" } },
      ];
    const message = failure?.message ?? status;
    return [
      ...started,
      { type: "SUBAGENT_ERROR", subagentRunId: taskId, message, code: failure?.code ?? status },
    ];
  }

  /** Closes all open messages and calls, as AG-UI requires before a run may end. */
  #closeAll(waiting?: QuestionsPart): readonly AgUiEvent[] {
    const events = [...this.#messages.values()].flatMap((message) => close(message));
    this.#messages.clear();
    for (const [taskId, agent] of this.#subAgents) {
      if (!agent.isActive) continue;
      agent.isActive = false;
      const interruptIds = interruptsOf(waiting)
        .filter(({ taskId: of }) => of === taskId)
        .map(({ questionId }) => questionId);
      const outcome = { type: "suspended", ...(interruptIds.length > 0 && { interruptIds }) };
      events.push({ type: "SUBAGENT_FINISHED", subagentRunId: taskId, outcome });
    }
    return events;
  }

  /**
   * Returns the end of a run that waits. Questions to a person are interrupts. A run that only waits for tools of
   * the client is complete for AG-UI.
   */
  #waiting(part: QuestionsPart): AgUiEvent {
    const interrupts = interruptsOf(part).map((question) => {
      const { questionId, shownCallId, reason, kind, toolName, input, taskId, isAnswer } = question;
      return {
        id: questionId,
        reason: kind,
        message: visibleText(reason),
        ...(shownCallId !== null && { toolCallId: shownCallId }),
        responseSchema,
        metadata: { toolName, input },
        ...tagOf(taskId, isAnswer),
      };
    });
    if (interrupts.length > 0) return this.#finished({ type: "interrupt", interrupts });
    const pendingToolCallIds = part.questions.flatMap(({ shownCallId, questionId }) => {
      const callId = shownCallId ?? questionId;
      return this.#calls.has(callId) ? [callId] : [];
    });
    return this.#finished({ type: "success", pendingToolCallIds });
  }

  #end(end: AnswerEnd): AgUiEvent {
    const { inputTokens, outputTokens, reasoningTokens, cacheReadTokens, cacheWriteTokens } = end.usage;
    const usage = [
      {
        inputTokens,
        outputTokens,
        totalTokens: totalTokens(end.usage),
        reasoningTokens,
        cachedInputTokens: cacheReadTokens,
        cacheWriteInputTokens: cacheWriteTokens,
      },
    ];
    const { status, costUsd, turns } = end;
    const metadata = { ...this.#options.metadata, status, costUsd, turns };
    const message = endText(end);
    if (message !== null)
      return { type: "RUN_ERROR", message, code: end.failure?.code ?? status, usage, metadata };
    if (status === "cancelled") return { ...this.#finished({ type: "cancelled" }), usage, metadata };
    return { ...this.#finished({ type: "success" }), result: end.output, usage, metadata };
  }

  #finished(outcome: JsonObject): AgUiEvent {
    const { threadId, runId, metadata } = this.#options;
    return { type: "RUN_FINISHED", threadId, runId, outcome, metadata };
  }
}

/** The form of the answer to an interrupt. */
const responseSchema: JsonObject = {
  type: "object",
  properties: {
    approved: { type: "boolean" },
    reason: { type: "string" },
    input: { description: "With approved: replaces the arguments, or answers a question." },
  },
  required: ["approved"],
};

function interruptsOf(part: QuestionsPart | undefined): QuestionsPart["questions"] {
  return part?.questions.filter(({ kind }) => kind !== "client_tool") ?? [];
}

/** Returns a tag with the task id for the events of a sub-agent. */
function tagOf(taskId: TaskId, isAnswer: boolean): JsonObject {
  return isAnswer ? {} : { subagentRunId: taskId };
}

function reasoningId({ messageId, reasoned }: OpenMessage): string {
  return `${messageId}:reasoning-${reasoned}`;
}

function endReasoning(message: OpenMessage): readonly AgUiEvent[] {
  const messageId = reasoningId(message);
  message.openKind = undefined;
  return [
    { type: "REASONING_MESSAGE_END", messageId, ...message.tag },
    { type: "REASONING_END", messageId, ...message.tag },
  ];
}

function closeText(message: OpenMessage): readonly AgUiEvent[] {
  message.openKind = undefined;
  return [{ type: "TEXT_MESSAGE_END", messageId: message.messageId, ...message.tag }];
}

function close(message: OpenMessage): readonly AgUiEvent[] {
  if (message.openKind === undefined) return [];
  return message.openKind === "text" ? closeText(message) : endReasoning(message);
}

function outputText(output: ToolOutput): string {
  const value = outputValue(output);
  return typeof value === "string" ? value : JSON.stringify(value);
}
