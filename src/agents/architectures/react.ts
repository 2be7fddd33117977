import {
  addUsage,
  eventDraft,
  messageText,
  toolCallsOf,
  toolMessage,
  toolResultPart,
  type AgentSession,
  type Architecture,
  type ChatMessage,
  type Dependencies,
  type EmittableEvent,
  type JsonValue,
  type LlmReply,
  type LlmRequest,
  type RunContext,
  type StopReason,
  type ToolCallPart,
  type ToolChoice,
  type ToolResult,
  type Transcript,
  is,
  optionTable,
  type OptionKinds,
} from "../../kernel/index.ts";
import { openings, readMessage } from "../base/agent-input.ts";
import { instructionsFor } from "../base/answer-format.ts";
import { checkToolChoice, laterToolChoice, samplingOf } from "../base/call-settings.ts";
import { maxOutput } from "../base/interruption-status.ts";
import { outputText } from "../team/handed-answers.ts";
import { unanswered } from "../base/interrupted-end.ts";
import { prepareTurn, stopsAfter, type PreparedTurn } from "../interception/turns/turn-control.ts";
import { isBlank } from "../base/answer-text.ts";
import { maxPauses } from "../context/role-call.ts";
import { addUserMessages } from "../base/user-messages.ts";

/** Options of `react`. */
export interface ReActOptions {
  /** Tool choice for the first model call only, for example to require a tool call. If absent, the model chooses. */
  readonly initialToolChoice?: ToolChoice;
}

const knownOptions = optionTable({ initialToolChoice: is.any } satisfies OptionKinds<ReActOptions>);

/**
 * Calls the model and executes its tool calls, turn by turn, until a reply contains no tool call and no user input
 * waits, or until the turns are used up. The loop reads steering after the tools of a turn, and follow-ups when it
 * would end. A reply that was cut at the output limit ends the loop. If the provider paused a reply, the loop
 * continues it, at most five times.
 *
 * Role: `main`.
 */
export class ReAct implements Architecture {
  readonly name = "react";
  readonly supportsContinue = true;
  readonly supportsTurnControl = true;
  readonly #options: ReActOptions;

  constructor(options: ReActOptions = {}) {
    knownOptions.read("react()", options);
    this.#options = options;
  }

  /**
   * Runs the loop. It emits every event directly and yields none, because each yielded event would cost four
   * promises per turn (`npm run bench -- loop`, row "1,000 runs of 10 turns at once").
   */
  // oxlint-disable-next-line require-yield -- `Architecture.run` must return an async iterable
  async *run(session: AgentSession, deps: Dependencies, prompt: string): AsyncIterable<EmittableEvent> {
    await this.loop(session, deps, prompt);
  }

  /** Runs the loop, for architectures that are built on it. `onTurn` is called at the end of each turn. */
  async loop(session: AgentSession, deps: Dependencies, prompt: string, onTurn?: () => void): Promise<void> {
    const { ctx, maxTurns, history, tools, prepareStep, stopWhen } = deps;
    const steeringOptions = deps.steering && { mode: deps.steering };
    const followUpOptions = deps.followUps && { mode: deps.followUps };
    session.messages = session.messages.append(...openings(prompt, session.attachments));
    session.attachments = [];
    const instructions = instructionsFor(deps.model, session.instructions, deps.outputFormat);
    checkToolChoice(deps);
    let toolChoice = deps.settings?.toolChoice ?? this.#options.initialToolChoice;
    // Text and number of the replies that the provider paused since the last complete one.
    let pausedText = "";
    let pauses = 0;
    while (session.turns < maxTurns) {
      ctx.check();
      const turn = ++session.turns;
      const prepared = prepareStep === null ? undefined : await prepareTurn(prepareStep, deps, session);
      const modelRole = prepared?.role === deps.role ? undefined : prepared?.role;
      ctx.emitEvent(eventDraft("turn_start", modelRole === undefined ? { turn } : { turn, modelRole }));
      if (turn === 1 && deps.isSteered && steeringOptions !== null)
        this.#addInputs(session, ctx, await ctx.steering(steeringOptions), "steering");
      if (prepared?.messages !== undefined) addUserMessages(session, ctx, prepared.messages, "prepare_step");
      const promptWindow = history.getPromptWindow(session.id);
      const transcript = promptWindow instanceof Promise ? await promptWindow : promptWindow;
      const unprepared = requestOf(instructions, deps, session, transcript, toolChoice);
      const request = prepared === undefined ? unprepared : applied(prepared, unprepared, deps, session);
      const isWhole = transcript.length === session.messages.length;
      let reply: LlmReply;
      try {
        reply = await ctx.llm(request);
      } catch (error) {
        reply = await deps.callShorter(error, request, session.id);
      }
      toolChoice = laterToolChoice(deps);
      session.messages = session.messages.append(reply.message);
      session.cumulativeUsage = addUsage(session.cumulativeUsage, reply.usage);
      if (isWhole) session.reported = reportedBy(reply, session.messages.length);
      const { stopReason } = reply;
      const text = pausedText + messageText(reply.message);
      session.replies.add(text, stopReason);
      if (stopReason === "length" || stopReason === "pause") {
        session.output = text;
        if (stopReason === "length") endAtOutputLimit(session, reply.message);
        else if (++pauses > maxPauses) interrupt(session, "max_pauses");
        ctx.emitEvent(eventDraft("turn_end", { turn, stopReason, toolCalls: 0 }));
        onTurn?.();
        if (session.interrupted) return;
        pausedText = text;
        continue;
      }
      pausedText = "";
      pauses = 0;
      const calls = toolCallsOf(reply.message);
      // B5: keeps the latest text as the output, in case the run is stopped before the answer.
      if (calls.length === 0 || !isBlank(text)) session.output = text;
      let results: readonly ToolResult[] = emptyList;
      if (calls.length > 0) {
        // A single call needs no tracking: a partial state exists only if one call has its result and another has not.
        const onResult = calls.length > 1 ? trackSettled(session, calls) : undefined;
        const only = prepared?.tools;
        results = await tools.callAll(
          calls,
          only === undefined ? onResult && { onResult } : { only, ...(onResult && { onResult }) },
        );
        session.messages = session.messages.append(toolResultsMessage(calls, results));
        session.settled = emptyList;
      }
      ctx.emitEvent(eventDraft("turn_end", { turn, stopReason, toolCalls: calls.length }));
      onTurn?.();
      const isStopped =
        stopWhen !== null &&
        calls.length > 0 &&
        (await stopsAfter(stopWhen, deps, session, reply.message, results));
      const endsLoop = isStopped || endLoop(results);
      // After the last turn no input is read: the model could not react to it, so it stays queued.
      const canContinue = session.turns < maxTurns;
      const steering: readonly JsonValue[] =
        canContinue && steeringOptions !== null ? await ctx.steering(steeringOptions) : emptyList;
      const isIdle = endsLoop && steering.length === 0;
      const inputs: readonly JsonValue[] =
        canContinue && isIdle && followUpOptions !== null ? await ctx.followUps(followUpOptions) : steering;
      if (inputs.length > 0) this.#addInputs(session, ctx, inputs, isIdle ? "follow_up" : "steering");
      else if (endsLoop) {
        const answer = results.find(({ terminate }) => terminate === "answer");
        if (answer !== undefined) setAnswer(session, outputText(answer.output), stopReason);
        else if (!isStopped) session.output = text;
        return;
      }
    }
    interrupt(session, "max_turns_exceeded");
  }

  /** Adds input that the user sent during the run to the conversation. */
  #addInputs(
    session: AgentSession,
    ctx: RunContext,
    inputs: readonly JsonValue[],
    source: "steering" | "follow_up",
  ): void {
    if (inputs.length === 0) return;
    const messages = inputs.flatMap((input) => readMessage(input).message ?? []);
    addUserMessages(session, ctx, messages, source);
    const name = `react.${source}_injected`;
    ctx.emitEvent(eventDraft("architecture_event", { architecture: this.name, name, data: { inputs } }));
  }

  declaredWorkers(): Readonly<Record<string, never>> {
    return {};
  }
}

/**
 * Creates the ReAct loop: the model calls tools and sees their results until it answers without a tool call. Use it
 * unless you have a reason for another architecture; it is the default.
 *
 * @example
 * ```ts
 * import { Agent } from "reeve";
 * import { react } from "reeve/architectures";
 *
 * const agent = new Agent({
 *   name: "clerk",
 *   model: "anthropic/claude-sonnet-5",
 *   architecture: react({ initialToolChoice: "required" }),
 * });
 * ```
 */
export function react(options?: ReActOptions): ReAct {
  return new ReAct(options);
}

function requestOf(
  instructions: string,
  { tools, ephemeral, role, outputFormat, settings }: Dependencies,
  { messages }: AgentSession,
  transcript: Transcript,
  toolChoice: ToolChoice | undefined,
): LlmRequest {
  const request = { transcript, instructions, tools: tools.list(messages), ephemeral, role };
  if (toolChoice === undefined && outputFormat === null && settings === null) return request;
  return {
    ...request,
    ...samplingOf(settings),
    ...(toolChoice !== undefined && { toolChoice }),
    ...(outputFormat && { responseFormat: outputFormat }),
  };
}

/** Returns the request with the changes that `prepareStep` made for the turn. */
function applied(
  { role, tools, toolChoice }: PreparedTurn,
  request: LlmRequest,
  deps: Dependencies,
  { instructions }: AgentSession,
): LlmRequest {
  const offered = request.tools?.filter(({ name }) => tools?.includes(name));
  return {
    ...request,
    ...(role !== undefined && {
      role,
      instructions: instructionsFor(deps.scopeForWorker(role).model, instructions, deps.outputFormat),
    }),
    ...(toolChoice !== undefined && { toolChoice }),
    // Providers refuse a conversation that contains tool calls but lists no tools.
    ...(tools !== undefined && (tools.length === 0 ? { toolChoice: "none" } : { tools: offered ?? [] })),
  };
}

function reportedBy(
  { usage: { inputTokens, outputTokens } }: LlmReply,
  messages: number,
): AgentSession["reported"] {
  return { tokens: inputTokens + outputTokens, messages };
}

function setAnswer(session: AgentSession, answer: string, stopReason: StopReason): void {
  session.output = answer;
  session.replies.add(answer, stopReason);
}

function interrupt(session: AgentSession, reason: string): void {
  session.interrupted = true;
  session.interruptionReason = reason;
}

/**
 * Ends a session at a reply that was cut at the output limit. None of the reply's tool calls is executed, because
 * the last one may be incomplete. S1: each of these calls gets a result that says so.
 */
function endAtOutputLimit(session: AgentSession, message: ChatMessage): void {
  interrupt(session, maxOutput);
  const open = unanswered(message, { reason: "the reply was cut at the output limit", settled: [] });
  if (open !== undefined) session.messages = session.messages.append(open);
}

/**
 * Records which calls of a turn already have a result. S1: if the invocation is stopped before all have one, the
 * other calls get a result that says that they were not executed.
 */
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

/**
 * Whether the loop ends after these results: no tool was called, every result has `terminate: true`, or one has
 * `terminate: "always"` or `"answer"`.
 */
function endLoop(results: readonly ToolResult[]): boolean {
  let allTerminate = true;
  for (const { terminate } of results) {
    if (terminate === "always" || terminate === "answer") return true;
    if (terminate !== true) allTerminate = false;
  }
  return allTerminate;
}

const emptyList: readonly never[] = [];
const missingResult: ToolResult = { output: { type: "text", text: "" }, isError: true };

/** Returns the text of a user input. */
export function inputText(input: JsonValue): string {
  return readMessage(input).prompt;
}
