import {
  agentSession,
  eventDraft,
  Fault,
  formatAgentId,
  type Agent,
  type AgentSession,
  type EventDraft,
  type ExecutionBudget,
  type Model,
  type PromptSource,
  type RunContext,
  type RunStatus,
  type SessionChange,
  type SessionEntry,
  type Tool,
  type Turn,
} from "../kernel/index.ts";
import { react } from "./architectures/react.ts";

export interface SoloAgentOptions {
  readonly name: string;
  readonly model: Model;
  /** Asked once for each invocation, which goes by them to its end. */
  readonly instructions?: string | Pick<PromptSource, "build">;
  readonly tools?: readonly Tool[];
  readonly maxTurns?: number;
  readonly budget?: Partial<ExecutionBudget>;
}

/** An agent that thinks by ReAct and works alone: one model, its tools, one answer. It goes on with what its session says. */
export function soloAgent(options: SoloAgentOptions): Agent {
  const { name, model, tools = [], maxTurns = 25, budget = {} } = options;
  return {
    id: formatAgentId({ name }),
    models: { main: model },
    tools,
    budget,
    run: async (ctx) => {
      const turn = await beginTurn(ctx, options);
      const { instructions, instructionsHash, history } = turn;
      const prompt = turn.input as string;
      const session = agentSession({ id: ctx.facts.sessionId, instructions, messages: history });
      ctx.tell(eventDraft("agent_start", { input: prompt, architecture: "react", instructionsHash }));
      const deps = { ctx, tools: { list: () => turn.tools }, maxTurns };
      for await (const draft of react().run(session, deps, prompt)) {
        ctx.tell(draft);
        if (session.output !== "") ctx.report({ output: session.output });
      }
      if (session.interrupted) {
        const reason = session.interruptionReason ?? "interrupted";
        ctx.report({ interruption: { status: "max_turns", reason } });
      }
      const entries = entriesOf(ctx, session, turn);
      ctx.report({ sessions: entries.flatMap((entry) => appended(ctx, turn, entry)) });
      for (const draft of closing(ctx, session, entries.at(-1)?.id ?? null)) ctx.tell(draft);
      return session.output;
    },
  };
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

/**
 * What was said now, one entry after another, after what was said before. The ids follow from the task, so that whoever writes them
 * again writes the same.
 */
function entriesOf(
  { facts, taskId }: RunContext,
  session: AgentSession,
  { history, leafId, at }: Turn,
): readonly SessionEntry[] {
  const { runId } = facts;
  const idOf = (index: number): string => `${runId}/${taskId}/${index}`;
  return session.messages.slice(history.length).map((message, index) => ({
    type: "message",
    id: idOf(index),
    parentId: index === 0 ? leafId : idOf(index - 1),
    at,
    runId,
    message,
  }));
}

function appended({ agentId }: RunContext, { sessionId }: Turn, entry: SessionEntry): SessionChange[] {
  return sessionId === null ? [] : [{ type: "append", sessionId, agentId, entry, visibility: "visible" }];
}

function closing({ facts }: RunContext, session: AgentSession, leafId: string | null): readonly EventDraft[] {
  const { output, turns, cumulativeUsage: usage, interruptionReason, interrupted } = session;
  const status: RunStatus = interrupted ? "max_turns" : "completed";
  const { sessionId } = facts;
  return [
    eventDraft("agent_end", { status, output, turns, usage, interruptionReason }),
    eventDraft("save_point", { sessionId, leafId }),
    eventDraft("settled", { sessionId }),
  ];
}
