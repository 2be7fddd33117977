import {
  asksAboutCall,
  isInterruptedMessage,
  messageText,
  rootTaskId,
  summaryOf,
  toolCallsOf,
  totalTokens,
  type ApprovalDecision,
  type ChatMessage,
  type Delta,
  type Event,
  type JsonValue,
  type SessionEntry,
  type TaskId,
} from "../../../../kernel/index.ts";
import { LiveText, type LiveMessage } from "../../../view/live-text.ts";
import { RunFold } from "../../../view/run-fold.ts";
import type { QuestionView, RunView } from "../../../view/run-view.ts";
import { ItemList, type CallItem, type ChatItem, type ItemCost, type PlacedItem } from "./chat-item.ts";
import { imagesOf, inputText, noteOf, outputText, progressText, reasoningOf } from "./chat-words.ts";

/** The run that a chat follows. */
interface FollowedRun {
  readonly runId: string;
  readonly fold: RunFold;
  /** Whether the run's input is already shown, because the person has just sent it. */
  isInputShown: boolean;
  /** Whether the run is not a part of the conversation, such as a compaction. */
  readonly isQuiet: boolean;
  isOver: boolean;
}

/** Maximum number of characters of a tool's output that a chat keeps. The log of the run contains the whole output. */
const mostOutput = 200_000;

/**
 * A conversation as a chat shows it: the entries of the session, then the events and the deltas of its runs in the
 * order of their arrival. The model is calculated from these data alone; it makes no requests and draws nothing.
 */
export class ChatModel {
  readonly #list = new ItemList();
  readonly #texts = new LiveText();
  readonly #calls = new Map<string, number>();
  readonly #hires = new Map<string, number>();
  readonly #asked = new Map<string, number>();
  #answer: number | undefined;
  #run: FollowedRun | undefined;
  readonly #taskId: TaskId;
  /** Number of changes so far. */
  version = 0;

  /** `taskId`: the task whose conversation is shown. */
  constructor(taskId: TaskId = rootTaskId) {
    this.#taskId = taskId;
  }

  get items(): readonly PlacedItem[] {
    return this.#list.all;
  }

  /** Id of the run that is followed now, or that was followed last. */
  get runId(): string | undefined {
    return this.#run?.runId;
  }

  /** Whether the followed run has not ended. */
  get isWorking(): boolean {
    return this.#run !== undefined && !this.#run.isOver;
  }

  /** The state of the followed run, calculated from its events. */
  get view(): RunView | undefined {
    return this.#run?.fold.view();
  }

  /** The text that the model of an agent is writing now, or its last text. */
  liveText(taskId: TaskId): LiveMessage | undefined {
    return this.#texts.of(taskId);
  }

  /** The open questions of all agents of the run, the oldest first. */
  get questions(): readonly QuestionView[] {
    const view = this.isWorking ? this.view : undefined;
    if (view === undefined) return [];
    const open = [...view.asked].filter(({ decision, taskId, request: { kind } }) => {
      const isLive = (view.tasks.get(taskId)?.endedAt ?? null) === null;
      return decision === null && isLive && kind !== "client_tool";
    });
    return open.toSorted((one, other) => one.askedAt - other.askedAt);
  }

  /** Returns a name for a question of the run that is unique among all runs of the conversation. */
  nameOf({ request: { approvalId } }: Pick<QuestionView, "request">): string {
    return `${this.runId} ${approvalId}`;
  }

  /** Shows another conversation. `entries` are the entries on its path. */
  load(entries: readonly SessionEntry[]): void {
    this.#list.clear();
    for (const known of [this.#calls, this.#hires, this.#asked]) known.clear();
    this.#answer = undefined;
    this.#run = undefined;
    for (const entry of entries) this.#addEntry(entry);
    this.version++;
  }

  /** Adds a line of the chat itself. */
  note(text: string, tone: "plain" | "bad" | "hold" = "plain"): void {
    this.#push({ kind: "note", text, tone });
  }

  /** Shows a text that the person has sent, before the server has received it. Returns the id of its item. */
  say(input: JsonValue): number {
    return this.#push(saidBy("person", input));
  }

  /** Removes a text that was shown by `say`, because the server refused it. */
  unsay(id: number): void {
    this.#list.remove(id);
    this.version++;
  }

  /**
   * Follows a run from its first event. `isInputShown`: the conversation already shows the run's input. `isQuiet`:
   * the run is not part of the conversation, so that only its notes and questions are shown.
   */
  follow(
    runId: string,
    { isInputShown, isQuiet }: { readonly isInputShown: boolean; readonly isQuiet: boolean },
  ): void {
    // The ids of questions and agents are those of one run.
    if (runId !== this.#run?.runId) for (const known of [this.#hires, this.#asked]) known.clear();
    this.#run = { runId, fold: new RunFold(), isInputShown, isQuiet, isOver: false };
    this.#answer = undefined;
    this.version++;
  }

  add(item: Event | Delta): void {
    const run = this.#run;
    if (run === undefined) return;
    this.version++;
    if (!("seq" in item)) return this.#addDelta(item);
    if (item.seq <= run.fold.seq) return;
    run.fold.add(item);
    if (run.isQuiet) this.#addSharedEvent(item);
    else if (item.taskId === this.#taskId) this.#addRootEvent(item, run);
    else this.#addChildEvent(item);
    if (item.type === "run_end") {
      run.isOver = true;
      this.#end(item, run);
    } else if (item.type === "run_resume") run.isOver = false;
  }

  #addEntry(entry: SessionEntry): void {
    switch (entry.type) {
      case "message":
      case "custom_message":
        return this.#addMessage(entry.message);
      case "compaction":
        return void this.#push({ kind: "summary", text: entry.summary });
      case "branch_summary":
        return void this.#push({ kind: "summary", text: entry.summary });
      case "model_change":
        return this.note(`The model is ${entry.provider}/${entry.modelId}`);
      case "thinking_level_change":
        return this.note(`The thinking level is ${entry.level}`);
      default:
    }
  }

  #addMessage(message: ChatMessage): void {
    if (message.role === "user") {
      const summary = summaryOf(message);
      if (summary !== null) return void this.#push({ kind: "summary", text: summary });
      return void this.#push(saidBy("person", message as unknown as JsonValue));
    }
    if (message.role === "assistant") {
      const [text, reasoning] = [messageText(message), reasoningOf(message)];
      if (text !== "" || reasoning !== "") this.#push({ kind: "answer", text, reasoning, isLive: false });
      for (const { callId, toolName, input } of toolCallsOf(message))
        this.#calls.set(callId, this.#push({ ...newCall(callId, toolName, input), status: "cut" }));
      return;
    }
    if (message.role !== "tool") return;
    for (const { callId, output, isError } of message.content)
      this.#changeCall(callId, {
        status: isError ? "error" : "ok",
        output: cut(outputText(output)),
      });
  }

  #addDelta(delta: Delta): void {
    this.#texts.add(delta);
    if (delta.taskId !== this.#taskId || this.#run?.isQuiet === true) return;
    if (delta.type === "tool_execution_update")
      return this.#changeCall(delta.callId, { progress: progressText(delta.update) });
    const live = this.#texts.of(this.#taskId);
    if (live === undefined || (live.text === "" && live.reasoning === "")) {
      // A failed attempt: what it wrote is not the answer.
      if (this.#answer !== undefined) this.#list.remove(this.#answer);
      this.#answer = undefined;
      return;
    }
    const { text, reasoning } = live;
    const item: ChatItem = { kind: "answer", text, reasoning, isLive: true };
    if (this.#answer === undefined) this.#answer = this.#push(item);
    else this.#list.set(this.#answer, item);
  }

  #addRootEvent(event: Event, run: FollowedRun): void {
    switch (event.type) {
      case "agent_start":
        if (!run.isInputShown) this.#push(saidBy("person", event.data.input));
        run.isInputShown = true;
        return;
      case "user_message":
        return void this.#push(
          saidBy(
            event.data.source === "steering" || event.data.source === "follow_up" ? "queue" : "agent",
            event.data.message as unknown as JsonValue,
          ),
        );
      case "message_end":
        return this.#endMessage(event);
      case "tool_execution_start":
        return this.#startCall(event);
      case "tool_execution_end":
        return this.#endCall(event);
      case "task_end":
        return this.#cutCalls();
      default:
        this.#addSharedEvent(event);
    }
  }

  /** Adds an event if it has a type that the conversation shows for every agent, not only for the shown task. */
  #addSharedEvent(event: Event): void {
    switch (event.type) {
      case "approval_request":
        return this.#ask(event);
      case "approval_decision":
        return this.#decide(event.data.approvalId, event.data.decision);
      case "spawn_start":
        return this.#hire(event.data.childTaskId, event.data.agentId);
      default: {
        const note = noteOf(event);
        if (note !== undefined) this.#push({ kind: "note", ...note });
      }
    }
  }

  #addChildEvent(event: Event): void {
    const id = this.#hires.get(event.taskId);
    const known = id === undefined ? undefined : this.#list.get(id);
    const doing = childWords(event);
    const isPaid = event.type === "message_end" || event.type === "metered_call";
    if (id !== undefined && known?.kind === "hire" && (doing !== undefined || isPaid)) {
      const isOver = event.type === "task_end" ? true : known.isOver;
      const cost = this.#costOf(event.taskId) ?? known.cost;
      this.#list.set(id, { ...known, doing: doing ?? known.doing, isOver, cost });
    }
    this.#addSharedEvent(event);
  }

  #hire(taskId: string, agent: string): void {
    if (this.#hires.has(taskId)) return;
    const item = { kind: "hire", taskId, agent, doing: "starts", isOver: false, cost: null } as const;
    this.#hires.set(taskId, this.#push(item));
  }

  #endMessage({ taskId, data: { message, modelRole } }: Event<"message_end">): void {
    this.#texts.endMessage(taskId);
    const live = this.#answer;
    this.#answer = undefined;
    if (message.role !== "assistant") return;
    const [text, reasoning] = [messageText(message), reasoningOf(message)];
    const isShown = (text !== "" || reasoning !== "") && !(modelRole !== undefined && text === "");
    const item: ChatItem = { kind: "answer", text, reasoning, isLive: false };
    if (live !== undefined && isShown) this.#list.set(live, item);
    else if (live !== undefined) this.#list.remove(live);
    else if (isShown && !isInterruptedMessage(message)) this.#push(item);
  }

  #startCall({ data: { callId, toolName, input, foreign } }: Event<"tool_execution_start">): void {
    const known = this.#callAt(callId);
    // After a crash the call in flight is made again with the same id. It stays one line.
    if (known !== undefined && (known.status === "open" || known.status === "asks"))
      return this.#changeCall(callId, { status: "open" });
    this.#calls.set(callId, this.#push({ ...newCall(callId, toolName, input), foreign: foreign ?? null }));
  }

  #endCall({ data }: Event<"tool_execution_end">): void {
    const { callId, toolName, result, durationMs, status = result.isError ? "error" : "ok" } = data;
    this.#texts.endCall(this.#taskId, callId);
    const metadata = data.metadata ?? result.metadata;
    const diff = metadata?.["diff"];
    if (this.#callAt(callId) === undefined)
      this.#calls.set(callId, this.#push(newCall(callId, toolName, null)));
    this.#changeCall(callId, {
      status,
      output: cut(outputText(result.output)),
      diff: typeof diff === "string" ? cut(diff) : null,
      durationMs,
      cost: this.#costOfCall(metadata?.["taskId"]),
      progress: "",
    });
  }

  /** Returns the cost of a call that has started an agent. `null` for every other call. */
  #costOfCall(taskId: JsonValue | undefined): ItemCost | null {
    if (typeof taskId !== "string") return null;
    // A tool of the user may name a task, too. Only a report of this agent belongs to the call.
    const isReport = this.view?.tasks.get(taskId as TaskId)?.parentId === this.#taskId;
    return isReport ? this.#costOf(taskId as TaskId) : null;
  }

  /** Returns the cost of a task and its reports. `null` if they have made no model call. */
  #costOf(taskId: TaskId): ItemCost | null {
    const total = this.view?.tasks.get(taskId)?.total;
    return total === undefined || total.calls === 0 ? null : { usd: total.costUsd };
  }

  #cutCalls(): void {
    for (const [callId, id] of this.#calls) {
      const item = this.#list.get(id);
      if (item?.kind === "call" && (item.status === "open" || item.status === "asks"))
        this.#changeCall(callId, { status: "cut" });
    }
  }

  #ask({ agentId, data: request }: Event<"approval_request">): void {
    const isOfCall = asksAboutCall(request);
    if (isOfCall) this.#changeCall(request.callId, { status: "asks" });
    if (this.#asked.has(request.approvalId) || request.kind === "client_tool") return;
    this.#asked.set(request.approvalId, this.#push({ kind: "asked", request, agent: agentId, answer: null }));
  }

  #decide(approvalId: string, decision: ApprovalDecision): void {
    const id = this.#asked.get(approvalId);
    const known = id === undefined ? undefined : this.#list.get(id);
    if (id === undefined || known?.kind !== "asked") return;
    if (asksAboutCall(known.request)) {
      const { callId } = known.request;
      const edited = decision.decision === "approved" ? decision.input : undefined;
      this.#changeCall(callId, { status: "open", ...(edited !== undefined && { input: edited }) });
    }
    this.#list.set(id, { ...known, answer: decisionWords(decision) });
  }

  #end({ at, data }: Event<"run_end">, { fold, isQuiet }: FollowedRun): void {
    const { startedAt, failure } = fold.view();
    if (isQuiet && data.status === "completed")
      return this.note("The conversation was compacted: the model sees a summary of its beginning");
    this.#answer = undefined;
    this.#push({
      kind: "end",
      status: data.status,
      failure,
      costUsd: data.costUsd,
      tokens: totalTokens(data.usage),
      durationMs: startedAt === 0 ? 0 : at - startedAt,
    });
  }

  #callAt(callId: string): CallItem | undefined {
    const id = this.#calls.get(callId);
    const item = id === undefined ? undefined : this.#list.get(id);
    return item?.kind === "call" ? item : undefined;
  }

  #changeCall(callId: string, change: Partial<CallItem>): void {
    const [id, known] = [this.#calls.get(callId), this.#callAt(callId)];
    if (id !== undefined && known !== undefined) this.#list.set(id, { ...known, ...change });
  }

  #push(item: ChatItem): number {
    this.version++;
    return this.#list.push(item);
  }
}

/** Returns an item for an input in the role of the user, which a person, the queue or another agent has sent. */
function saidBy(from: "person" | "queue" | "agent", input: JsonValue): ChatItem {
  return { kind: "user", text: inputText(input), images: imagesOf(input), from };
}

function newCall(callId: string, name: string, input: CallItem["input"]): CallItem {
  return {
    kind: "call",
    callId,
    name,
    input,
    status: "open",
    output: "",
    diff: null,
    durationMs: null,
    cost: null,
    progress: "",
    foreign: null,
  };
}

function cut(text: string): string {
  if (text.length <= mostOutput) return text;
  return `${text.slice(0, mostOutput)}\n[${text.length - mostOutput} more characters]`;
}

/** Describes the activity of an agent below the root. `undefined` for events that say nothing about it. */
function childWords(event: Event): string | undefined {
  switch (event.type) {
    case "task_start":
    case "turn_start":
      return "thinks";
    case "tool_execution_start":
      return `calls ${event.data.toolName}`;
    case "approval_request":
      return "asks a person";
    case "seat_pause":
      return "gave its seat away";
    case "task_suspend":
      return "waits";
    case "task_end":
      return event.data.status === "completed" ? "done" : event.data.status.replaceAll("_", " ");
    default:
      return undefined;
  }
}

function decisionWords(decision: ApprovalDecision): string {
  if (decision.decision === "denied")
    return `no${decision.reason === undefined || decision.reason === "" ? "" : `: ${decision.reason}`}`;
  if (decision.decision === "skipped") return "skipped";
  const { input, remember } = decision;
  const edited = typeof input === "string" ? input : input === undefined ? "yes" : "yes, edited";
  return remember === true ? `${edited}, from now on always` : edited;
}
