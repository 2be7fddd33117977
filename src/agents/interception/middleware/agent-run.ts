import {
  agentNameOf,
  Fault,
  modelFor,
  withFixedPlace,
  type AgentMiddleware,
  type AgentRunContext,
  type HostedAgent,
  type RunContext,
  type RunStatus,
} from "../../../kernel/index.ts";

/** An agent together with its description, which the public agents have. */
type DescribedAgent = HostedAgent & { readonly description?: string };

export type AgentRunResult = NonNullable<AgentRunContext["result"]>;

/**
 * Runs an agent's code inside the middleware of the level `agent`. A replay runs this middleware again, because it
 * executes the code inside it again (J7). Therefore the middleware's decisions must depend only on its context.
 */
export function runThrough(
  around: AgentMiddleware | undefined,
  ctx: RunContext,
  agent: DescribedAgent,
  body: () => Promise<AgentRunResult>,
): Promise<AgentRunResult> {
  return around === undefined ? body() : runAround(around, ctx, agent, body);
}

async function runAround(
  around: AgentMiddleware,
  ctx: RunContext,
  agent: DescribedAgent,
  body: () => Promise<AgentRunResult>,
): Promise<AgentRunResult> {
  const context = agentRunContext(ctx, agent);
  await around.process(context, async () => {
    context.result = await body();
  });
  // M1: the pipeline guarantees a result.
  const result = context.result as AgentRunResult;
  if (!statuses.includes(result.status)) {
    throw new Fault(
      "middleware_misuse",
      `invalid status ${result.status} set by middleware around ${context.agentName}: throw an error to fail, cancel or stop a run`,
    );
  }
  return result;
}

const statuses: readonly RunStatus[] = [
  "completed",
  "max_turns",
  "max_output",
  "guardrail_tripped",
  "failed",
];

async function nothing(): Promise<void> {}

function agentRunContext(ctx: RunContext, agent: DescribedAgent): AgentRunContext {
  const { agentId, taskId, facts, signal, meta, input, snapshot: standing } = ctx;
  return withFixedPlace<AgentRunContext>({
    agentName: agentNameOf(agentId),
    description: agent.description ?? "",
    version: agent.version ?? null,
    model: modelFor(agent, "main") ?? null,
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
  });
}
