import {
  addUsage,
  eventDraft,
  messageText,
  toolCallsOf,
  toolMessage,
  toolResultPart,
  type AgentSession,
  type Architecture,
  type Dependencies,
  type EmittableEvent,
  type JsonValue,
  type LlmRequest,
  type ToolCallPart,
  type ToolChoice,
  type ToolResult,
  type Transcript,
} from "../../kernel/index.ts";
import { opening, readMessage } from "../agent-input.ts";
import { isBlank } from "./answer-text.ts";

export interface ReActOptions {
  /** For the first call only. */
  readonly initialToolChoice?: ToolChoice;
}

/**
 * Think, act, look, again: until the model asks for no tool and nobody has anything to add, or the turns are used up. Steering is heard
 * after the tools of a turn, follow-ups when there is nothing else to do.
 */
export class ReAct implements Architecture {
  readonly name = "react";
  readonly #options: ReActOptions;

  constructor(options: ReActOptions = {}) {
    this.#options = options;
  }

  /** Tells all there is to tell to its context, and yields nothing: what is handed on costs four promises a turn. */
  // oxlint-disable-next-line require-yield -- as the protocol has it
  async *run(session: AgentSession, deps: Dependencies, prompt: string): AsyncIterable<EmittableEvent> {
    await this.loop(session, deps, prompt);
  }

  /** For an architecture that is built around it: `onTurn` is called at the end of each turn. */
  async loop(session: AgentSession, deps: Dependencies, prompt: string, onTurn?: () => void): Promise<void> {
    const { ctx, maxTurns, history, tools } = deps;
    const steeringOptions = deps.steering && { mode: deps.steering };
    const followUpOptions = deps.followUps && { mode: deps.followUps };
    session.messages = session.messages.append(opening(prompt, session.attachments));
    session.attachments = [];
    let toolChoice = this.#options.initialToolChoice;
    while (session.turns < maxTurns) {
      ctx.check();
      const turn = ++session.turns;
      ctx.emitEvent(eventDraft("turn_start", { turn }));
      const promptWindow = history.getPromptWindow(session.id);
      const transcript = promptWindow instanceof Promise ? await promptWindow : promptWindow;
      const reply = await ctx.llm(requestOf(session, deps, transcript, toolChoice));
      toolChoice = undefined;
      session.messages = session.messages.append(reply.message);
      session.cumulativeUsage = addUsage(session.cumulativeUsage, reply.usage);
      const text = messageText(reply.message);
      const calls = toolCallsOf(reply.message);
      // B5: what it said before is better than nothing, should it be stopped on the way.
      if (calls.length === 0 || !isBlank(text)) session.output = text;
      let results: readonly ToolResult[] = emptyList;
      if (calls.length > 0) {
        // Of one alone, none has its result while another has not.
        const onResult = calls.length > 1 ? trackSettled(session, calls) : undefined;
        results = await tools.callAll(calls, onResult && { onResult });
        session.messages = session.messages.append(toolResultsMessage(calls, results));
        session.settled = emptyList;
      }
      ctx.emitEvent(eventDraft("turn_end", { turn, stopReason: reply.stopReason, toolCalls: calls.length }));
      onTurn?.();
      const endsLoop = endLoop(results);
      // What nobody would answer any more is left where it is.
      const canContinue = session.turns < maxTurns;
      const steering: readonly JsonValue[] =
        canContinue && steeringOptions !== null ? await ctx.steering(steeringOptions) : emptyList;
      const isIdle = endsLoop && steering.length === 0;
      const inputs: readonly JsonValue[] =
        canContinue && isIdle && followUpOptions !== null ? await ctx.followUps(followUpOptions) : steering;
      if (inputs.length > 0) {
        session.messages = session.messages.append(...inputs.map((input) => readMessage(input).message));
        const name = isIdle ? "react.follow_up_injected" : "react.steering_injected";
        ctx.emitEvent(eventDraft("architecture_event", { architecture: this.name, name, data: { inputs } }));
      } else if (endsLoop) {
        session.output = text;
        return;
      }
    }
    session.interrupted = true;
    session.interruptionReason = "max_turns_exceeded";
  }

  declaredWorkers(): Readonly<Record<string, never>> {
    return {};
  }
}

export function react(options?: ReActOptions): ReAct {
  return new ReAct(options);
}

function requestOf(
  { instructions }: AgentSession,
  { tools, ephemeral, role, outputFormat }: Dependencies,
  transcript: Transcript,
  toolChoice: ToolChoice | undefined,
): LlmRequest {
  const request = { transcript, instructions, tools: tools.list(), ephemeral, role };
  if (toolChoice === undefined && outputFormat === null) return request;
  return {
    ...request,
    ...(toolChoice !== undefined && { toolChoice }),
    ...(outputFormat && { responseFormat: outputFormat }),
  };
}

/** Which calls have their result, while others have not: whoever is stopped in the middle says so (S1). */
function trackSettled(
  session: AgentSession,
  calls: readonly ToolCallPart[],
): (result: ToolResult, index: number) => void {
  const settled: (ToolResult | undefined)[] = calls.map(() => undefined);
  session.settled = settled;
  return (result, index) => {
    settled[index] = result;
  };
}

function toolResultsMessage(
  calls: readonly ToolCallPart[],
  results: readonly ToolResult[],
): ReturnType<typeof toolMessage> {
  return toolMessage(calls.map((call, index) => toolResultPart(call, results[index] ?? missingResult)));
}

/** No tool was called, or each said that there is nothing to go on with, or one for all. */
function endLoop(results: readonly ToolResult[]): boolean {
  let allTerminate = true;
  for (const { terminate } of results) {
    if (terminate === "always") return true;
    if (terminate !== true) allTerminate = false;
  }
  return allTerminate;
}

const emptyList: readonly never[] = [];
const missingResult: ToolResult = { output: { type: "text", text: "" }, isError: true };

/** What somebody said to a run, in words. */
export function inputText(input: JsonValue): string {
  return readMessage(input).prompt;
}
