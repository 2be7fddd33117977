import {
  CancellationError,
  eventDraft,
  HistoryRetention,
  jsonText,
  modelFor,
  userMessage,
  type AgentSession,
  type ChatMessage,
  type Dependencies,
  type HistoryKey,
  type HistoryProvider,
  type Isolation,
  type JsonValue,
  type RunContext,
  type Turn,
} from "../../kernel/index.ts";
import { historyKey, planTurn } from "./plan-turn.ts";
import { checkContinuation, type ReadInput } from "../base/agent-input.ts";
import {
  acceptForm,
  acceptSchema,
  fitAnswer,
  formatOf,
  hasEvents,
  refuseEvents,
  requireTextOutput,
} from "../base/answer-format.ts";
import { type Place, closeInvocation, isSilent } from "./close-invocation.ts";
import { type Stop, stopOf } from "../base/interruption-status.ts";
import { decideCompaction, type CompactionDecision } from "../context/compaction/compaction-schedule.ts";
import { planExtendedTurn, withMessage } from "./extended-turn.ts";
import type { ExtensionHost } from "../interception/extensions/extension-host.ts";
import {
  GuardedRun,
  startGuardrails,
  type TrippedGuardrail,
} from "../interception/guardrails/guarded-run.ts";
import type { AgentPlan } from "../definition/agent-plan.ts";
import { PromptWindow, type WindowChange } from "../context/compaction/prompt-window.ts";
import { summaryRole } from "../context/compaction/summary-role.ts";
import type { CompactionPlan } from "../context/compaction/compaction-plan.ts";
import { dependenciesIn } from "./invocation-dependencies.ts";
import { runThrough, type AgentRunResult } from "../interception/middleware/agent-run.ts";
import { interruptionStatus, isInterruption, maxOutput } from "../base/interruption-status.ts";
import { InvocationConversation } from "./invocation-conversation.ts";
import { PromptHistory } from "../context/prompt-history.ts";
import { interruptedEnd } from "../base/interrupted-end.ts";
import { continuationFromHooks, hookEvent } from "../interception/turns/stop-hook.ts";
import { TaskBudget } from "./task-budget.ts";

/** Maximum number of times that stop hooks may continue one invocation. */
const maxContinuations = 15;

/** Executes one invocation. `place` is its index within the task. */
export function invokeIn(
  plan: AgentPlan,
  ctx: RunContext,
  input: ReadInput,
  place: Place = { number: 0, kept: [] },
): Promise<JsonValue> {
  const { extensions, guardrails } = plan;
  startGuardrails(guardrails, ctx);
  if (extensions !== undefined) return invokeExtended(plan, extensions, ctx, input, place);
  return ctx
    .turn((start) => planTurn(plan, ctx, input, place, start))
    .then((turn) => {
      if (input.message === undefined) checkContinuation(ctx, turn);
      return new Invocation(plan, ctx, input, turn, place).run();
    });
}

/** Executes one invocation of an agent with extensions, whose handlers may change or handle the input. */
async function invokeExtended(
  plan: AgentPlan,
  host: ExtensionHost,
  ctx: RunContext,
  input: ReadInput,
  place: Place,
): Promise<JsonValue> {
  const turn = await ctx.turn(
    (start, scoped) => planExtendedTurn(plan, host, ctx, input, place, start, scoped),
    { withSteps: true },
  );
  host.notePrompt(ctx, turn.instructions);
  if (input.message === undefined) checkContinuation(ctx, turn);
  const read = turn.isTransformed ? withMessage(input, turn.input) : input;
  const invocation = new Invocation(plan, ctx, read, turn, place);
  return turn.handled === null ? invocation.run() : invocation.answer(turn.handled.reply);
}

class Invocation {
  readonly #plan: AgentPlan;
  readonly #ctx: RunContext;
  readonly #input: ReadInput;
  readonly #turn: Turn;
  readonly #place: Place;
  readonly #conversation: InvocationConversation;
  /** The dependencies of the architecture. Created when the architecture runs for the first time. */
  #deps: Dependencies | undefined;
  /** The result of the architecture, before middleware changes it. `undefined` until the architecture has ended. */
  #ownResult: AgentRunResult | undefined;
  /** What the input guardrails have decided. */
  #verdict: "accepted" | "refused" | undefined;
  /** The guardrail that withheld the output. */
  #withheldBy: string | undefined;
  #isClosed = false;

  constructor(plan: AgentPlan, ctx: RunContext, input: ReadInput, turn: Turn, place: Place) {
    this.#plan = plan;
    this.#ctx = ctx;
    this.#input = input;
    this.#turn = turn;
    this.#place = place;
    const { agent } = plan;
    const { sessionId } = ctx.facts;
    this.#conversation = new InvocationConversation({ agent, sessionId, input, turn });
    if (input.message === undefined || plan.guardrails.every((each) => each.onInput === undefined))
      this.#verdict = "accepted";
  }

  async run(): Promise<JsonValue> {
    const { agent, guardrails, architecture, pipeline } = this.#plan;
    const { input, instructionsHash } = this.#turn;
    const ctx = this.#ctx;
    const abandoned = (stop: unknown): void => this.#closeStopped(stop);
    if (this.#guardsOutput) ctx.report({ abandoned });
    else ctx.report({ output: () => this.#conversation.stoppedOutput || undefined, abandoned });
    const start = eventDraft("agent_start", { input, architecture: architecture.name, instructionsHash });
    ctx.emitEvent(start, this.#turn);
    const guarded = guardrails.length === 0 ? undefined : new GuardedRun(guardrails, ctx);
    try {
      const refused = guarded && (await guarded.input(this.#input.message && this.#input.prompt));
      this.#verdict = refused === undefined ? "accepted" : "refused";
      let result =
        refused === undefined
          ? await runThrough(pipeline.agent, ctx, agent, () => this.#runArchitecture())
          : tripped(refused, "");
      if (refused === undefined) {
        this.#conversation.adopt(result.output, this.#ownResult);
        const withheld = guarded && (await guarded.output(jsonText(result.output)));
        if (withheld !== undefined) {
          this.#conversation.replaceAnswer(withheld.reason);
          this.#withheldBy = withheld.guardrail;
          result = tripped(withheld, withheld.reason);
        }
      }
      if (this.#plan.isolation !== null) await this.#finishFolder(this.#plan.isolation);
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
   * Ends an invocation whose input an extension has handled, without a model call. With a reply, the session gets
   * the message and the reply; without a reply it gets neither.
   */
  async answer(reply: string | null): Promise<JsonValue> {
    this.#verdict = reply === null ? "refused" : "accepted";
    if (reply !== null) this.#conversation.completeRound(reply);
    const output = reply ?? "";
    if (this.#plan.isolation !== null) await this.#finishFolder(this.#plan.isolation);
    await this.#close(completed(output));
    return output;
  }

  /** S1: ends a stopped invocation exactly once, either by the invocation itself or when its code is abandoned. */
  #closeStopped(error: unknown): void {
    if (this.#isClosed) return;
    this.#reportMetadata();
    const isGuarded = this.#guardsOutput;
    const conversation = this.#conversation;
    const partial = error instanceof CancellationError ? error.partial : "";
    if (partial !== "" && !isGuarded) conversation.keepPartial(partial);
    const stop = stopOf(error);
    if (stop === undefined) return;
    conversation.completeRound(isGuarded ? "" : conversation.session.output);
    const { status, interruptionReason } = stop;
    const output = isGuarded ? "" : conversation.stoppedOutput;
    this.#end({ output, status, interruptionReason }, stop);
  }

  #end(result: AgentRunResult, stop?: Stop): void {
    this.#isClosed = true;
    const isStopped = stop !== undefined;
    const isKept = this.#isInputKept && !isSilent(this.#ctx, result);
    const messages = isKept ? this.#addedMessages(result, stop) : null;
    const { reviewers } = this.#plan;
    const closing = { ...result, messages, isStopped, reviewers };
    closeInvocation(this.#ctx, this.#turn, this.#place, closing);
  }

  /**
   * Whether the input stays in the session. Input that no guardrail has checked does not, because the next invocation
   * would see it. Messages before the input are never checked, so they keep theirs until it is refused.
   */
  get #isInputKept(): boolean {
    const { earlier } = this.#input;
    return this.#verdict === undefined ? earlier !== undefined : this.#verdict === "accepted";
  }

  /**
   * S1: returns the messages that this invocation adds to the conversation. An interrupted one ends with a text
   * that says so.
   */
  #addedMessages({ status, interruptionReason }: AgentRunResult, stop?: Stop): readonly ChatMessage[] {
    const { added, omitsInterruption, session } = this.#conversation;
    if (status === "completed" || (added.length === 0 && omitsInterruption)) return added;
    return interruptedEnd(added, {
      status,
      reason: interruptionReason ?? "stopped",
      settled: session.settled,
      performed: stop?.performed,
      by: stop?.by ?? this.#withheldBy,
      isUnchecked: stop !== undefined && this.#guardsOutput,
    });
  }

  /** Runs the architecture. If middleware calls it twice, each call gets a new conversation. */
  async #runArchitecture(): Promise<AgentRunResult> {
    if (this.#deps !== undefined) this.#conversation.restart();
    this.#deps = this.#dependencies();
    this.#ownResult = undefined;
    this.#ownResult = await this.#runRounds(this.#deps);
    return this.#ownResult;
  }

  async #runRounds(deps: Dependencies): Promise<AgentRunResult> {
    const { architecture, check, agent } = this.#plan;
    const conversation = this.#conversation;
    const { session } = conversation;
    const { output: schema } = this.#input;
    if (schema !== undefined) {
      acceptForm(agent, architecture);
      await acceptSchema(check, schema);
    }
    let prompt: string | undefined = this.#input.prompt;
    for (let round = 0; prompt !== undefined; round++) {
      conversation.startRound(prompt);
      const events: unknown = architecture.run(session, deps, prompt);
      if (!hasEvents(events)) return refuseEvents(events, architecture);
      for await (const draft of events) this.#ctx.emitEvent(draft);
      requireTextOutput(session, architecture);
      prompt = await this.#nextPrompt(session, round);
    }
    if (session.interrupted) return this.#interrupted(session.interruptionReason);
    if (conversation.finishReason === "length") return this.#interrupted(maxOutput);
    if (schema === undefined) return completed(conversation.output);
    conversation.completeRound();
    session.output = conversation.output;
    const canAsk = modelFor(agent, deps.role) !== undefined;
    const fitted = await fitAnswer(session, deps, schema, { check, canAsk });
    return fitted === undefined ? this.#interrupted(maxOutput) : completed(fitted.value);
  }

  /**
   * Returns the prompt with which a stop hook continues the invocation after this round. `undefined` if the
   * invocation ends.
   */
  async #nextPrompt(session: AgentSession, round: number): Promise<string | undefined> {
    const { stopHooks } = this.#plan;
    const ctx = this.#ctx;
    if (session.interrupted || stopHooks.length === 0) return undefined;
    const prompt = await continuationFromHooks(stopHooks, ctx, session, round);
    if (prompt === undefined) return undefined;
    if (round === maxContinuations) {
      ctx.emitEvent(hookEvent("exhausted", { continued: round }));
      session.interrupted = true;
      session.interruptionReason = "max_continuations";
      return undefined;
    }
    this.#conversation.completeRound();
    ctx.emitEvent(eventDraft("user_message", { message: userMessage(prompt), source: "stop_hook" }));
    return prompt;
  }

  #interrupted(interruptionReason: string | null): AgentRunResult {
    const status = interruptionStatus(interruptionReason);
    return { output: this.#conversation.stoppedOutput, status, interruptionReason };
  }

  /** Ends the invocation. Returns a promise only if the application keeps the history. */
  #close(result: AgentRunResult): Promise<void> | undefined {
    const ctx = this.#ctx;
    const { status, interruptionReason } = result;
    if (isInterruption(status))
      ctx.report({ interruption: { status, reason: interruptionReason ?? status } });
    const { finishReason } = this.#conversation;
    if (finishReason !== null) ctx.report({ finishReason });
    this.#reportMetadata();
    const { history } = this.#plan;
    const key = history === null ? undefined : historyKey(ctx, this.#turn.sessionId, this.#place);
    const isKept = ctx.meta.supervision?.retention !== HistoryRetention.NONE && !isSilent(ctx, result);
    const compaction = this.#decideCompaction();
    if (history !== null && key !== undefined && isKept)
      return this.#keep(history, key, result).then(() => this.#end(result));
    if (compaction !== undefined) return this.#schedule(compaction).then(() => this.#end(result));
    this.#end(result);
    return undefined;
  }

  /**
   * Records the work that the task has left in its folder, before the last invocation of the task ends. A stopped
   * task does not do this, because it may be resumed and continue its work.
   */
  async #finishFolder(isolation: Isolation): Promise<void> {
    const ctx = this.#ctx;
    const { folder, taskId } = ctx;
    if (this.#place.isFollowed === true || folder?.taskId !== taskId) return;
    ctx.report({ work: await isolation.finish(ctx, folder) });
  }

  #decideCompaction(): CompactionDecision {
    if (this.#place.number > 0) return undefined;
    const { compaction: plan, history } = this.#plan;
    const { compactionInstructions: instructions } = this.#input;
    const hasOwnHistory = history !== null;
    return decideCompaction({
      ctx: this.#ctx,
      session: this.#conversation.session,
      turn: this.#turn,
      plan,
      instructions,
      hasOwnHistory,
    });
  }

  /**
   * S5: schedules a compaction, which needs an idle session. If the session has another run, the compaction is left
   * to the next invocation.
   */
  async #schedule(decision: NonNullable<CompactionDecision>): Promise<void> {
    const ctx = this.#ctx;
    if ("event" in decision) ctx.emitEvent(decision.event, this.#turn);
    else if (!(await ctx.hasOtherRuns())) ctx.report({ next: [decision.next] });
  }

  async #keep(history: HistoryProvider, key: HistoryKey, result: AgentRunResult): Promise<void> {
    const ctx = this.#ctx;
    // The provider replaces what this run has appended before, so the messages of earlier tasks are passed again.
    const messages = [...this.#turn.earlier, ...(this.#isInputKept ? this.#addedMessages(result) : none)];
    await ctx.step("history", async () => {
      await history.append(key, ctx.facts.runId, messages, ctx.meta);
      return null;
    });
  }

  #reportMetadata(): void {
    const { metadata } = this.#conversation.session;
    if (Object.keys(metadata).length > 0) this.#ctx.report({ metadata: { ...metadata } });
  }

  /** Whether the agent has output guardrails. If so, output that they have not checked is not reported. */
  get #guardsOutput(): boolean {
    return this.#plan.guardrails.some((guardrail) => guardrail.onOutput !== undefined);
  }

  #dependencies(): Dependencies {
    const plan = this.#plan;
    const ctx = this.#ctx;
    const turn = this.#turn;
    const { compaction, maxTurns } = plan;
    const { output: schema } = this.#input;
    const { sessions, session } = this.#conversation;
    // F1: without a strategy, the model sees the whole session until a request exceeds its context window.
    const kind = compaction?.strategy == null ? "overflowWindow" : "window";
    const historyIn = (scope: RunContext): PromptHistory =>
      new PromptHistory({
        agentId: ctx.agentId,
        history: sessions,
        ...(compaction !== null && { [kind]: () => promptWindow(scope, compaction) }),
      });
    const outputFormat = schema === undefined ? null : formatOf(schema);
    const budget = new TaskBudget(ctx);
    const extra = ctx.changes?.clientTools?.map((spec) => plan.clientTool(spec)) ?? none;
    return dependenciesIn(
      { plan, ctx, turn, sessions, historyIn, budget, outputFormat, replies: session.replies },
      { ctx, history: historyIn(ctx), role: turn.role, isMain: true, extra, watchers: none, maxTurns },
    );
  }
}

/**
 * Creates the prompt window of an invocation. It emits an event when the model sees less than the whole conversation.
 */
function promptWindow(ctx: RunContext, plan: CompactionPlan): PromptWindow {
  const onCompact = (change: WindowChange): void => {
    const data = { architecture: "agent", name: "agent.messages_snipped", data: { ...change } };
    ctx.emitEvent(eventDraft("architecture_event", data));
  };
  return new PromptWindow({ ctx, plan, role: summaryRole, onCompact });
}

const none: readonly never[] = [];

function completed(output: JsonValue): AgentRunResult {
  return { output, status: "completed", interruptionReason: null };
}

function tripped({ reason }: TrippedGuardrail, output: string): AgentRunResult {
  return { output, status: "guardrail_tripped", interruptionReason: reason };
}
