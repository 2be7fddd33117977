import {
  agentSession,
  eventDraft,
  Fault,
  formatAgentId,
  type Agent,
  type AgentSession,
  type EventDraft,
  type EventObserver,
  type ExecutionBudget,
  type Model,
  type RunContext,
  type RunStatus,
  type SessionChange,
  type SessionEntry,
  type Tool,
} from "../kernel/index.ts";
import { react } from "./architectures/react.ts";

export interface SoloAgentOptions {
  readonly name: string;
  readonly model: Model;
  readonly instructions?: string;
  readonly tools?: readonly Tool[];
  readonly maxTurns?: number;
  readonly budget?: Partial<ExecutionBudget>;
  /** Who watches it: a `HookManager`. */
  readonly hooks?: EventObserver;
}

/** An agent that thinks by ReAct and works alone: one model, its tools, one answer. */
export function soloAgent(options: SoloAgentOptions): Agent {
  const { name, model, instructions = "", tools = [], maxTurns = 25, budget = {}, hooks } = options;
  return {
    id: formatAgentId({ name }),
    models: { main: model },
    tools,
    budget,
    ...(hooks && { callPath: { observer: hooks } }),
    run: async (ctx) => {
      if (typeof ctx.input !== "string") {
        throw new Fault("invalid_argument", `agent ${name} takes a text as its input`);
      }
      const session = agentSession({ id: ctx.facts.sessionId, instructions });
      const specs = tools.map(({ name: toolName, description, inputSchema }) => ({
        name: toolName,
        description,
        inputSchema,
      }));
      const at = await ctx.now();
      ctx.tell(eventDraft("agent_start", { input: ctx.input, architecture: "react" }));
      const deps = { ctx, tools: { list: () => specs }, maxTurns };
      for await (const draft of react().run(session, deps, ctx.input)) {
        ctx.tell(draft);
        if (session.output !== "") ctx.report({ output: session.output });
      }
      if (session.interrupted) {
        const reason = session.interruptionReason ?? "interrupted";
        ctx.report({ interruption: { status: "max_turns", reason } });
      }
      const entries = entriesOf(ctx, session, at);
      ctx.report({ sessions: entries.map((entry) => appended(ctx, entry)) });
      for (const draft of closing(ctx, session, entries.at(-1)?.id ?? null)) ctx.tell(draft);
      return session.output;
    },
  };
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
