import {
  agentNameOf,
  Fault,
  type AgentMiddleware,
  type AgentRunContext,
  type RunContext,
  type RunStatus,
} from "../../kernel/index.ts";

export type AgentRunResult = NonNullable<AgentRunContext["result"]>;

/**
 * A run's body inside the layers around it. They run again when the run is replayed, since the body inside them is what replays
 * (J7): what they decide depends on nothing but the context.
 */
export function runThrough(
  around: AgentMiddleware | undefined,
  ctx: RunContext,
  body: () => Promise<AgentRunResult>,
): Promise<AgentRunResult> {
  return around === undefined ? body() : runAround(around, ctx, body);
}

async function runAround(
  around: AgentMiddleware,
  ctx: RunContext,
  body: () => Promise<AgentRunResult>,
): Promise<AgentRunResult> {
  const context = agentRunContext(ctx);
  await around.process(context, async () => {
    context.result = await body();
  });
  // M1: the pipeline has seen to it that there is one.
  const result = context.result as AgentRunResult;
  if (!statuses.includes(result.status)) {
    throw new Fault(
      "middleware_misuse",
      `a layer around ${context.agentName} gave the status ${result.status}; throw to fail, cancel or stop a run`,
    );
  }
  return result;
}

const statuses: readonly RunStatus[] = ["completed", "max_turns", "guardrail_tripped", "failed"];

async function nothing(): Promise<void> {}

function agentRunContext(ctx: RunContext): AgentRunContext {
  const { agentId, taskId, facts, signal, meta, input, snapshot: standing } = ctx;
  return {
    agentName: agentNameOf(agentId),
    agentId,
    runId: facts.runId,
    taskId,
    sessionId: facts.sessionId,
    tenantId: meta.tenantId,
    facts,
    signal,
    metadata: {},
    emitEvent: (event) => ctx.emitEvent(event),
    waitFor: (wait) => wait,
    parentId: meta.supervision?.parentId ?? null,
    parentTaskId: standing.headcount.tasks[taskId]?.parentId ?? null,
    input,
    onLeave: (callback) => {
      void ctx.resource(nothing, async () => callback());
    },
  };
}
