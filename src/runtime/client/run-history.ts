import {
  AnsweringTasks,
  assistantMessage,
  deepFreeze,
  messageText,
  toolCallsOf,
  toolMessage,
  toolResultPart,
  type AssistantMessage,
  type Event,
  type FilePart,
  type JsonValue,
  type RunResult,
  type RunStep,
  type RunToolCall,
  type ToolCallPart,
  type UserMessage,
} from "../../kernel/index.ts";

type Writable<Value> = { -readonly [Key in keyof Value]: Value[Key] };

interface OpenStep extends Omit<RunStep, "toolCalls"> {
  readonly toolCalls: Writable<RunToolCall>[];
}

interface Fold extends Pick<RunResult, "steps" | "toolCalls"> {
  /** The steps and the user messages of the conversation, in order. */
  readonly conversation: readonly (RunStep | UserMessage)[];
}

/** The conversation of a run, computed from its events when it is first read. */
export class RunHistory {
  readonly #read: () => readonly Event[];
  readonly #output: JsonValue;
  #fold: Fold | undefined;
  #messages: RunResult["messages"] | undefined;

  /** `read` returns the events of the run. `output` is the answer of the run. */
  constructor(read: () => readonly Event[], output: JsonValue) {
    this.#read = read;
    this.#output = output;
  }

  get steps(): readonly RunStep[] {
    return this.#folded.steps;
  }

  get toolCalls(): readonly RunToolCall[] {
    return this.#folded.toolCalls;
  }

  get messages(): RunResult["messages"] {
    return (this.#messages ??= deepFreeze(messagesOf(this.#folded.conversation, this.#output)));
  }

  get reasoning(): string {
    return this.#spokenSteps
      .map(({ reasoning }) => reasoning)
      .filter((text) => text !== "")
      .join("\n\n");
  }

  get files(): readonly FilePart[] {
    return this.#spokenSteps.flatMap(({ message }) => message.content.filter((part) => part.type === "file"));
  }

  get #folded(): Fold {
    if (this.#fold === undefined) {
      const fold = new StepFold();
      for (const event of this.#read()) fold.add(event);
      const { steps, toolCalls, conversation } = fold;
      this.#fold = deepFreeze({ steps, toolCalls, conversation });
    }
    return this.#fold;
  }

  /** The steps whose messages are part of the conversation. */
  get #spokenSteps(): readonly RunStep[] {
    return this.#folded.conversation.filter((each) => "message" in each);
  }
}

/** Collects the steps and tool calls of the tasks whose messages form the conversation of a run. */
class StepFold {
  readonly steps: OpenStep[] = [];
  readonly toolCalls: Writable<RunToolCall>[] = [];
  readonly conversation: (OpenStep | UserMessage)[] = [];
  readonly #answering = new AnsweringTasks();
  /**
   * Calls without a result, by task and call id. Some servers repeat ids, so that a key may have several calls
   * (J2).
   */
  readonly #open = new Map<string, Writable<RunToolCall>[]>();
  readonly #started = new Set<RunToolCall>();

  add(event: Event): void {
    if (!this.#answering.includes(event)) return;
    if (event.type === "message_end") this.#addStep(event);
    else if (event.type === "user_message") this.conversation.push(event.data.message);
    else if (event.type === "tool_execution_start") this.#startCall(event);
    else if (event.type === "tool_execution_end") this.#endCall(event);
  }

  #addStep(event: Event<"message_end">): void {
    const { taskId, agentId, data } = event;
    const { message } = data;
    if (message.role !== "assistant") return;
    const { modelRole = "main", stopReason = null, usage = null, model = null, durationMs = 0 } = data;
    const toolCalls = toolCallsOf(message).map((part) => this.#openCall(taskId, part));
    const [text, reasoning] = [messageText(message), reasoningOf(message)];
    const place = { taskId, agentId, role: modelRole };
    const step = { ...place, message, text, reasoning, toolCalls, stopReason, usage, model, durationMs };
    this.steps.push(step);
    if (this.#answering.isSpoken(event)) this.conversation.push(step);
  }

  #openCall(
    taskId: string,
    { callId, toolName, input }: Pick<ToolCallPart, "callId" | "toolName" | "input">,
  ): Writable<RunToolCall> {
    const call = { callId, toolName, input, output: null, status: "open", durationMs: 0 } as const;
    const opened: Writable<RunToolCall> = { ...call };
    this.toolCalls.push(opened);
    const key = keyOf(taskId, callId);
    const others = this.#open.get(key);
    if (others === undefined) this.#open.set(key, [opened]);
    else others.push(opened);
    return opened;
  }

  /**
   * Records the arguments with which a call was executed. A call that no message contains, such as one of a plan,
   * is added.
   */
  #startCall({ taskId, data }: Event<"tool_execution_start">): void {
    const open = this.#open.get(keyOf(taskId, data.callId))?.find((call) => !this.#started.has(call));
    const call = open ?? this.#openCall(taskId, data);
    call.input = data.input;
    this.#started.add(call);
  }

  #endCall({ taskId, data }: Event<"tool_execution_end">): void {
    const key = keyOf(taskId, data.callId);
    const calls = this.#open.get(key);
    const call = calls?.shift();
    if (calls?.length === 0) this.#open.delete(key);
    if (call === undefined) return;
    const { result, durationMs, status = result.isError ? "error" : "ok" } = data;
    call.output = result.output;
    call.status = status;
    call.durationMs = durationMs;
  }
}

function keyOf(taskId: string, callId: string): string {
  return `${taskId} ${callId}`;
}

function reasoningOf({ content }: AssistantMessage): string {
  let text = "";
  for (const part of content) if (part.type === "reasoning") text += part.text;
  return text;
}

/** Returns the messages of a conversation, each followed by the results of its calls. */
function messagesOf(conversation: Fold["conversation"], output: JsonValue): RunResult["messages"] {
  const messages: RunResult["messages"][number][] = [];
  for (const each of conversation) {
    if ("content" in each) {
      messages.push(each);
      continue;
    }
    const { message, toolCalls } = each;
    messages.push(message);
    const results = toolCalls.flatMap(({ output: result, status, ...call }) =>
      result === null
        ? []
        : [toolResultPart({ type: "tool_call", ...call }, { output: result, isError: status !== "ok" })],
    );
    if (results.length > 0) messages.push(toolMessage(results));
  }
  const last = messages.findLast((message) => message.role === "assistant" && !isBlank(messageText(message)));
  if (typeof output !== "string" || isBlank(output)) return messages;
  // An architecture, middleware or a guardrail may give an answer that no model call of the conversation gave.
  if (last === undefined || messageText(last).trim() !== output.trim())
    messages.push(assistantMessage(output));
  return messages;
}

function isBlank(text: string): boolean {
  return text.trim() === "";
}
