import type { InvocationPlan } from "./invocation-plan.ts";
import {
  agentSession,
  assistantMessage,
  CancellationError,
  eventDraft,
  HistoryRetention,
  jsonText,
  modelFor,
  userMessage,
  type AgentSession,
  type ChatMessage,
  type Dependencies,
  type FinishReason,
  type HistoryKey,
  type HistoryProvider,
  type JsonValue,
  type RunContext,
  type Transcript,
  type Turn,
} from "../kernel/index.ts";
import { historyKey, planTurn } from "./calling/plan-turn.ts";
import { checkContinuation, openings, type ReadInput } from "./agent-input.ts";
import { acceptForm, acceptSchema, fitAnswer, formatOf, requireTextOutput } from "./answer-format.ts";
import { isBlank } from "./architectures/answer-text.ts";
import { closeInvocation, isSilent, stopOf, type Place, type Stop } from "./close-invocation.ts";
import { decideCompaction, type CompactionDecision } from "./compaction/compaction-schedule.ts";
import { planExtendedTurn, withMessage } from "./extensions/extended-turn.ts";
import type { ExtensionHost } from "./extensions/extension-host.ts";
import { GuardedRun, startGuardrails, withAnswer, type TrippedGuardrail } from "./guardrails/guarded-run.ts";
import { InvocationDependencies, type InvocationParts } from "./invocation-dependencies.ts";
import { outputWithAnswers } from "./handed-answers.ts";
import { runThrough, type AgentRunResult } from "./middleware/agent-run.ts";
import { interruptionStatus, isInterruption, maxOutput } from "./interruption-status.ts";
import { OpenSessions, PromptHistory } from "./prompt-history.ts";
import { answeredInPlace, beforeInterruption, interruptedEnd } from "./interrupted-end.ts";
import { continuationFromHooks, hookEvent } from "./stop-hook.ts";
import { TaskBudget } from "./task-budget.ts";

/** Maximum number of times that stop hooks may continue one invocation. */
const maxContinuations = 15;

/** Executes one invocation. `place` is its index within the task. */
export function invokeIn(
  plan: InvocationPlan,
  ctx: RunContext,
  given: ReadInput,
  place: Place = { number: 0, kept: [] },
): Promise<JsonValue> {
  const { extensions, guardrails } = plan;
  startGuardrails(guardrails, ctx);
  if (extensions !== undefined) return invokeExtended(plan, extensions, ctx, given, place);
  return ctx
    .turn((start) => planTurn(plan, ctx, given, place, start))
    .then((turn) => {
      if (given.message === undefined) checkContinuation(ctx, turn);
      return new Invocation(plan, ctx, given, turn, place).run();
    });
}

/** Executes one invocation of an agent with extensions, whose handlers may change or handle the input. */
async function invokeExtended(
  plan: InvocationPlan,
  host: ExtensionHost,
  ctx: RunContext,
  given: ReadInput,
  place: Place,
): Promise<JsonValue> {
  const turn = await ctx.turn(
    (start, scoped) => planExtendedTurn(plan, host, ctx, given, place, start, scoped),
    { withSteps: true },
  );
  host.notePrompt(ctx, turn.instructions);
  if (given.message === undefined) checkContinuation(ctx, turn);
  const read = turn.isTransformed ? withMessage(given, turn.input) : given;
  const invocation = new Invocation(plan, ctx, read, turn, place);
  return turn.handled === null ? invocation.run() : invocation.answer(turn.handled.reply);
}

class Invocation {
  readonly #plan: InvocationPlan;
  readonly #ctx: RunContext;
  readonly #given: ReadInput;
  readonly #turn: Turn;
  readonly #place: Place;
  readonly #sessions = new OpenSessions();
  /** Created when the architecture runs for the first time. */
  #deps: Dependencies | undefined;
  #session: AgentSession;
  /** The prompt of the current round, and the number of messages before it. */
  #prompt: string;
  #roundFrom: number;
  /** The last answer of earlier rounds, if a stop hook continued the invocation. */
  #before = "";
  #thought: AgentRunResult | undefined;
  /** The conversation before this invocation, as its model sees it. */
  readonly #history: Transcript;
  /** What the input guardrails have decided. */
  #verdict: "accepted" | "refused" | undefined;
  /** The guardrail that withheld the output. */
  #withheldBy: string | undefined;
  #isClosed = false;

  constructor(plan: InvocationPlan, ctx: RunContext, given: ReadInput, turn: Turn, place: Place) {
    this.#plan = plan;
    this.#ctx = ctx;
    this.#given = given;
    this.#turn = turn;
    this.#place = place;
    this.#history = given.message === undefined ? beforeInterruption(turn.history) : turn.history;
    if (given.message === undefined || plan.guardrails.every((each) => each.onInput === undefined))
      this.#verdict = "accepted";
    this.#session = this.#begin();
    this.#prompt = given.prompt;
    this.#roundFrom = this.#history.length;
  }

  async run(): Promise<JsonValue> {
    const { agent, guardrails, architecture, pipeline } = this.#plan;
    const { input, instructionsHash } = this.#turn;
    const ctx = this.#ctx;
    const abandoned = (stop: unknown): void => this.#closeStopped(stop);
    if (this.#guardsOutput) ctx.report({ abandoned });
    else ctx.report({ output: () => this.#stoppedOutput || undefined, abandoned });
    const start = eventDraft("agent_start", { input, architecture: architecture.name, instructionsHash });
    ctx.emitEvent(start, this.#turn);
    const guarded = guardrails.length === 0 ? undefined : new GuardedRun(guardrails, ctx);
    try {
      const refused = guarded && (await guarded.input(this.#given.message && this.#given.prompt));
      this.#verdict = refused === undefined ? "accepted" : "refused";
      let result =
        refused === undefined
          ? await runThrough(pipeline.agent, ctx, agent, () => this.#thinking())
          : tripped(refused, "");
      if (refused === undefined) {
        this.#adopt(result);
        const withheld = guarded && (await guarded.output(jsonText(result.output)));
        if (withheld !== undefined) {
          this.#session.messages = withAnswer(this.#session.messages, withheld.reason);
          this.#withheldBy = withheld.guardrail;
          result = tripped(withheld, withheld.reason);
        }
      }
      const closing = this.#close(result);
      if (closing !== undefined) await closing;
      return result.output;
    } catch (error) {
      const compaction = stopOf(error) === undefined ? undefined : this.#decideCompaction();
      if (compaction !== undefined) await this.#schedule(compaction);
      this.#closeStopped(error);
      throw error;
    }
  }

  /**
   * Ends an invocation whose input an extension has handled, without a model call. With a reply, the session gets the
   * message and the reply; without one it gets neither.
   */
  async answer(reply: string | null): Promise<JsonValue> {
    this.#verdict = reply === null ? "refused" : "accepted";
    if (reply !== null) this.#say(this.#prompt, reply);
    const output = reply ?? "";
    await this.#close({ output, status: "completed", interruptionReason: null });
    return output;
  }

  /** S1: closes a stopped invocation exactly once, either by the invocation itself or when its code is abandoned. */
  #closeStopped(error: unknown): void {
    if (this.#isClosed) return;
    this.#reportMetadata();
    this.#keepPartial(error);
    const stop = stopOf(error);
    if (stop === undefined) return;
    const isGuarded = this.#guardsOutput;
    this.#say(this.#prompt, isGuarded ? "" : this.#session.output);
    const { status, interruptionReason } = stop;
    const output = isGuarded ? "" : this.#stoppedOutput;
    this.#end({ output, status, interruptionReason }, stop);
  }

  /** The answer so far. A round without an answer keeps the one before. The session only gets what this round said. */
  get #output(): string {
    const { output } = this.#session;
    return isBlank(output) ? this.#before || output : output;
  }

  /** B5: the answer so far, and what children have answered since it was given. */
  get #stoppedOutput(): string {
    return outputWithAnswers(this.#output, this.#plan.agent, this.#session, this.#history.length);
  }

  #end(result: AgentRunResult, stop?: Stop): void {
    this.#isClosed = true;
    const isStopped = stop !== undefined;
    const isKept = this.#isInputKept && !isSilent(this.#ctx, result);
    const messages = isKept ? this.#said(result, stop) : null;
    const { reviewers } = this.#plan;
    const closing = { ...result, messages, isStopped, reviewers };
    closeInvocation(this.#ctx, this.#session, this.#turn, this.#place, closing);
  }

  /**
   * Whether the input stays in the session. Input that no guardrail has checked does not, because the next invocation
   * would see it. Messages before the input are never checked, so they keep theirs until it is refused.
   */
  get #isInputKept(): boolean {
    const { earlier } = this.#given;
    return this.#verdict === undefined ? earlier !== undefined : this.#verdict === "accepted";
  }

  /** S1: what this invocation adds to the conversation. An interrupted one ends with a text that says so. */
  #said({ status, interruptionReason }: AgentRunResult, stop?: Stop): readonly ChatMessage[] {
    const { messages, settled } = this.#session;
    const said = messages.slice(this.#history.length);
    const isUnchanged = said.length === 0 && this.#history.length < this.#turn.history.length;
    if (status === "completed" || isUnchanged) return said;
    return interruptedEnd(said, {
      status,
      reason: interruptionReason ?? "stopped",
      settled,
      performed: stop?.performed,
      by: stop?.by ?? this.#withheldBy,
      isUnchecked: stop !== undefined && this.#guardsOutput,
    });
  }

  /** S1: keeps the part of an interrupted answer that readers received, as output and in the session. */
  #keepPartial(error: unknown): void {
    const partial = error instanceof CancellationError ? error.partial : "";
    if (partial === "" || this.#guardsOutput) return;
    const session = this.#session;
    session.output = partial;
    this.#say(this.#prompt);
    if (session.messages.at(-1)?.role !== "assistant")
      session.messages = session.messages.append(assistantMessage(partial));
  }

  #begin(): AgentSession {
    const { instructions } = this.#turn;
    const { attachments } = this.#given;
    const history = this.#history;
    const id = this.#ctx.facts.sessionId;
    return this.#sessions.add(agentSession({ id, instructions, messages: history, attachments }));
  }

  /** Runs the architecture. If middleware calls it twice, each call gets its own conversation. */
  #thinking(): Promise<AgentRunResult> {
    if (this.#deps !== undefined) this.#session = this.#begin();
    this.#deps = this.#dependencies();
    this.#thought = undefined;
    return this.#think(this.#deps);
  }

  async #think(deps: Dependencies): Promise<AgentRunResult> {
    const { architecture, stopHooks, check, agent } = this.#plan;
    const session = this.#session;
    const ctx = this.#ctx;
    const { output: schema } = this.#given;
    if (schema !== undefined) {
      acceptForm(agent, architecture);
      await acceptSchema(check, schema);
    }
    this.#prompt = this.#given.prompt;
    this.#before = "";
    for (let continued = 0; ; continued++) {
      this.#roundFrom = session.messages.length;
      this.#before = this.#output;
      session.output = "";
      for await (const draft of architecture.run(session, deps, this.#prompt)) ctx.emitEvent(draft);
      requireTextOutput(session, architecture);
      if (session.interrupted || stopHooks.length === 0) break;
      const said = await continuationFromHooks(stopHooks, ctx, session, continued);
      if (said === undefined) break;
      if (continued === maxContinuations) {
        ctx.emitEvent(hookEvent("exhausted", { continued }));
        session.interrupted = true;
        session.interruptionReason = "max_continuations";
        break;
      }
      this.#say(this.#prompt);
      ctx.emitEvent(eventDraft("user_message", { message: userMessage(said), source: "stop_hook" }));
      this.#prompt = said;
    }
    if (session.interrupted) return this.#interrupted(session.interruptionReason);
    if (this.#finishReason === "length") return this.#interrupted(maxOutput);
    if (schema === undefined)
      return this.#cameTo({ output: this.#output, status: "completed", interruptionReason: null });
    this.#say(this.#prompt);
    session.output = this.#output;
    const canAsk = modelFor(agent, deps.role) !== undefined;
    const fitted = await fitAnswer(session, deps, schema, { check, canAsk });
    if (fitted === undefined) return this.#interrupted(maxOutput);
    return this.#cameTo({ output: fitted.value, status: "completed", interruptionReason: null });
  }

  #interrupted(interruptionReason: string | null): AgentRunResult {
    const status = interruptionStatus(interruptionReason);
    return this.#cameTo({ output: this.#stoppedOutput, status, interruptionReason });
  }

  /** Why the model stopped that gave the answer so far. `null` if no model gave it. */
  get #finishReason(): FinishReason | null {
    return this.#session.replies.reasonOf(this.#output);
  }

  #cameTo(thought: AgentRunResult): AgentRunResult {
    this.#thought = thought;
    return thought;
  }

  /** Adds the question and the answer to the session for an architecture that added no messages itself. */
  #say(prompt: string, answer: string = this.#session.output): void {
    const session = this.#session;
    if (session.messages.length === this.#roundFrom)
      session.messages = session.messages.append(...openings(prompt, session.attachments));
    if (answer !== "" && !this.#isAnswered)
      session.messages = session.messages.append(assistantMessage(answer));
    session.attachments = none;
  }

  /**
   * Whether the conversation contains the answer. The last message is checked first, because it usually is the answer.
   */
  get #isAnswered(): boolean {
    const { messages } = this.#session;
    for (let index = messages.length - 1; index >= this.#roundFrom; index--)
      if (messages.at(index)?.role === "assistant") return true;
    return false;
  }

  /** Uses the result that middleware returned as the answer. */
  #adopt(result: AgentRunResult): void {
    const session = this.#session;
    const answer = jsonText(result.output);
    if (this.#thought === undefined) {
      const { message } = this.#given;
      const asked = session.messages.length === this.#history.length ? message : undefined;
      session.messages = answeredInPlace(session, asked, answer);
    } else {
      const isOwn = result.output === this.#thought.output;
      this.#say(this.#prompt, isOwn && isBlank(session.output) ? "" : answer);
      if (!isOwn) session.messages = withAnswer(session.messages, answer);
    }
  }

  /** Closes the invocation. Returns a promise only if the application keeps the history. */
  #close(result: AgentRunResult): Promise<void> | undefined {
    const ctx = this.#ctx;
    const { status, interruptionReason } = result;
    if (isInterruption(status))
      ctx.report({ interruption: { status, reason: interruptionReason ?? status } });
    const finishReason = this.#finishReason;
    if (finishReason !== null) ctx.report({ finishReason });
    this.#reportMetadata();
    const { history } = this.#plan;
    const key = history && historyKey(ctx, this.#turn.sessionId, this.#place);
    const isKept = ctx.meta.supervision?.retention !== HistoryRetention.NONE && !isSilent(ctx, result);
    const compaction = this.#decideCompaction();
    if (history !== undefined && key !== undefined && isKept)
      return this.#keep(history, key, result).then(() => this.#end(result));
    if (compaction !== undefined) return this.#schedule(compaction).then(() => this.#end(result));
    this.#end(result);
    return undefined;
  }

  #decideCompaction(): CompactionDecision {
    if (this.#place.number > 0) return undefined;
    const { compaction: plan, history } = this.#plan;
    const { compactionInstructions: instructions } = this.#given;
    const hasOwnHistory = history !== undefined;
    return decideCompaction({
      ctx: this.#ctx,
      session: this.#session,
      turn: this.#turn,
      plan,
      instructions,
      hasOwnHistory,
    });
  }

  /** S5: a compaction needs an idle session. Beside another run it is left to the next invocation. */
  async #schedule(decision: NonNullable<CompactionDecision>): Promise<void> {
    const ctx = this.#ctx;
    if ("event" in decision) ctx.emitEvent(decision.event, this.#turn);
    else if (!(await ctx.hasOtherRuns())) ctx.report({ next: [decision.next] });
  }

  async #keep(history: HistoryProvider, key: HistoryKey, result: AgentRunResult): Promise<void> {
    const ctx = this.#ctx;
    // The provider replaces what this run has appended before, so the messages of earlier tasks are passed again.
    const said = [...this.#turn.earlier, ...(this.#isInputKept ? this.#said(result) : none)];
    await ctx.step("history", async () => {
      await history.append(key, ctx.facts.runId, said, ctx.meta);
      return null;
    });
  }

  #reportMetadata(): void {
    const { metadata } = this.#session;
    if (Object.keys(metadata).length > 0) this.#ctx.report({ metadata: { ...metadata } });
  }

  /** Whether output guardrails exist; output that they have not checked is not reported. */
  get #guardsOutput(): boolean {
    return this.#plan.guardrails.some((guardrail) => guardrail.onOutput !== undefined);
  }

  #dependencies(): Dependencies {
    const { agent, memory, permissions, hooks, telemetry, ephemeral, check } = this.#plan;
    const { compaction, window, maxTurns, steering, followUps, prepareStep, stopWhen } = this.#plan;
    const ctx = this.#ctx;
    const hasStrategy = (compaction?.strategy ?? null) !== null;
    const { output: schema } = this.#given;
    const historyIn = (scope: RunContext): PromptHistory =>
      new PromptHistory({
        agentId: ctx.agentId,
        history: this.#sessions,
        // F1: without a strategy, the model sees the whole session until a request exceeds its context window.
        ...(window !== null && { [hasStrategy ? "window" : "overflowWindow"]: () => window(scope) }),
      });
    const parts: InvocationParts = {
      agent,
      memory,
      permissions,
      hooks,
      telemetry,
      ephemeral,
      check,
      historyIn,
      compaction,
      sessionId: ctx.facts.sessionId,
      sessions: this.#sessions,
      budget: new TaskBudget(ctx),
      layers: this.#plan.pipeline.names,
      specs: this.#turn.tools,
      streaming: ctx.streaming,
      replies: this.#session.replies,
      settings: ctx.settings,
    };
    return new InvocationDependencies(parts, {
      ctx,
      history: historyIn(ctx),
      role: this.#turn.role,
      extra: none,
      watchers: none,
      maxTurns,
      steering,
      isSteered: this.#turn.isSteered,
      followUps,
      prepareStep,
      stopWhen,
      outputFormat: schema === undefined ? null : formatOf(schema),
    });
  }
}

const none: readonly never[] = [];

function tripped({ reason }: TrippedGuardrail, output: string): AgentRunResult {
  return { output, status: "guardrail_tripped", interruptionReason: reason };
}
