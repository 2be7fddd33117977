import {
  agentSession,
  assistantMessage,
  eventDraft,
  Fault,
  formatAgentId,
  performedBefore,
  userMessage,
  type Agent,
  type AgentSession,
  type CompactionStrategy,
  type EphemeralSource,
  type EventDraft,
  type EventObserver,
  type ExecutionBudget,
  type Guardrail,
  type HookRegistry,
  type JsonValue,
  type Model,
  type Permissions,
  type PromptSource,
  type RunContext,
  type Tool,
  type Transcript,
  type Turn,
} from "../kernel/index.ts";
import { react } from "./architectures/react.ts";
import { composeGate } from "./gate/compose-gate.ts";
import type { ToolExtension } from "./gate/extension-layer.ts";
import { GuardedRun, withAnswer, withGuardrailModels, type Tripped } from "./guardrails/guarded-run.ts";
import { PromptWindow } from "./compaction/prompt-window.ts";
import { summarizeIn, type Summarizer } from "./compaction/summarizer.ts";
import { runThrough, type AgentRunResult } from "./middleware/agent-run.ts";
import type { Layer } from "./middleware/layer.ts";
import { MiddlewarePipeline } from "./middleware/pipeline.ts";
import { saidEntries, unanswered } from "./said-entries.ts";

export interface SoloAgentOptions {
  readonly name: string;
  readonly model: Model;
  /** Asked once for each invocation, which goes by them to its end. */
  readonly instructions?: string | Pick<PromptSource, "build">;
  readonly tools?: readonly Tool[];
  readonly maxTurns?: number;
  readonly budget?: Partial<ExecutionBudget>;
  /** Live state the model is shown before each turn and nobody keeps, such as a browser's. */
  readonly ephemeral?: readonly EphemeralSource[];
  /** Who watches it: a `HookManager`. */
  readonly hooks?: EventObserver;
  /** Asked in this order, at the stages they have a method for. */
  readonly guardrails?: readonly Guardrail[];
  readonly permissions?: Permissions;
  /** What has a say at the tool gate beside them: may block a call or patch its result. */
  readonly extensions?: readonly ToolExtension[];
  /** Hooks of the tool gate. */
  readonly toolHooks?: HookRegistry;
  /** What the model is shown of a long conversation. The summariser is paid by the run. */
  readonly compaction?: (summarize: Summarizer) => CompactionStrategy;
  /** The first is outermost, at each level it is for. */
  readonly middleware?: readonly Layer[];
}

/** An agent that thinks by ReAct and works alone: one model, its tools, one answer. It goes on with what its session says. */
export function soloAgent(options: SoloAgentOptions): Agent {
  const { name, model, tools = [], maxTurns = 25, budget = {} } = options;
  const { middleware = [], compaction, guardrails = [], extensions = [] } = options;
  const { permissions, toolHooks, hooks: observer } = options;
  const pipeline = new MiddlewarePipeline(middleware);
  const gate = composeGate({
    guardrails,
    extensions,
    ...(permissions && { permissions }),
    ...(toolHooks && { hooks: toolHooks }),
  });
  const callPath = pipeline.callPath({ ...(gate && { gate }), ...(observer && { observer }) });

  // What has not been looked at yet is not given out.
  const guardsOutput = guardrails.some((guardrail) => guardrail.onOutput !== undefined);

  async function think(ctx: RunContext, session: AgentSession, turn: Turn): Promise<AgentRunResult> {
    const window = compaction && promptWindow(ctx, compaction);
    const deps = {
      ctx,
      tools: { list: () => turn.tools },
      maxTurns,
      ...(options.ephemeral && { ephemeral: options.ephemeral }),
      ...(window && { window }),
    };
    for await (const draft of react().run(session, deps, turn.input as string)) {
      ctx.tell(draft);
      if (session.output !== "" && !guardsOutput) ctx.report({ output: session.output });
    }
    const { output, interrupted, interruptionReason } = session;
    return { output, status: interrupted ? "max_turns" : "completed", interruptionReason };
  }

  return {
    id: formatAgentId({ name }),
    models: withGuardrailModels({ main: model, ...(compaction && { [summaryRole]: model }) }, guardrails),
    tools,
    budget,
    ...(callPath && { callPath }),
    messageOf: (input) => (typeof input === "string" ? userMessage(input) : undefined),
    run: async (ctx) => {
      const turn = await beginTurn(ctx, options);
      const { instructions, instructionsHash, history } = turn;
      const input = turn.input as string;
      const begin = (): AgentSession =>
        agentSession({ id: ctx.facts.sessionId, instructions, messages: history });
      let session = begin();
      let thought: AgentRunResult | undefined;
      const thinking = async (): Promise<AgentRunResult> => {
        session = begin();
        thought = undefined;
        thought = await think(ctx, session, turn);
        return thought;
      };
      ctx.tell(eventDraft("agent_start", { input, architecture: "react", instructionsHash }));
      const guarded = new GuardedRun(guardrails, ctx);
      try {
        const refused = await guarded.input(input);
        let result =
          refused === undefined ? await runThrough(pipeline.agent, ctx, thinking) : tripped(refused, "");
        if (refused === undefined) {
          if (thought === undefined) session.messages = answeredInPlace(session, turn, result);
          else if (result.output !== thought.output)
            session.messages = withAnswer(session.messages, textOf(result.output));
          const withheld = await guarded.output(textOf(result.output));
          if (withheld !== undefined) {
            session.messages = withAnswer(session.messages, withheld.reason);
            result = tripped(withheld, withheld.reason);
          }
        }
        const { status, interruptionReason } = result;
        if (status === "max_turns" || status === "guardrail_tripped")
          ctx.report({ interruption: { status, reason: interruptionReason ?? status } });
        close(ctx, session, { turn, ...result });
        return result.output;
      } catch (error) {
        const stop = stopOf(error);
        if (stop !== undefined)
          close(ctx, session, { turn, output: session.output, isStopped: true, ...stop });
        throw error;
      }
    },
  };
}

/** A role of its own: layers tell a summary from an answer by it, and a `route` may ask a cheaper model. */
const summaryRole = "summary";

interface Closing extends AgentRunResult {
  readonly turn: Turn;
  /** In the middle of things: calls may be open. */
  readonly isStopped?: boolean;
  readonly performed?: string | undefined;
}

function tripped({ reason }: Tripped, output: string): AgentRunResult {
  return { output, status: "guardrail_tripped", interruptionReason: reason };
}

/** That the model is shown less than was said is told in the log. */
function promptWindow(
  ctx: RunContext,
  compaction: NonNullable<SoloAgentOptions["compaction"]>,
): PromptWindow {
  return new PromptWindow(compaction(summarizeIn(ctx, { role: summaryRole })), (change) =>
    ctx.tell(
      eventDraft("architecture_event", {
        architecture: "react",
        name: "react.messages_snipped",
        data: { ...change },
      }),
    ),
  );
}

/** A layer answered without letting the agent think, or when it had failed half way. */
function answeredInPlace(
  { messages, settled }: AgentSession,
  { history, input }: Turn,
  { output }: AgentRunResult,
): Transcript {
  const asked = messages.length === history.length ? [userMessage(input as string)] : [];
  const open = unanswered(messages.at(-1), { reason: "answered in its place", settled });
  return messages.append(...asked, ...(open === undefined ? [] : [open]), assistantMessage(textOf(output)));
}

function textOf(output: JsonValue): string {
  return typeof output === "string" ? output : JSON.stringify(output);
}

function beginTurn(
  ctx: RunContext,
  { name, instructions = "", tools = [] }: SoloAgentOptions,
): Promise<Turn> {
  return ctx.turn(async ({ input, sessionId }) => {
    if (typeof input !== "string") {
      throw new Fault("invalid_argument", `agent ${name} takes a text as its input`);
    }
    const specs = tools.map(({ name: toolName, description, inputSchema }) => ({
      name: toolName,
      description,
      inputSchema,
    }));
    if (typeof instructions === "string") return { input, instructions, tools: specs };
    const toolNames = specs.map((spec) => spec.name);
    const { text, fromCache } = await instructions.build({ channel: null, sessionId, toolNames });
    return { input, instructions: text, fromCache, tools: specs };
  });
}

/** S1: an invocation that was stopped is closed like one that came to its end. One that failed is not: it may be gone on with. */
function stopOf(error: unknown): Pick<Closing, "status" | "interruptionReason" | "performed"> | undefined {
  const fault = Fault.from(error);
  const { code, message: interruptionReason, details } = fault;
  if (code === "cancelled") {
    const status = details?.["status"] === "deadline_exceeded" ? "deadline_exceeded" : "cancelled";
    return { status, interruptionReason };
  }
  return code === "budget_exhausted" || code === "guardrail_tripped"
    ? { status: code, interruptionReason, performed: performedBefore(fault) }
    : undefined;
}

/** Commits with the end of the task: what was said is visible with the events that say so. */
function close(ctx: RunContext, session: AgentSession, closing: Closing): void {
  const { turn, isStopped = false, interruptionReason, performed } = closing;
  const { settled } = session;
  const stopped = isStopped ? { reason: interruptionReason ?? "stopped", settled, performed } : undefined;
  const { changes, leafId } = saidEntries(ctx, turn, session.messages.slice(turn.history.length), stopped);
  ctx.report({ sessions: changes });
  for (const draft of closingEvents(ctx, session, closing, leafId)) ctx.tell(draft);
}

function closingEvents(
  { facts: { sessionId } }: RunContext,
  { turns, cumulativeUsage: usage }: AgentSession,
  result: AgentRunResult,
  leafId: string | null,
): readonly EventDraft[] {
  const { status, interruptionReason } = result;
  const output = textOf(result.output);
  return [
    eventDraft("agent_end", { status, output, turns, usage, interruptionReason }),
    eventDraft("save_point", { sessionId, leafId }),
    eventDraft("settled", { sessionId }),
  ];
}
