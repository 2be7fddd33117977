import {
  agentSession,
  assistantMessage,
  eventDraft,
  modelFor,
  parseSessionId,
  type AgentSession,
  type Architecture,
  type Dependencies,
  type DrainMode,
  type EphemeralSource,
  type Guardrail,
  type HistoryKey,
  type HistoryProvider,
  type JsonValue,
  type PromptSource,
  type RunContext,
  type Transcript,
  type Turn,
} from "../kernel/index.ts";
import { opening, type ReadInput } from "./agent-input.ts";
import { fitAnswer, formatOf, withFormat, type SchemaCheck } from "./answer-format.ts";
import { closeInvocation, stopOf, type Place } from "./closing.ts";
import { GuardedRun, withAnswer, type Tripped } from "./guardrails/guarded-run.ts";
import { InvocationDependencies, specOf, type InvocationParts } from "./invocation-dependencies.ts";
import { runThrough, type AgentRunResult } from "./middleware/agent-run.ts";
import type { MiddlewarePipeline } from "./middleware/pipeline.ts";
import type { PromptWindow } from "./compaction/prompt-window.ts";
import { OpenSessions, PromptHistory } from "./prompt-history.ts";
import { unanswered } from "./said-entries.ts";
import { heardFromHooks, hookEvent, type StopHook } from "./stop-hook.ts";
import { TaskBudget } from "./task-budget.ts";

/** What an agent goes by in each of its invocations. */
export interface InvocationPlan extends Pick<
  InvocationParts,
  "agent" | "memory" | "permissions" | "hooks" | "telemetry" | "auditLog"
> {
  readonly steering: DrainMode;
  readonly followUps: DrainMode;
  readonly architecture: Architecture;
  readonly instructions: string | Pick<PromptSource, "build">;
  readonly maxTurns: number;
  readonly ephemeral: readonly EphemeralSource[];
  readonly guardrails: readonly Guardrail[];
  readonly pipeline: MiddlewarePipeline;
  readonly stopHooks: readonly StopHook[];
  readonly window: ((ctx: RunContext) => PromptWindow) | undefined;
  readonly history: HistoryProvider | undefined;
  readonly check: SchemaCheck;
}

/** How often stop hooks may send an invocation on. */
const maxContinuations = 15;

/** One invocation, from what is asked to what is said. `place` tells those of one task apart. */
export async function invokeIn(
  plan: InvocationPlan,
  ctx: RunContext,
  given: ReadInput,
  place: Place = { number: 0, kept: [] },
): Promise<JsonValue> {
  const turn = await beginTurn(plan, ctx, given, place);
  return new Invocation(plan, ctx, given, turn, place).run();
}

class Invocation {
  readonly #plan: InvocationPlan;
  readonly #ctx: RunContext;
  readonly #given: ReadInput;
  readonly #turn: Turn;
  readonly #place: Place;
  readonly #sessions = new OpenSessions();
  #deps: Dependencies;
  #session: AgentSession;
  /** What the architecture is to answer, and how much had been said by then. */
  #prompt: string;
  #roundFrom: number;
  #thought: AgentRunResult | undefined;

  constructor(plan: InvocationPlan, ctx: RunContext, given: ReadInput, turn: Turn, place: Place) {
    this.#plan = plan;
    this.#ctx = ctx;
    this.#given = given;
    this.#turn = turn;
    this.#place = place;
    this.#session = this.#begin();
    this.#prompt = given.prompt;
    this.#roundFrom = turn.history.length;
    this.#deps = this.#dependencies();
  }

  async run(): Promise<JsonValue> {
    const { guardrails, architecture, pipeline } = this.#plan;
    const { input, instructionsHash } = this.#turn;
    const ctx = this.#ctx;
    if (!this.#guardsOutput) ctx.report({ output: () => this.#session.output || undefined });
    ctx.tell(eventDraft("agent_start", { input, architecture: architecture.name, instructionsHash }));
    const guarded = new GuardedRun(guardrails, ctx);
    try {
      const refused = await guarded.input(this.#given.prompt);
      let result =
        refused === undefined
          ? await runThrough(pipeline.agent, ctx, () => this.#thinking())
          : tripped(refused, "");
      if (refused === undefined) {
        this.#adopt(result);
        const withheld = await guarded.output(textOf(result.output));
        if (withheld !== undefined) {
          this.#session.messages = withAnswer(this.#session.messages, withheld.reason);
          result = tripped(withheld, withheld.reason);
        }
      }
      await this.#close(result);
      return result.output;
    } catch (error) {
      const session = this.#session;
      this.#reportMetadata();
      const stop = stopOf(error);
      if (stop !== undefined) {
        const output = this.#guardsOutput ? "" : session.output;
        this.#say(this.#prompt, output);
        closeInvocation(ctx, session, this.#turn, this.#place, {
          output,
          isStopped: true,
          ...stop,
        });
      }
      throw error;
    }
  }

  #begin(): AgentSession {
    const { instructions, history } = this.#turn;
    const { attachments } = this.#given;
    const id = this.#ctx.facts.sessionId;
    return this.#sessions.add(agentSession({ id, instructions, messages: history, attachments }));
  }

  /** A layer that asks twice is answered by two conversations: nothing of the first is in the other, nor in what is shown of it. */
  async #thinking(): Promise<AgentRunResult> {
    this.#session = this.#begin();
    this.#deps = this.#dependencies();
    this.#thought = undefined;
    this.#thought = await this.#think();
    return this.#thought;
  }

  async #think(): Promise<AgentRunResult> {
    const { architecture, stopHooks, check, agent } = this.#plan;
    const session = this.#session;
    const ctx = this.#ctx;
    this.#prompt = this.#given.prompt;
    for (let continued = 0; ; continued++) {
      this.#roundFrom = session.messages.length;
      for await (const draft of architecture.run(session, this.#deps, this.#prompt)) ctx.tell(draft);
      if (session.interrupted || stopHooks.length === 0) break;
      const said = await heardFromHooks(stopHooks, ctx, session, continued);
      if (said === undefined) break;
      if (continued === maxContinuations) {
        ctx.tell(hookEvent("exhausted", { continued }));
        session.interrupted = true;
        session.interruptionReason = "max_continuations";
        break;
      }
      this.#say(this.#prompt);
      this.#prompt = said;
    }
    const { output: schema } = this.#given;
    const { interrupted, interruptionReason } = session;
    if (interrupted) {
      const status = interruptionReason?.startsWith("max_") === true ? "max_turns" : "failed";
      return { output: session.output, status, interruptionReason };
    }
    if (schema === undefined)
      return { output: session.output, status: "completed", interruptionReason: null };
    this.#say(this.#prompt);
    const canAsk = modelFor(agent, this.#deps.role) !== undefined;
    const output = await fitAnswer(session, this.#deps, schema, { check, canAsk });
    return { output, status: "completed", interruptionReason: null };
  }

  /** An architecture may leave the conversation to its agent: then it was a question and an answer. */
  #say(prompt: string, answer: string = this.#session.output): void {
    const session = this.#session;
    const said = session.messages.slice(this.#roundFrom);
    const isAnswered = answer === "" || said.some(({ role }) => role === "assistant");
    session.messages = session.messages.append(
      ...(said.length > 0 ? [] : [opening(prompt, session.attachments)]),
      ...(isAnswered ? [] : [assistantMessage(answer)]),
    );
    session.attachments = [];
  }

  /** What a layer made of the answer is what was said. */
  #adopt(result: AgentRunResult): void {
    const session = this.#session;
    const answer = textOf(result.output);
    if (this.#thought === undefined) session.messages = this.#answeredInPlace(result);
    else {
      this.#say(this.#prompt, answer);
      if (result.output !== this.#thought.output) session.messages = withAnswer(session.messages, answer);
    }
  }

  /** A layer answered without letting the agent think, or when it had failed half way. */
  #answeredInPlace({ output }: AgentRunResult): Transcript {
    const { messages, settled } = this.#session;
    const asked = messages.length === this.#turn.history.length ? [this.#given.message] : [];
    const open = unanswered(messages.at(-1), { reason: "answered in its place", settled });
    return messages.append(...asked, ...(open === undefined ? [] : [open]), assistantMessage(textOf(output)));
  }

  async #close(result: AgentRunResult): Promise<void> {
    const ctx = this.#ctx;
    const { status, interruptionReason } = result;
    const { messages } = this.#session;
    if (status === "max_turns" || status === "guardrail_tripped" || status === "failed")
      ctx.report({ interruption: { status, reason: interruptionReason ?? status } });
    this.#reportMetadata();
    const { history: kept } = this.#plan;
    const key = historyKey(ctx, this.#turn.sessionId, this.#place);
    if (kept !== undefined && key !== undefined) {
      const said = messages.slice(this.#turn.history.length);
      await ctx.step("history", async () => {
        await kept.append(key, ctx.facts.runId, said);
        return null;
      });
    }
    closeInvocation(ctx, this.#session, this.#turn, this.#place, result);
  }

  #reportMetadata(): void {
    const { metadata } = this.#session;
    if (Object.keys(metadata).length > 0) this.#ctx.report({ metadata: { ...metadata } });
  }

  /** What has not been looked at yet is not given out. */
  get #guardsOutput(): boolean {
    return this.#plan.guardrails.some((guardrail) => guardrail.onOutput !== undefined);
  }

  #dependencies(): Dependencies {
    const { window, maxTurns, steering, followUps, ...parts } = this.#plan;
    const ctx = this.#ctx;
    const { output: schema } = this.#given;
    const historyIn = (scope: RunContext): PromptHistory =>
      new PromptHistory({
        agentId: ctx.agentId,
        history: this.#sessions,
        ...(window && { window: () => window(scope) }),
      });
    const outputFormat = schema === undefined ? null : formatOf(schema);
    return new InvocationDependencies(
      {
        ...parts,
        historyIn,
        sessionId: ctx.facts.sessionId,
        sessions: this.#sessions,
        budget: new TaskBudget(ctx),
        specs: this.#turn.tools,
        streaming: ctx.streaming,
      },
      {
        ctx,
        history: historyIn(ctx),
        role: "main",
        extra: [],
        watchers: [],
        maxTurns,
        steering,
        followUps,
        outputFormat,
      },
    );
  }
}

function beginTurn(
  { agent, instructions, history }: InvocationPlan,
  ctx: RunContext,
  given: ReadInput,
  place: Place,
): Promise<Turn> {
  const isRoot = ctx.meta.supervision?.parentId == null;
  return ctx.turn(async ({ input, sessionId, channel }) => {
    const specs = (agent.tools ?? []).map(specOf);
    const toolNames = specs.map(({ name }) => name);
    const built =
      typeof instructions === "string"
        ? { text: instructions, fromCache: false }
        : await instructions.build({ channel, sessionId, toolNames });
    // A user's input is no place for orders to the agent; its employer's is.
    const brief = isRoot ? undefined : given;
    const text = [built.text, brief?.instructions ?? ""].filter((part) => part !== "").join("\n\n");
    const key = historyKey(ctx, sessionId, place);
    const before = brief?.history ?? (key && (await history?.read(key)));
    return {
      input,
      instructions: given.output === undefined ? text : withFormat(text, given.output),
      fromCache: built.fromCache,
      tools: specs,
      ...(before && { history: [...before] }),
    };
  });
}

/**
 * Where a history of the application's own keeps a conversation: as the runtime's sessions do, so that no worker, user or asker sees what
 * another said. `undefined`: it is not to be kept.
 */
function historyKey(
  { agentId }: RunContext,
  sessionId: Turn["sessionId"],
  { number }: Place,
): HistoryKey | undefined {
  if (sessionId === null) return undefined;
  return { agentId, sessionId: number === 0 ? sessionId : parseSessionId(`${sessionId}/${number}`) };
}

function tripped({ reason }: Tripped, output: string): AgentRunResult {
  return { output, status: "guardrail_tripped", interruptionReason: reason };
}

function textOf(output: JsonValue): string {
  return typeof output === "string" ? output : JSON.stringify(output);
}
