import {
  agentSession,
  eventDraft,
  Fault,
  formatAgentId,
  type Agent,
  type AgentSession,
  type EventDraft,
  type ExecutionBudget,
  type Guardrail,
  type HookRegistry,
  type Interruption,
  type Model,
  type Permissions,
  type RunContext,
  type SessionChange,
  type SessionEntry,
  type Tool,
} from "../kernel/index.ts";
import { react } from "./architectures/react.ts";
import { composeGate } from "./gate/compose-gate.ts";
import { GuardedRun, withGuardrailModels, type Tripped } from "./guardrails/guarded-run.ts";

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
}

/** An agent that thinks by ReAct and works alone: one model, its tools, one answer. */
export function soloAgent(options: SoloAgentOptions): Agent {
  const { name, model, instructions = "", tools = [], maxTurns = 25, budget = {} } = options;
  const { guardrails = [], permissions, toolHooks } = options;
  const gate = composeGate({
    guardrails,
    ...(permissions && { permissions }),
    ...(toolHooks && { hooks: toolHooks }),
  });
  return {
    id: formatAgentId({ name }),
    models: withGuardrailModels({ main: model }, guardrails),
    tools,
    budget,
    ...(gate && { callPath: { gate } }),
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
      const guarded = new GuardedRun(guardrails, ctx);
      const refused = await guarded.input(ctx.input);
      const deps = { ctx, tools: { list: () => specs }, maxTurns };
      const drafts = refused === undefined ? react().run(session, deps, ctx.input) : [];
      for await (const draft of drafts) {
        ctx.tell(draft);
        if (session.output !== "" && !guarded.guardsOutput) ctx.report({ output: session.output });
      }
      const tripped = refused ?? (await guarded.output(session));
      const interruption = interruptionOf(session, tripped);
      if (interruption !== undefined) ctx.report({ interruption });
      const entries = entriesOf(ctx, session, at);
      ctx.report({ sessions: entries.map((entry) => appended(ctx, entry)) });
      const leafId = entries.at(-1)?.id ?? null;
      for (const draft of closing(ctx, session, interruption, leafId)) ctx.tell(draft);
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
  const idOf = (index: number): string => `${runId}/${taskId}/${index}`;
  return [...session.messages].map((message, index) => ({
    type: "message",
    id: idOf(index),
    parentId: index === 0 ? null : idOf(index - 1),
    at,
    runId,
    message,
  }));
}

function appended({ facts, agentId }: RunContext, entry: SessionEntry): SessionChange {
  return { type: "append", sessionId: facts.sessionId, agentId, entry, visibility: "visible" };
}

function interruptionOf(
  { interrupted, interruptionReason }: AgentSession,
  tripped: Tripped | undefined,
): Interruption | undefined {
  if (tripped !== undefined) return { status: "guardrail_tripped", reason: tripped.reason };
  return interrupted ? { status: "max_turns", reason: interruptionReason ?? "interrupted" } : undefined;
}

function closing(
  { facts }: RunContext,
  { output, turns, cumulativeUsage: usage }: AgentSession,
  interruption: Interruption | undefined,
  leafId: string | null,
): readonly EventDraft[] {
  const { status, reason: interruptionReason = null } = interruption ?? { status: "completed" };
  const { sessionId } = facts;
  return [
    eventDraft("agent_end", { status, output, turns, usage, interruptionReason }),
    eventDraft("save_point", { sessionId, leafId }),
    eventDraft("settled", { sessionId }),
  ];
}
