import { createHash } from "node:crypto";
import type { ContentChunk, SessionUpdate, UsageUpdate } from "@agentclientprotocol/sdk";
import {
  eventDraft,
  nearestJson,
  type AttemptContext,
  type Clock,
  type ForeignCallView,
  type ForeignReport,
  type JsonObject,
} from "../../kernel/index.ts";
import { foreignCall, resultOf, shortId, toolNameOf, updatedCall, type ToldCall } from "./call-view.ts";

/** The architecture of hired agents, as it appears in the log. */
export const architectureName = "hired";

/** Maximum number of updates of one attempt that are written to the log. */
const mostUpdates = 100_000;

/** Maximum number of characters of one attempt that are written to the log. */
const mostCharacters = 256 * 1024 * 1024;
/** Maximum number of calls that are open at a time. If there are more, the oldest one is shown as ended. */
const mostOpenCalls = 100;
/** Length at which the answer of a turn is cut, so that it fits into a value of the journal. */
const longestAnswer = 2 * 1024 * 1024;
/** Length above which a plan is left out. */
const longestPlan = 65_536;
/** Length at which the name of a currency is cut. */
const longestCurrency = 16;

/** A call that the agent has started. */
interface OpenCall {
  call: ToldCall;
  readonly startedAt: number;
  /**
   * Digests of what the log contains about the call. `undefined` if the log does not contain its start, because
   * agents may announce a call before they report its arguments.
   */
  told: ReadonlyMap<string, string> | undefined;
}

/**
 * Writes the reports of a hired agent to the log of the run. Messages, thoughts and tool calls become events like
 * those of an agent of Reeve, marked with their source; plans and usage become events of the architecture.
 */
export class AgentReport {
  readonly #attempt: AttemptContext;
  readonly #folder: string;
  readonly #clock: Clock;
  readonly #calls = new Map<string, OpenCall>();
  readonly #ended = new Set<string>();
  readonly #denied = new Set<string>();
  #updates = 0;
  #characters = 0;
  #messageId: string | undefined;
  #plan = "";
  /** The text of the last message (`#text`), and of the message before it (`#earlierText`). */
  #text = "";
  #earlierText = "";
  /** The usage that the agent reported last. */
  usage: Pick<UsageUpdate, "used" | "size" | "cost"> | undefined;

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
    for (const open of this.#calls.values()) this.#abandon(open);
    this.#tell({ type: "message_end" }, 0);
    this.#messageId = undefined;
  }

  #abandon({ call }: OpenCall): void {
    const text = "[the agent did not report the end of the call]";
    this.#end(call.toolCallId, {
      ...call,
      status: "failed",
      content: [{ type: "content", content: { type: "text", text } }],
    });
  }

  /** Writes a report to the log, up to the limit of one attempt. */
  #tell(report: ForeignReport, characters: number): void {
    const isOver = this.#characters > mostCharacters;
    this.#characters += characters;
    if (isOver || this.#updates > mostUpdates) return;
    this.#attempt.tell(report);
    if (this.#characters > mostCharacters) this.event("updates_skipped", { characters: mostCharacters });
  }

  /** Notes that a call was refused. */
  deny(callId: string): void {
    this.#denied.add(callId);
  }

  /**
   * Returns a call about which the agent asks: what it has reported about the call before, with what it reports
   * now.
   */
  askedCall(told: ToldCall): ToldCall {
    const open = this.#calls.get(shortId(told.toolCallId));
    const call = updatedCall(open?.call, told);
    if (open !== undefined) this.#start(open, call);
    const { rawInput } = told;
    // Rules and people judge the whole arguments, although the log has only the start of long ones.
    return rawInput === undefined || rawInput === null ? call : { ...call, rawInput };
  }

  /** Writes an event of a hired agent. */
  event(name: string, data: JsonObject): void {
    this.#attempt.emitEvent(eventDraft("architecture_event", { architecture: architectureName, name, data }));
  }

  update(update: SessionUpdate): void {
    if (++this.#updates === mostUpdates) this.event("updates_skipped", { after: mostUpdates });
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
        if (text === this.#plan || text.length > longestPlan || this.#updates > mostUpdates) return;
        this.#plan = text;
        return this.event("plan", { entries });
      }
      case "usage_update": {
        const { used, size, cost } = update;
        const currency = cost?.currency.slice(0, longestCurrency) ?? "";
        this.usage = { used, size, ...(cost && { cost: { amount: cost.amount, currency } }) };
        return;
      }
      default:
        // Commands, modes and settings of the agent say nothing about its work.
        return;
    }
  }

  #say(type: "text" | "reasoning", { content, messageId }: ContentChunk): void {
    const text = content.type === "text" ? content.text : `[${content.type}]`;
    const id = typeof messageId === "string" ? shortId(messageId) : undefined;
    if (id !== undefined && id !== this.#messageId) {
      this.#endText();
      if (this.#messageId !== undefined) this.#tell({ type: "message_end" }, 0);
      this.#messageId = id;
    }
    this.#tell({ type, text }, text.length);
    if (type === "text") this.#text += text.slice(0, longestAnswer - this.#text.length);
  }

  /** What follows is another message. */
  #endText(): void {
    if (this.#text.trim() !== "") this.#earlierText = this.#text.trim();
    this.#text = "";
  }

  #call(told: ToldCall, isStart: boolean): void {
    const callId = shortId(told.toolCallId);
    const before = this.#calls.get(callId);
    // A detail that follows the end of a call does not start it again.
    if (before === undefined && !isStart && this.#ended.has(callId)) return;
    const call = updatedCall(before?.call, told);
    this.#endText();
    const open = before ?? { call, startedAt: this.#clock.now(), told: undefined };
    if (before === undefined) {
      const [oldest] = this.#calls.size < mostOpenCalls ? [] : this.#calls.values();
      if (oldest !== undefined) this.#abandon(oldest);
      this.#calls.set(callId, open);
    }
    if (hasInput(call)) this.#start(open, call);
    open.call = call;
    if (before !== undefined && open.told !== undefined) {
      const { title, kind, status } = call;
      const update = nearestJson({ title, kind, status });
      this.#tell({ type: "call_update", callId, update }, 0);
    }
    if (call.status === "completed" || call.status === "failed") this.#end(callId, call);
  }

  #start(open: OpenCall, call: ToldCall): void {
    if (open.told !== undefined) return;
    const foreign = foreignCall(call, this.#folder);
    open.told = digestsOf(foreign.view);
    this.#tell({ type: "call_start", ...foreign }, JSON.stringify(foreign).length);
  }

  #end(callId: string, call: ToldCall): void {
    const open = this.#calls.get(callId) as OpenCall;
    const { startedAt } = open;
    this.#start(open, call);
    this.#calls.delete(callId);
    this.#ended.add(callId);
    const result = resultOf(call);
    const isDenied = this.#denied.delete(callId);
    const status = isDenied ? "denied" : result.isError ? "error" : "ok";
    const durationMs = this.#clock.now() - startedAt;
    const view = changedView(open.told, foreignCall(call, this.#folder).view);
    const report = {
      type: "call_end",
      callId,
      toolName: toolNameOf(call),
      result,
      durationMs,
      status,
      ...(view !== undefined && { view }),
    } as const;
    this.#tell(report, JSON.stringify([result, view]).length);
  }
}

/**
 * Returns a digest of each member of a view. Digests are kept, because the view itself would stay in memory as long
 * as the call is open.
 */
function digestsOf(view: ForeignCallView = {}): ReadonlyMap<string, string> {
  return new Map(Object.entries(view).map(([name, value]) => [name, digestOf(value)]));
}

function digestOf(value: unknown): string {
  return createHash("sha256").update(JSON.stringify(value)).digest("base64");
}

/**
 * Returns the members of a view that differ from those in the log. It is needed because some agents report a change
 * only after they have made it.
 */
function changedView(
  told: ReadonlyMap<string, string> = new Map(),
  now: ForeignCallView = {},
): ForeignCallView | undefined {
  const changed = Object.entries(now).filter(([name, value]) => told.get(name) !== digestOf(value));
  return changed.length === 0 ? undefined : Object.fromEntries(changed);
}

/** Whether the agent has reported the arguments of a call, or will not report any. */
function hasInput({ rawInput, status }: ToldCall): boolean {
  const isEmpty = typeof rawInput === "object" && rawInput !== null && Object.keys(rawInput).length === 0;
  return status !== "pending" || !(rawInput === undefined || isEmpty);
}
