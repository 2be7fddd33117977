import {
  agentSession,
  assistantMessage,
  eventDraft,
  Fault,
  formatAgentId,
  Transcript,
  userMessage,
  type Agent,
  type AgentSession,
  type CompactionStrategy,
  type EventDraft,
  type ExecutionBudget,
  type Guardrail,
  type HookRegistry,
  type JsonValue,
  type Model,
  type Permissions,
  type RunContext,
  type SessionChange,
  type SessionEntry,
  type Tool,
} from "../kernel/index.ts";
import { react } from "./architectures/react.ts";
import { composeGate } from "./gate/compose-gate.ts";
import { GuardedRun, withGuardrailModels, withoutAnswer, type Tripped } from "./guardrails/guarded-run.ts";
import { PromptWindow } from "./compaction/prompt-window.ts";
import { summarizeIn, type Summarizer } from "./compaction/summarizer.ts";
import { runThrough, type AgentRunResult } from "./middleware/agent-run.ts";
import type { Layer } from "./middleware/layer.ts";
import { MiddlewarePipeline } from "./middleware/pipeline.ts";

export interface SoloAgentOptions {
  readonly name: string;
  readonly model: Model;
  readonly instructions?: string;
  readonly tools?: readonly Tool[];
  readonly maxTurns?: number;
  readonly budget?: Partial<ExecutionBudget>;
  /** Asked in this order, at the stages they have a method for. */
  readonly guardrails?: readonly Guardrail[];
  readonly permissions?: Permissions;
  /** Hooks of the tool gate. */
  readonly toolHooks?: HookRegistry;
  /** What the model is shown of a long conversation. The summariser is paid by the run. */
  readonly compaction?: (summarize: Summarizer) => CompactionStrategy;
  /** The first is outermost, at each level it is for. */
  readonly middleware?: readonly Layer[];
}

/** An agent that thinks by ReAct and works alone: one model, its tools, one answer. */
export function soloAgent(options: SoloAgentOptions): Agent {
  const { name, model, instructions = "", tools = [], maxTurns = 25, budget = {} } = options;
  const { middleware = [], compaction, guardrails = [], permissions, toolHooks: hooks } = options;
  const pipeline = new MiddlewarePipeline(middleware);
  const gate = composeGate({ guardrails, ...(permissions && { permissions }), ...(hooks && { hooks }) });
  const callPath = pipeline.callPath(gate && { gate });
  const specs = tools.map(({ name: toolName, description, inputSchema }) => ({
    name: toolName,
    description,
    inputSchema,
  }));

  // What has not been looked at yet is not given out.
  const guardsOutput = guardrails.some((guardrail) => guardrail.onOutput !== undefined);

  async function think(ctx: RunContext, session: AgentSession, input: string): Promise<AgentRunResult> {
    const window = compaction && promptWindow(ctx, compaction);
    const deps = { ctx, tools: { list: () => specs }, maxTurns, ...(window && { window }) };
    for await (const draft of react().run(session, deps, input)) {
      ctx.tell(draft);
      if (session.output !== "" && !guardsOutput) ctx.report({ output: session.output });
    }
    const { output, interrupted, interruptionReason } = session;
    return { output, status: interrupted ? "max_turns" : "completed", interruptionReason };
  }

  return {
    id: formatAgentId({ name }),
    models: withGuardrailModels({ main: model }, guardrails),
    tools,
    budget,
    ...(callPath && { callPath }),
    run: async (ctx) => {
      const { input } = ctx;
      if (typeof input !== "string") {
        throw new Fault("invalid_argument", `agent ${name} takes a text as its input`);
      }
      const begin = (): AgentSession => agentSession({ id: ctx.facts.sessionId, instructions });
      let session = begin();
      const thinking = (): Promise<AgentRunResult> => {
        session = begin();
        return think(ctx, session, input);
      };
      const at = await ctx.now();
      ctx.tell(eventDraft("agent_start", { input, architecture: "react" }));
      const guarded = new GuardedRun(guardrails, ctx);
      const refused = await guarded.input(input);
      let result =
        refused === undefined ? await runThrough(pipeline.agent, ctx, thinking) : tripped(refused, "");
      if (refused === undefined) {
        if (session.messages.length === 0) session.messages = answeredInPlace(input, result);
        const withheld = await guarded.output(textOf(result.output));
        if (withheld !== undefined) {
          session.messages = withoutAnswer(session.messages, withheld.reason);
          result = tripped(withheld, withheld.reason);
        }
      }
      const { status, interruptionReason } = result;
      if (status === "max_turns" || status === "guardrail_tripped")
        ctx.report({ interruption: { status, reason: interruptionReason ?? status } });
      const entries = entriesOf(ctx, session, at);
      ctx.report({ sessions: entries.map((entry) => appended(ctx, entry)) });
      for (const draft of closing(ctx, session, result, entries.at(-1)?.id ?? null)) ctx.tell(draft);
      return result.output;
    },
  };
}

function tripped({ reason }: Tripped, output: string): AgentRunResult {
  return { output, status: "guardrail_tripped", interruptionReason: reason };
}

/** That the model is shown less than was said is told in the log. */
function promptWindow(
  ctx: RunContext,
  compaction: NonNullable<SoloAgentOptions["compaction"]>,
): PromptWindow {
  return new PromptWindow(compaction(summarizeIn(ctx)), (change) =>
    ctx.tell(
      eventDraft("architecture_event", {
        architecture: "react",
        name: "react.messages_snipped",
        data: { ...change },
      }),
    ),
  );
}

/** A layer answered without letting the agent think. */
function answeredInPlace(input: string, { output }: AgentRunResult): Transcript {
  return Transcript.empty.append(userMessage(input)).append(assistantMessage(textOf(output)));
}

function textOf(output: JsonValue): string {
  return typeof output === "string" ? output : JSON.stringify(output);
}

/** What was said, one entry after another. The ids follow from the task, so that whoever writes them again writes the same. */
function entriesOf(
  { facts, taskId }: RunContext,
  session: AgentSession,
  at: number,
): readonly SessionEntry[] {
  const { runId } = facts;
  let parentId: string | null = null;
  return session.messages.slice().map((message, index): SessionEntry => {
    const id = `${runId}/${taskId}/${index}`;
    const entry: SessionEntry = { type: "message", id, parentId, at, runId, message };
    parentId = id;
    return entry;
  });
}

function appended({ facts, agentId }: RunContext, entry: SessionEntry): SessionChange {
  return { type: "append", sessionId: facts.sessionId, agentId, entry, visibility: "visible" };
}

function closing(
  { facts }: RunContext,
  { turns, cumulativeUsage: usage }: AgentSession,
  result: AgentRunResult,
  leafId: string | null,
): readonly EventDraft[] {
  const { status, interruptionReason } = result;
  const output = textOf(result.output);
  const { sessionId } = facts;
  return [
    eventDraft("agent_end", { status, output, turns, usage, interruptionReason }),
    eventDraft("save_point", { sessionId, leafId }),
    eventDraft("settled", { sessionId }),
  ];
}
