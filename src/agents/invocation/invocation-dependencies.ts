import {
  agentSession,
  type Dependencies,
  type JsonValue,
  type RunContext,
  type Tool,
} from "../../kernel/index.ts";
import { samplingOf } from "../base/call-settings.ts";
import { callShorter } from "./call-shorter.ts";
import type { InvocationParts, InvocationScope } from "./invocation-scope.ts";
import { JournaledModel } from "./journaled-model.ts";
import { JournaledTools } from "./journaled-tools.ts";

/** Returns the dependencies of an architecture in one scope of an invocation. */
export function dependenciesIn(parts: InvocationParts, scope: InvocationScope): Dependencies {
  const { plan, budget, sessions } = parts;
  const { ctx, isMain } = scope;
  const { settings, facts } = parts.ctx;
  const { names: layers } = plan.pipeline;
  const changed = (changes: Partial<InvocationScope>): Dependencies =>
    dependenciesIn(parts, { ...scope, ...changes });
  // No getters: V8 gives an object literal with getters a hidden class of its own in old space, which kept 18 KB of
  // each ended run until the next full garbage collection (`test/processes/ended-runs.test.ts`).
  return {
    ctx,
    role: scope.role,
    maxTurns: scope.maxTurns,
    context: ctx.facts,
    model: new JournaledModel(parts, scope),
    tools: new JournaledTools(parts, scope),
    history: scope.history,
    memory: plan.memory,
    budget,
    permissions: plan.permissions,
    hooks: plan.toolHooks,
    telemetry: plan.telemetry,
    streaming: parts.ctx.streaming,
    // Only the main loop of the invocation chooses a tool.
    settings: settings === null || isMain ? settings : samplingOf(settings),
    ephemeral: plan.ephemeral,
    steering: isMain ? plan.steering : null,
    isSteered: isMain && parts.turn.isSteered,
    followUps: isMain ? plan.followUps : null,
    prepareStep: isMain ? plan.prepareStep : null,
    stopWhen: isMain ? plan.stopWhen : null,
    outputFormat: isMain ? parts.outputFormat : null,
    fastAudit: !layers.has("audit-logger"),
    fastTelemetry: plan.telemetry === null && !layers.has("tracing"),
    fastPermissions: plan.permissions === null,
    fastHooks: plan.toolHooks === null && plan.agent.callPath?.observer === undefined,
    fastRuntime: false,
    fastBudget: budget.isUnlimited,
    freshSession: (role, instructions) =>
      sessions.add(
        agentSession({ id: sessions.free(`${facts.sessionId.slice(0, 180)}__${role}`), instructions }),
      ),
    scopeForWorker: (role, place: RunContext = ctx) => {
      const elsewhere = place === ctx ? {} : { history: parts.historyIn(place), extra: [], watchers: [] };
      return changed({ ...elsewhere, role, ctx: place, isMain: false });
    },
    withExtraTools: (added, onResult) => {
      const { extra: outer, watchers: others } = scope;
      // Tools that a tool of an outer scope hides are not called, so their results are not reported to this listener.
      const own = added.filter(
        ({ name }, index) => ![...outer, ...added.slice(0, index)].some((tool: Tool) => tool.name === name),
      );
      const watchers = onResult === undefined ? others : [...others, { tools: own, onResult }];
      return changed({ extra: [...outer, ...own], watchers });
    },
    withMaxTurns: (maxTurns) => changed({ maxTurns }),
    callShorter: (fault, request, sessionId) => callShorter(parts, scope, fault, request, sessionId),
    problemsOf: async (schema, value) => plan.check(schema, value),
    spawnWorker: (worker, input, options) => ctx.spawn(worker.id, input as JsonValue, options),
  };
}
