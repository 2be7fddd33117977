import type { ContentChunk, SessionUpdate, UsageUpdate } from "@agentclientprotocol/sdk";
import {
  eventDraft,
  nearestJson,
  type AttemptContext,
  type Clock,
  type JsonObject,
  type JsonValue,
} from "../../kernel/index.ts";
import { foreignCall, resultOf, toolNameOf, updatedCall, type ToldCall } from "./call-view.ts";

/** The architecture of hired agents, as it appears in the log. */
export const architectureName = "hired";

/** Number of updates of one attempt that reach the log. */
const mostUpdates = 100_000;

/** Length of the JSON of arguments from which on the log has only its start, and the length of that. */
const longestInput = 262_144;
const cutInput = 65_536;

/** A call that the agent has started. */
interface OpenCall {
  call: ToldCall;
  readonly startedAt: number;
  /** Whether the log has its start. Agents may announce a call before they tell its arguments. */
  isTold: boolean;
}

/**
 * Writes what an agent reports to the log of the run: messages, thoughts and tool calls with the events of own agents, marked
 * with their source; plans and usage with events of the architecture.
 */
export class AgentReport {
  readonly #attempt: AttemptContext;
  readonly #folder: string;
  readonly #clock: Clock;
  readonly #calls = new Map<string, OpenCall>();
  readonly #ended = new Set<string>();
  readonly #denied = new Set<string>();
  #updates = 0;
  #messageId: string | undefined;
  #plan = "";
  /** The text of the last message, and that of the message before it. */
  #text = "";
  #earlierText = "";
  /** What the agent has last reported of its usage. */
  usage: UsageUpdate | undefined;

  constructor(attempt: AttemptContext, folder: string, clock: Clock) {
    this.#attempt = attempt;
    this.#folder = folder;
    this.#clock = clock;
  }

  /** The answer of the current turn: the last message of the agent. */
  get answer(): string {
    const text = this.#text.trim();
    return text === "" ? this.#earlierText : text;
  }

  /** Begins a turn. */
  startTurn(): void {
    this.#text = "";
    this.#earlierText = "";
  }

  /** Ends a turn. A call that the agent has not ended is shown as failed. */
  endTurn(): void {
    for (const [callId, { call }] of this.#calls)
      this.#end(callId, {
        ...call,
        status: "failed",
        content: [
          {
            type: "content",
            content: { type: "text", text: "[the agent did not report the end of the call]" },
          },
        ],
      });
    this.#attempt.tell({ type: "message_end" });
    this.#messageId = undefined;
  }

  /** Notes that a call was refused. */
  deny(callId: string): void {
    this.#denied.add(callId);
  }

  /** A call about which the agent asks: what it has told of it so far, with what it tells now. */
  askedCall(told: ToldCall): ToldCall {
    const open = this.#calls.get(told.toolCallId);
    const call = updatedCall(open?.call, told);
    if (open !== undefined) this.#start(open, call);
    return call;
  }

  /** Writes an event of a hired agent. */
  event(name: string, data: JsonObject): void {
    this.#attempt.emitEvent(eventDraft("architecture_event", { architecture: architectureName, name, data }));
  }

  update(update: SessionUpdate): void {
    if (++this.#updates === mostUpdates) this.event("updates_skipped", { after: mostUpdates });
    if (this.#updates >= mostUpdates) return;
    switch (update.sessionUpdate) {
      case "agent_message_chunk":
        return this.#say("text", update);
      case "agent_thought_chunk":
        return this.#say("reasoning", update);
      case "tool_call":
      case "tool_call_update":
        return this.#call(update, update.sessionUpdate === "tool_call");
      case "plan": {
        const entries = nearestJson(update.entries);
        const text = JSON.stringify(entries);
        if (text !== this.#plan) this.event("plan", { entries });
        this.#plan = text;
        return;
      }
      case "usage_update":
        this.usage = update;
        return;
      default:
        // Commands, modes and settings of the agent say nothing about its work.
        return;
    }
  }

  #say(type: "text" | "reasoning", { content, messageId }: ContentChunk): void {
    const text = content.type === "text" ? content.text : `[${content.type}]`;
    if (typeof messageId === "string" && messageId !== this.#messageId) {
      this.#endText();
      if (this.#messageId !== undefined) this.#attempt.tell({ type: "message_end" });
      this.#messageId = messageId;
    }
    this.#attempt.tell({ type, text });
    if (type === "text") this.#text += text;
  }

  /** What follows is another message. */
  #endText(): void {
    if (this.#text.trim() !== "") this.#earlierText = this.#text.trim();
    this.#text = "";
  }

  #call(told: ToldCall, isStart: boolean): void {
    const callId = told.toolCallId;
    const before = this.#calls.get(callId);
    // A detail that follows the end of a call does not start it again.
    if (before === undefined && !isStart && this.#ended.has(callId)) return;
    const call = updatedCall(before?.call, told);
    this.#endText();
    const open = before ?? { call, startedAt: this.#clock.now(), isTold: false };
    if (before === undefined) this.#calls.set(callId, open);
    if (hasInput(call)) this.#start(open, call);
    open.call = call;
    if (before !== undefined && open.isTold) {
      const { title, kind, status } = call;
      this.#attempt.tell({ type: "call_update", callId, update: nearestJson({ title, kind, status }) });
    }
    if (call.status === "completed" || call.status === "failed") this.#end(callId, call);
  }

  #start(open: OpenCall, call: ToldCall): void {
    if (open.isTold) return;
    open.isTold = true;
    const foreign = foreignCall(call, this.#folder);
    this.#attempt.tell({ type: "call_start", ...foreign, input: shortened(foreign.input) });
  }

  #end(callId: string, call: ToldCall): void {
    const open = this.#calls.get(callId) as OpenCall;
    const { startedAt } = open;
    this.#start(open, call);
    this.#calls.delete(callId);
    this.#ended.add(callId);
    const result = resultOf(call);
    const isDenied = this.#denied.delete(callId);
    this.#attempt.tell({
      type: "call_end",
      callId,
      toolName: toolNameOf(call),
      result,
      durationMs: this.#clock.now() - startedAt,
      status: isDenied ? "denied" : result.isError ? "error" : "ok",
    });
  }
}

/** Whether the agent has told the arguments of a call, or will tell no more. */
function hasInput({ rawInput, status }: ToldCall): boolean {
  const isEmpty = typeof rawInput === "object" && rawInput !== null && Object.keys(rawInput).length === 0;
  return status !== "pending" || !(rawInput === undefined || isEmpty);
}

/** Arguments as the log keeps them: very long ones, such as whole files, are cut. */
function shortened(input: JsonValue): JsonValue {
  const text = JSON.stringify(input);
  return text.length <= longestInput ? input : { cut: true, start: text.slice(0, cutInput) };
}
