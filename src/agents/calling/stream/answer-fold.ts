import {
  AnsweringTasks,
  asksAboutCall,
  type ApprovalRequest,
  type AssistantMessage,
  type Delta,
  type Event,
  type RunId,
  type TaskId,
  messageText,
  rootTaskId,
  toolCallsOf,
} from "../../../kernel/index.ts";
import type { AnswerEnd, AnswerPart, WaitingQuestion } from "./answer-part.ts";
import { AnswerReader, unsaid, type AnswerChange } from "./answer-reader.ts";
import { TextStream } from "./text-stream.ts";

/** A tool call of a run. */
interface KnownCall {
  /** Unique in the store. */
  readonly callId: string;
  readonly toolName: string;
  isEnded: boolean;
  /** Id of the question about the call: the open one, or otherwise the last one. */
  approvalId?: string;
  /** Whether a person denied or skipped the call. */
  isRefused: boolean;
}

/** The task that makes a call. */
interface CallingTask {
  readonly runId: RunId;
  readonly taskId: TaskId;
}

/**
 * The tool calls of a run, with ids that are unique in the store. J2: providers use the same id for several calls,
 * so that an id here starts with the run's id, and a repeated id gets a suffix.
 */
class KnownCalls {
  readonly #ids = new Set<string>();
  readonly #calls = new Map<string, KnownCall[]>();

  add({ runId, taskId }: CallingTask, callId: string, toolName: string): KnownCall {
    const first = `${runId}/${callId}`;
    let unique = first;
    for (let count = 2; this.#ids.has(unique); count++) unique = `${first}~${count}`;
    this.#ids.add(unique);
    const call: KnownCall = { callId: unique, toolName, isEnded: false, isRefused: false };
    const key = `${taskId} ${callId}`;
    const known = this.#calls.get(key);
    if (known === undefined) this.#calls.set(key, [call]);
    else known.push(call);
    return call;
  }

  /** Returns the first call of a task with a provider's id that has not ended. */
  open(taskId: TaskId, callId: string): KnownCall | undefined {
    return this.#calls.get(`${taskId} ${callId}`)?.find(({ isEnded }) => !isEnded);
  }

  /**
   * Returns the call of a task about which a question is asked: the first one without a question, or else the last
   * one.
   */
  asked(taskId: TaskId, callId: string): KnownCall | undefined {
    const open = this.#calls.get(`${taskId} ${callId}`)?.filter(({ isEnded }) => !isEnded) ?? [];
    return open.find(({ approvalId }) => approvalId === undefined) ?? open.at(-1);
  }
}

/** A message that a task is writing. */
interface OpenMessage {
  readonly seq: number;
  readonly messageId: string;
  /** Number of characters of reasoning that were shown. */
  reasoned: number;
  /** Whether any part of the message was shown. */
  isShown: boolean;
}

/** A text as the model wrote it, and as `AgentStream.text` yields it. */
interface SaidText {
  readonly text: string;
  readonly piece: string;
}

const nothing: SaidText = { text: "", piece: "" };

/** A question that has no answer yet. */
interface OpenQuestion {
  readonly questionId: string;
  readonly request: ApprovalRequest;
  readonly call: KnownCall | undefined;
  readonly taskId: TaskId;
  readonly isAnswer: boolean;
}

/** Options of `AnswerFold`. */
export interface AnswerFoldOptions {
  /**
   * Whether the messages, tool calls and tasks of sub-agents are included. Their messages are not streamed; each appears as
   * a whole. Default: `false`.
   */
  readonly subAgents?: boolean;
}

/**
 * Converts the events and deltas of a run to the parts that clients show. Pass them in order, from the first event
 * on.
 */
export class AnswerFold {
  readonly #subAgents: boolean;
  readonly #answering = new AnsweringTasks();
  readonly #reader = new AnswerReader();
  #text = new TextStream();
  readonly #calls = new KnownCalls();
  readonly #open = new Map<TaskId, OpenMessage>();
  readonly #questions = new Map<string, OpenQuestion>();
  /** Tasks of sub-agents that have started, and whether they have ended. */
  readonly #agents = new Map<TaskId, boolean>();
  #rootEnd: Event<"task_end"> | undefined;
  #carriedOverTo: RunId | null = null;

  constructor({ subAgents = false }: AnswerFoldOptions = {}) {
    this.#subAgents = subAgents;
  }

  /** The questions without an answer, in the order in which the run asked them. */
  get openQuestions(): readonly WaitingQuestion[] {
    return [...this.#questions.values()].map(({ questionId, request, call, taskId, isAnswer }) => ({
      ...request,
      questionId,
      taskId,
      isAnswer,
      shownCallId: call?.callId ?? null,
    }));
  }

  get hasOpenQuestions(): boolean {
    return this.#questions.size > 0;
  }

  /** Resets the text, so that the next text counts as the first one, with no empty line before it. */
  startText(): void {
    this.#text = new TextStream();
  }

  read(part: Event | Delta): readonly AnswerPart[] {
    const isAnswer = this.#answering.includes(part);
    const change = this.#reader.read(part);
    if ("seq" in part) {
      if (part.type === "task_end" && part.taskId === rootTaskId) this.#rootEnd = part;
      return this.#readEvent(part, isAnswer, this.#said(change));
    }
    if (part.type === "tool_execution_update") return this.#update(part, isAnswer);
    const message = isAnswer ? this.#open.get(part.taskId) : undefined;
    if (message?.seq !== part.messageSeq) return [];
    const of = { taskId: part.taskId, isAnswer, messageId: message.messageId };
    if (part.type === "message_reset") {
      if (change !== undefined) this.#text.add(change);
      if (!message.isShown) return [];
      Object.assign(message, { reasoned: 0, isShown: false });
      return [{ ...of, type: "message_reset" }];
    }
    if (part.kind === "reasoning") return this.#reason(message, of, part);
    const said = this.#said(change);
    if (said.text === "") return [];
    message.isShown = true;
    return [{ ...of, type: "text", ...said }];
  }

  /** The text that a change adds to the answer. */
  #said(change: AnswerChange | undefined): SaidText {
    if (change === undefined || change.type === "reset") return nothing;
    return { text: change.type === "text" ? change.text : unsaid(change), piece: this.#text.add(change) };
  }

  #readEvent(event: Event, isAnswer: boolean, said: SaidText): readonly AnswerPart[] {
    const { taskId } = event;
    switch (event.type) {
      case "spawn_start":
      case "spawn_wait":
        return this.#startAgent(event);
      case "run_carry_over":
        this.#carriedOverTo = event.data.runId;
        return [];
      case "approval_request":
        return this.#ask(event, isAnswer);
      case "approval_decision":
        return this.#decide(event, isAnswer);
      case "task_end":
        return taskId === rootTaskId ? this.#sayOutput(event, said) : this.#endAgent(event);
      default:
        return isAnswer || this.#subAgents ? this.#readTask(event, isAnswer, said) : [];
    }
  }

  /** Reads an event of a task whose messages and calls are shown. */
  #readTask(event: Event, isAnswer: boolean, said: SaidText): readonly AnswerPart[] {
    const { taskId, seq, runId } = event;
    const of = { taskId, isAnswer };
    switch (event.type) {
      case "message_start": {
        if (!this.#answering.isSpoken(event)) return [];
        const messageId = `${runId}:${seq}`;
        this.#open.set(taskId, { seq, messageId, reasoned: 0, isShown: false });
        return [{ ...of, type: "message_start", messageId }];
      }
      case "message_end":
        return this.#endMessage(event, isAnswer, said);
      case "tool_execution_start": {
        const { callId, toolName, input } = event.data;
        if (this.#calls.open(taskId, callId) !== undefined) return [];
        const call = this.#calls.add(event, callId, toolName);
        return [{ ...of, type: "tool_call", callId: call.callId, toolName, input }];
      }
      case "tool_execution_end":
        return this.#endCall(event, isAnswer);
      case "user_message":
        return isFromCaller(event) ? [{ ...of, type: "user_message", message: event.data.message, seq }] : [];
      default:
        return [];
    }
  }

  #reason(
    message: OpenMessage,
    of: { readonly taskId: TaskId; readonly isAnswer: boolean; readonly messageId: string },
    { offset, text }: Delta & { readonly type: "message_update" },
  ): readonly AnswerPart[] {
    const added = text.slice(Math.max(0, message.reasoned - offset));
    if (added === "" || offset > message.reasoned) return [];
    message.reasoned += added.length;
    message.isShown = true;
    return [{ ...of, type: "reasoning", text: added }];
  }

  #endMessage(
    { taskId, data, seq, runId, ...event }: Event<"message_end">,
    isAnswer: boolean,
    said: SaidText,
  ): readonly AnswerPart[] {
    const { message } = data;
    if (message.role !== "assistant") return [];
    const open = this.#open.get(taskId);
    const isSpoken = this.#answering.isSpoken({ ...event, taskId, data, seq, runId });
    const parts: AnswerPart[] = [];
    const messageId = open?.messageId ?? `${runId}:${seq}`;
    if (isSpoken) {
      this.#open.delete(taskId);
      const of = { taskId, isAnswer, messageId };
      if (open === undefined) parts.push({ ...of, type: "message_start" });
      const reasoning = reasoningOf(message).slice(open?.reasoned ?? 0);
      if (reasoning !== "") parts.push({ ...of, type: "reasoning", text: reasoning });
      const added = isAnswer ? said : { text: messageText(message), piece: "" };
      if (added.text !== "") parts.push({ ...of, type: "text", ...added });
      for (const file of message.content) if (file.type === "file") parts.push({ ...of, type: "file", file });
      parts.push({ ...of, type: "message_end" });
    }
    for (const { callId, toolName, input } of toolCallsOf(message)) {
      const call = this.#calls.add({ runId, taskId }, callId, toolName);
      const from = isSpoken ? { messageId } : {};
      parts.push({ type: "tool_call", taskId, isAnswer, callId: call.callId, toolName, input, ...from });
    }
    return parts;
  }

  #endCall({ runId, taskId, data }: Event<"tool_execution_end">, isAnswer: boolean): readonly AnswerPart[] {
    const { callId, toolName, result } = data;
    const known = this.#calls.open(taskId, callId);
    const call = known ?? this.#calls.add({ runId, taskId }, callId, toolName);
    call.isEnded = true;
    const { status = result.isError ? "error" : "ok" } = data;
    const of = { taskId, isAnswer, callId: call.callId, toolName };
    const ended: AnswerPart = { ...of, type: "tool_result", result, status, isRefused: call.isRefused };
    return known === undefined ? [{ ...of, type: "tool_call", input: null }, ended] : [ended];
  }

  #update(
    { taskId, callId, update }: Delta & { readonly type: "tool_execution_update" },
    isAnswer: boolean,
  ): readonly AnswerPart[] {
    const call = isAnswer || this.#subAgents ? this.#calls.open(taskId, callId) : undefined;
    if (call === undefined) return [];
    const { toolName } = call;
    return [{ type: "tool_update", taskId, isAnswer, callId: call.callId, toolName, update }];
  }

  #ask(
    { runId, taskId, data: request }: Event<"approval_request">,
    isAnswer: boolean,
  ): readonly AnswerPart[] {
    const isAboutCall = asksAboutCall(request) || request.kind === "client_tool";
    const isShown = isAboutCall && (isAnswer || this.#subAgents);
    const call = isShown ? this.#calls.asked(taskId, request.callId) : undefined;
    if (call !== undefined) call.approvalId = request.approvalId;
    const questionId = `${runId}/${request.approvalId}`;
    this.#questions.set(request.approvalId, { questionId, request, call, taskId, isAnswer });
    return [{ type: "question", taskId, isAnswer, callId: call?.callId ?? null, questionId, request }];
  }

  #decide({ taskId, data }: Event<"approval_decision">, isAnswer: boolean): readonly AnswerPart[] {
    const question = this.#questions.get(data.approvalId);
    if (question === undefined) return [];
    this.#questions.delete(data.approvalId);
    const { questionId, request, call } = question;
    const { decision } = data;
    if (call !== undefined && asksAboutCall(request)) call.isRefused = decision.decision !== "approved";
    const of = { taskId, isAnswer, callId: call?.callId ?? null, questionId };
    return [{ ...of, type: "decision", request, decision }];
  }

  #startAgent({ taskId, data }: Event<"spawn_start" | "spawn_wait">): readonly AnswerPart[] {
    const { childTaskId, agentId, handsOver = false } = data;
    if (!this.#subAgents || this.#agents.has(childTaskId)) return [];
    this.#agents.set(childTaskId, false);
    return [{ type: "agent_start", taskId: childTaskId, agentId, parentId: taskId, handsOver }];
  }

  #endAgent({ taskId, agentId, data }: Event<"task_end">): readonly AnswerPart[] {
    if (this.#agents.get(taskId) !== false) return [];
    this.#agents.set(taskId, true);
    const { status, output = null, failure = null } = data;
    return [{ type: "agent_end", taskId, agentId, status, output, failure }];
  }

  /** Yields the output of the run as text if no message has contained it. */
  #sayOutput({ runId, taskId, seq }: Event<"task_end">, said: SaidText): readonly AnswerPart[] {
    if (said.text === "") return [];
    const of = { taskId, isAnswer: true, messageId: `${runId}:${seq}` };
    return [
      { ...of, type: "message_start" },
      { ...of, type: "text", ...said },
      { ...of, type: "message_end" },
    ];
  }

  /** Returns how the run has ended, from its event `run_end`. */
  end({ data }: Event<"run_end">): AnswerEnd {
    const { status, usage, costUsd, turns } = data;
    const { output = null, failure = null, finishReason = null, interruption } = this.#rootEnd?.data ?? {};
    const reason = status === "completed" ? null : (interruption?.reason ?? failure?.message ?? null);
    const carriedOverTo = this.#carriedOverTo;
    return {
      type: "end",
      status,
      usage,
      costUsd,
      turns,
      output,
      failure,
      finishReason,
      reason,
      carriedOverTo,
    };
  }
}

function isFromCaller({ data: { source } }: Event<"user_message">): boolean {
  return source === "steering" || source === "follow_up";
}

function reasoningOf({ content }: AssistantMessage): string {
  let text = "";
  for (const part of content) if (part.type === "reasoning") text += part.text;
  return text;
}
