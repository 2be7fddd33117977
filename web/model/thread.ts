import { addedWords } from "../../src/surfaces/view/top-up-offer.ts";
import { folderWords } from "../../src/surfaces/view/folder-words.ts";
import { hiredWords } from "../../src/surfaces/view/hired-words.ts";
import { crashLoopHeadline } from "../../src/surfaces/view/crash-loop-words.ts";
import { inputText } from "./words/input-text.ts";
import {
  asksAboutCall,
  messageText,
  textOf,
  totalTokens,
  type ApprovalDecision,
  type AssistantMessage,
  type Event,
  type Failure,
  type ForeignCallView,
  type JsonValue,
  type RunStatus,
  type TaskId,
  type ToolOutput,
} from "../../src/kernel/index.ts";
import { capitalized, grouped, personName, plain, usd } from "../base/format.ts";
import { cancelSentence } from "../../src/surfaces/view/cancel-words.ts";
import { gatewayWords, meteredWords } from "./words/event-words.ts";
import { plainMessage } from "./words/failure-words.ts";
import { forkChangeWords } from "./words/fork-words.ts";
import { isHandOff, targetOf } from "../../src/surfaces/view/task-words.ts";

interface ItemBase {
  readonly seq: number;
  readonly at: number;
}

/** One tool call with its result, if it has one. */
export interface ToolItem extends ItemBase {
  readonly kind: "tool";
  readonly callId: string;
  readonly name: string;
  /** The arguments as the model sent them. */
  readonly input: JsonValue;
  /** The changed arguments, and the person who changed them. `null` if they were not changed. */
  readonly edit: { readonly input: JsonValue; readonly by: string | undefined } | null;
  /** `asks`: a person must decide first. `cut`: the task ended before the call ended. */
  readonly status: "open" | "asks" | "cut" | "ok" | "error" | "denied";
  readonly output: string;
  /** Unified diff of an edit. */
  readonly diff: string | null;
  readonly durationMs: number | null;
  /** Data about a call that a program has made with its own tool. `null` for a call of a Reeve tool. */
  readonly foreign: ForeignCallView | null;
}

/** One entry of a conversation. */
export type ThreadItem =
  | (ItemBase & { readonly kind: "input"; readonly text: string; readonly from: string })
  | (ItemBase & {
      readonly kind: "message";
      /** Whether the model answered with neither text nor calls. */
      readonly isEmpty: boolean;
      readonly text: string;
      readonly reasoning: string;
      readonly turn: number;
      readonly tokens: number | null;
      readonly costUsd: number | null;
    })
  | ToolItem
  | (ItemBase & { readonly kind: "question"; readonly approvalId: string })
  | (ItemBase & {
      readonly kind: "hired";
      readonly taskId: TaskId;
      readonly agent: string;
      readonly task: string;
    })
  | (ItemBase & { readonly kind: "crash"; readonly recoverySeq: number })
  | (ItemBase & { readonly kind: "priority"; readonly change: Event<"task_reprioritize">["data"] })
  | (ItemBase & { readonly kind: "note"; readonly text: string; readonly tone: "plain" | "bad" | "hold" })
  | (ItemBase & { readonly kind: "end"; readonly status: RunStatus; readonly failure: Failure | null });

/** Arguments of a tool call that a person changed. */
export interface CallEdit {
  readonly runId: string;
  readonly callId: string;
  readonly asked: JsonValue;
  readonly edit: NonNullable<ToolItem["edit"]>;
}

/** Returns the calls with changed arguments, found in the questions and decisions of a run. */
export function editsIn(events: Iterable<Event>): readonly CallEdit[] {
  const asked = new Map<string, Event<"approval_request">["data"]>();
  const edits: CallEdit[] = [];
  for (const { runId, type, data } of events) {
    if (type === "approval_request" && data.kind === "tool_call") asked.set(data.approvalId, data);
    if (type !== "approval_decision") continue;
    const [call, edit] = [asked.get(data.approvalId), editOf(data.decision)];
    if (call !== undefined && edit !== null)
      edits.push({ runId, callId: call.callId, asked: call.input, edit });
  }
  return edits;
}

function editOf(decision: ApprovalDecision): ToolItem["edit"] {
  if (decision.decision !== "approved" || decision.input === undefined) return null;
  return { input: decision.input, by: decision.by };
}

/** Builds the conversation of a task from its events up to `until`. */
export function threadOf(events: Iterable<Event>, until: number): readonly ThreadItem[] {
  const thread = new Thread();
  for (const event of events) {
    if (event.seq > until) break;
    thread.add(event);
  }
  return thread.items;
}

class Thread {
  readonly items: ThreadItem[] = [];
  #turn = 0;
  /** Ids of the calls that are questions to a person. */
  readonly #asked = new Set<string>();
  /** The calls that open questions are about, by the id of the question. */
  readonly #calls = new Map<string, string>();

  add(event: Event): void {
    const { seq, at } = event;
    switch (event.type) {
      case "run_start":
        if (event.data.input === null) return;
        return this.#addBrief({ kind: "input", seq, at, text: inputText(event.data.input), from: "Brief" });
      case "agent_start":
        return this.#addBrief({ kind: "input", seq, at, text: inputText(event.data.input), from: "Brief" });
      case "spawn_start":
      case "spawn_wait": {
        const { childTaskId, agentId } = event.data;
        return this.#addHired({ kind: "hired", seq, at, taskId: childTaskId, agent: agentId, task: "" });
      }
      case "user_message":
        return this.#push({
          kind: "input",
          seq,
          at,
          text: messageText(event.data.message),
          from: sources[event.data.source],
        });
      case "turn_start":
        this.#turn = event.data.turn;
        return;
      case "message_end":
        return this.#addMessage(event);
      case "tool_execution_start":
        return this.#startTool(event);
      case "tool_execution_end":
        return this.#endTool(event);
      case "approval_request":
        if (asksAboutCall(event.data)) this.#ask(event);
        else this.#replaceByQuestion(event.data.callId);
        return this.#push({ kind: "question", seq, at, approvalId: event.data.approvalId });
      case "approval_decision":
        return this.#decide(event);
      case "handoff": {
        const { childTaskId, target, task } = event.data;
        return this.#addHired({ kind: "hired", seq, at, taskId: childTaskId, agent: target, task });
      }
      case "task_end": {
        const { status, failure } = event.data;
        this.#mark(null, "cut");
        if (status === "completed") return;
        return this.#push({ kind: "end", seq, at, status, failure: failure ?? null });
      }
      default:
        this.#addNote(event);
    }
  }

  /**
   * Adds the brief of an agent's loop, which replaces the brief of its run. Between the two there may be an item
   * about the start of a fork.
   */
  #addBrief(item: ThreadItem): void {
    const ofRun = this.items.findIndex(({ kind }) => kind === "input");
    if (ofRun >= 0 && this.items.every(({ kind }, at) => at === ofRun || kind === "note"))
      this.items.splice(ofRun, 1);
    this.#push(item);
  }

  /**
   * Adds an item about a hired agent. If there is already an item for the hand-off, which contains more information
   * than the one about the seat, both stay one line.
   */
  #addHired(item: Extract<ThreadItem, { kind: "hired" }>): void {
    const at = this.items.findLastIndex((each) => each.kind === "hired" && each.taskId === item.taskId);
    const known = this.items[at];
    if (known?.kind !== "hired") this.#push(item);
    else if (known.task === "") this.items[at] = { ...item, seq: known.seq };
  }

  #addNote(event: Event): void {
    const { seq, at } = event;
    if (event.type === "run_recover") {
      if (event.data.recoveries !== undefined) this.#push({ kind: "crash", seq, at, recoverySeq: seq });
      return;
    }
    if (event.type === "task_reprioritize")
      return this.#push({ kind: "priority", seq, at, change: event.data });
    const note = noteOf(event);
    if (note !== null) this.#push({ kind: "note", seq, at, ...note });
  }

  #addMessage({ seq, at, data }: Event<"message_end">): void {
    if (data.message.role !== "assistant") return;
    const text = textOf(data.message.content);
    const reasoning = reasoningOf(data.message);
    const { usage, modelRole } = data;
    if (modelRole !== undefined && text === "") return;
    const isEmpty = text === "" && reasoning === "" && !data.message.content.some(isToolCall);
    this.#push({
      kind: "message",
      isEmpty,
      seq,
      at,
      text,
      reasoning,
      turn: this.#turn,
      tokens: usage === undefined ? null : totalTokens(usage),
      costUsd: usage === undefined ? null : usage.costUsd,
    });
  }

  #ask({ data: { approvalId, callId } }: Event<"approval_request">): void {
    this.#calls.set(approvalId, callId);
    this.#mark(callId, "asks");
  }

  /** Ends the wait of a call. If the person changed the arguments, the call is executed with the changed arguments. */
  #decide({ data: { approvalId, decision } }: Event<"approval_decision">): void {
    const callId = this.#calls.get(approvalId);
    if (callId === undefined) return;
    this.#mark(callId, "open");
    const call = this.#openCall(callId);
    const edit = editOf(decision);
    if (call !== undefined && edit !== null) this.items[this.items.indexOf(call)] = { ...call, edit };
  }

  /** Removes the call of a question tool, because the question is shown as a card instead. */
  #replaceByQuestion(callId: string): void {
    this.#asked.add(callId);
    const open = this.#openCall(callId);
    if (open !== undefined) this.items.splice(this.items.indexOf(open), 1);
  }

  #startTool({ seq, at, data }: Event<"tool_execution_start">): void {
    const { callId, toolName, input } = data;
    // After a crash the call in flight is made again, with the same id. It stays one line.
    const known = this.#openCall(callId);
    // A hand-off is shown as the hire that follows.
    if (known !== undefined || isHandOff(toolName) || this.#asked.has(callId)) return;
    this.#push({
      kind: "tool",
      seq,
      at,
      callId,
      name: toolName,
      input,
      edit: null,
      status: "open",
      output: "",
      diff: null,
      durationMs: null,
      foreign: data.foreign ?? null,
    });
  }

  #endTool({ seq, at, data }: Event<"tool_execution_end">): void {
    const { callId, toolName, result, durationMs, status = result.isError ? "error" : "ok", metadata } = data;
    const diff = (metadata ?? result.metadata)?.["diff"];
    const ended = {
      status,
      output: outputText(result.output),
      diff: typeof diff === "string" ? diff : null,
      durationMs,
    } as const;
    if (this.#asked.has(callId)) return;
    const open = this.#openCall(callId);
    if (open === undefined) {
      const name = isHandOff(toolName) ? `answer of ${targetOf(toolName, null)}` : toolName;
      const foreign = data.foreign ?? null;
      this.#push({ kind: "tool", seq, at, callId, name, input: null, edit: null, foreign, ...ended });
      return;
    }
    const foreign = data.foreign === undefined ? open.foreign : { ...open.foreign, ...data.foreign };
    this.items[this.items.indexOf(open)] = { ...open, ...ended, foreign };
  }

  #openCall(callId: string): ToolItem | undefined {
    return this.items.findLast((item): item is ToolItem => isOpen(item) && item.callId === callId);
  }

  /** Changes the status of one call without a result, or of all such calls. */
  #mark(callId: string | null, status: "open" | "asks" | "cut"): void {
    for (const [at, item] of this.items.entries())
      if (isOpen(item) && (callId === null || item.callId === callId)) this.items[at] = { ...item, status };
  }

  #push(item: ThreadItem): void {
    this.items.push(item);
  }
}

function isOpen(item: ThreadItem): item is ToolItem {
  return item.kind === "tool" && (item.status === "open" || item.status === "asks");
}

const sources = {
  steering: "Steering",
  follow_up: "Follow-up",
  prepare_step: "Added before the turn",
  stop_hook: "Asked to continue",
  repair: "Asked to correct",
} as const;

interface Note {
  readonly text: string;
  readonly tone: "plain" | "bad" | "hold";
}

/** Describes the edited results that the model sees in place of the recorded ones. */
function editedWords({ toolResults = [] }: Event<"run_fork">["data"]): string {
  return toolResults
    .map(
      ({ toolName, output }) =>
        ` The model sees this result of ${toolName}, edited by a person: ${outputText(output)}`,
    )
    .join("");
}

/** The events of a hired agent that a person should look at. */
const doubtful: ReadonlySet<string> = new Set(["prompt_resent", "cost_differs", "permission_refused"]);

function noteOf(event: Event): Note | null {
  const folder = folderWords(event);
  if (folder !== undefined) {
    const isBad = event.type === "worktree_merge" && event.data.status !== "merged";
    return { text: capitalized(folder), tone: isBad ? "bad" : "plain" };
  }
  const hired = hiredWords(event);
  if (hired !== undefined) {
    const isDoubtful = event.type === "architecture_event" && doubtful.has(event.data.name);
    return { text: capitalized(hired), tone: isDoubtful ? "hold" : "plain" };
  }
  switch (event.type) {
    case "run_fork":
      return {
        text: `Forked from ${event.data.origin} after event ${grouped(event.seq - 1)}${forkChangeWords(event.data)}. The steps above are free.${editedWords(event.data)}`,
        tone: "hold",
      };
    case "run_pause":
      if (event.data.crashLoop !== undefined)
        return { text: `Paused: ${crashLoopHeadline(event.data.crashLoop)}`, tone: "bad" };
      return { text: `${personName(event.data.by)} paused the run`, tone: "hold" };
    case "run_resume":
      return { text: `${personName(event.data.by)} resumed the run`, tone: "plain" };
    case "run_cancel":
      return { text: cancelSentence(event.data), tone: "bad" };
    case "task_cancel":
      return { text: cancelSentence(event.data, "this agent and its reports"), tone: "bad" };
    case "input_unread":
      return { text: `It ended before it read: ${inputText(event.data.input)}`, tone: "bad" };
    case "input_withdraw":
      return { text: `${personName(event.data.by)} took back an input before it was read`, tone: "hold" };
    case "run_steer":
      return { text: `${personName(event.data.by)} sent: ${inputText(event.data.input)}`, tone: "hold" };
    case "permission_deny":
      return {
        text: `${event.data.toolName} was denied by ${event.data.by}: ${event.data.reason}`,
        tone: "bad",
      };
    case "guardrail_decision":
      return { text: `Guardrail ${event.data.guardrail}: ${event.data.reason}`, tone: "bad" };
    case "spawn_refuse":
      return {
        text: `${event.data.agentId} got no seat: ${event.data.reason.replaceAll("_", " ")}`,
        tone: "hold",
      };
    case "retry_start":
      return {
        text: `The model failed (${plainMessage(event.data.message).replace(/\.$/u, "")}). Attempt ${event.data.attempt + 1} follows.`,
        tone: "bad",
      };
    case "model_fallback":
      return {
        text: `${event.data.from.modelId} failed. ${event.data.to.modelId} answers instead.`,
        tone: "bad",
      };
    case "task_retry":
      return {
        text: `The agent's code failed (${plainMessage(event.data.failure.message)}) and starts again.`,
        tone: "bad",
      };
    case "step_retry":
      return {
        text: `${event.data.name} failed (${plainMessage(event.data.failure.message).replace(/\.$/u, "")}). Attempt ${event.data.attempt + 1} follows.`,
        tone: "bad",
      };
    case "attempt_start":
      return event.data.number === 1
        ? null
        : { text: `${event.data.name} starts again (attempt ${event.data.number})`, tone: "bad" };
    case "metered_call":
      return {
        text: capitalized(meteredWords(event.data)),
        tone: event.data.status === "error" ? "bad" : "plain",
      };
    case "gateway_request":
      return event.data.reason === undefined
        ? null
        : { text: capitalized(gatewayWords(event.data)), tone: "bad" };
    case "compensation_start":
      return { text: `The work is undone: ${event.data.names.join(", ")}`, tone: "plain" };
    case "compensation_end":
      return undoneWords(event.data);
    case "budget_lost":
      return { text: "A call got no answer and is charged in full", tone: "bad" };
    case "usage_corrected":
      return {
        text: `A call without an answer cost ${usd(event.data.usage.costUsd)}, not ${usd(event.data.charged.costUsd)}`,
        tone: "plain",
      };
    case "budget_top_up":
      return {
        text: `${personName(event.data.by)} added ${addedWords(event.data.add)} to the budget`,
        tone: "plain",
      };
    case "budget_overrun":
      return { text: "A provider billed more than the bound of the call. The run stops.", tone: "bad" };
    default:
      return null;
  }
}

function undoneWords({ failed }: Event<"compensation_end">["data"]): Note {
  if (failed.length === 0) return { text: "The work was undone", tone: "plain" };
  const causes = failed.map(({ name, failure }) => `${name} (${plainMessage(failure.message)})`);
  return { text: `Not undone: ${causes.join(", ")}`, tone: "bad" };
}

export function outputText(output: ToolOutput): string {
  switch (output.type) {
    case "text":
      return output.text;
    case "json":
      return plain(output.value);
    case "content":
      return output.parts
        .map((part) => (part.type === "text" ? part.text : `[${part.mediaType}]`))
        .join("\n");
  }
}

function isToolCall({ type }: AssistantMessage["content"][number]): boolean {
  return type === "tool_call";
}

function reasoningOf({ content }: AssistantMessage): string {
  return content.map((part) => (part.type === "reasoning" ? part.text : "")).join("");
}
