import {
  agentSession,
  eventDraft,
  Fault,
  formatAgentId,
  userMessage,
  type Agent,
  type AgentSession,
  type EventDraft,
  type ExecutionBudget,
  type Model,
  type RunContext,
  type RunStatus,
  type Tool,
} from "../kernel/index.ts";
import { react } from "./architectures/react.ts";
import { saidEntries } from "./said-entries.ts";

export interface SoloAgentOptions {
  readonly name: string;
  readonly model: Model;
  readonly instructions?: string;
  readonly tools?: readonly Tool[];
  readonly maxTurns?: number;
  readonly budget?: Partial<ExecutionBudget>;
}

/** An agent that thinks by ReAct and works alone: one model, its tools, one answer. */
export function soloAgent(options: SoloAgentOptions): Agent {
  const { name, model, instructions = "", tools = [], maxTurns = 25, budget = {} } = options;
  return {
    id: formatAgentId({ name }),
    models: { main: model },
    tools,
    budget,
    messageOf: (input) => (typeof input === "string" ? userMessage(input) : undefined),
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
      try {
        for await (const draft of react().run(session, deps, ctx.input)) {
          ctx.tell(draft);
          if (session.output !== "") ctx.report({ output: session.output });
        }
      } catch (error) {
        const stop = stopOf(error);
        if (stop !== undefined) close(ctx, session, { at, ...stop });
        throw error;
      }
      const reason = session.interruptionReason ?? "interrupted";
      if (session.interrupted) ctx.report({ interruption: { status: "max_turns", reason } });
      close(ctx, session, { at, status: session.interrupted ? "max_turns" : "completed" });
      return session.output;
    },
  };
}

interface Closing {
  readonly at: number;
  readonly status: RunStatus;
  /** Why it was stopped. */
  readonly reason?: string;
}

/** S1: an invocation that was stopped is closed like one that came to its end. One that failed is not: it may be gone on with. */
function stopOf(error: unknown): Pick<Closing, "status" | "reason"> | undefined {
  const { code, message, details } = Fault.from(error);
  if (code === "cancelled") {
    const status = details?.["status"] === "deadline_exceeded" ? "deadline_exceeded" : "cancelled";
    return { status, reason: message };
  }
  return code === "budget_exhausted" || code === "guardrail_tripped"
    ? { status: code, reason: message }
    : undefined;
}

/** Commits with the end of the task: what was said is visible with the events that say so. */
function close(ctx: RunContext, session: AgentSession, { at, status, reason }: Closing): void {
  const { changes, leafId } = saidEntries(ctx, session.messages.slice(), at, reason);
  ctx.report({ sessions: changes });
  for (const draft of closingEvents(ctx, session, { status, leafId, reason: reason ?? null }))
    ctx.tell(draft);
}

function closingEvents(
  { facts: { sessionId } }: RunContext,
  { output, turns, cumulativeUsage: usage, interruptionReason }: AgentSession,
  {
    status,
    leafId,
    reason,
  }: { readonly status: RunStatus; readonly leafId: string | null; readonly reason: string | null },
): readonly EventDraft[] {
  return [
    eventDraft("agent_end", {
      status,
      output,
      turns,
      usage,
      interruptionReason: interruptionReason ?? reason,
    }),
    eventDraft("save_point", { sessionId, leafId }),
    eventDraft("settled", { sessionId }),
  ];
}
