import {
  assertToolNames,
  describeValue,
  Fault,
  type HostedAgent,
  type Model,
  type ModelReference,
  type RunChanges,
} from "../../kernel/index.ts";
import type { WorkerContext } from "./worker-context.ts";

/** Reads a model name of the form `provider/id`. The id may contain further slashes. */
export function parseModelName(name: string): ModelReference {
  const text: unknown = name;
  const slash = typeof text === "string" ? text.indexOf("/") : -1;
  if (typeof text === "string" && slash > 0 && slash < text.length - 1 && text.length <= 200)
    return { provider: text.slice(0, slash), modelId: text.slice(slash + 1) };
  throw new Fault(
    "invalid_argument",
    `invalid model ${describeValue(text)}: expected "provider/id", such as "anthropic/claude-sonnet-5"`,
  );
}

/**
 * Returns the reference of a model that the agent or the runtime knows. Throws `model_not_found` for an unknown
 * model. `owner` names the call in the error.
 */
export function knownModel(
  worker: Pick<WorkerContext, "resolveModel"> | undefined,
  agent: Pick<HostedAgent, "models"> | undefined,
  name: string,
  owner: string,
): ModelReference {
  const reference = parseModelName(name);
  if (worker !== undefined && resolveModel(worker, agent, reference) !== undefined) return reference;
  throw new Fault(
    "model_not_found",
    `unknown model ${describeValue(name)} of ${owner}: neither the agent nor resolveModel of this runtime has it; use a model of the agent, or pass resolveModel to openRuntime()`,
    { details: { model: name } },
  );
}

/** Throws if the changes of a submission name a model or a tool that neither the agent nor the runtime knows. */
export function checkChanges(
  worker: Pick<WorkerContext, "resolveModel">,
  agent: HostedAgent,
  { model, tools }: RunChanges,
): void {
  const owner = `a run of ${agent.id}`;
  const names = (agent.tools ?? []).map(({ name }) => name);
  assertToolNames(tools, names, owner);
  if (model !== undefined) knownModel(worker, agent, model, owner);
}

/** Returns the model that a session names: one of the agent's own models, or one that the runtime resolves by name. */
export function resolveModel(
  { resolveModel: resolve }: Pick<WorkerContext, "resolveModel">,
  agent: Pick<HostedAgent, "models"> | undefined,
  { provider, modelId }: ModelReference,
): Model | undefined {
  const name = `${provider}/${modelId}`;
  // A model that an extension registered has its name in place of a role.
  const registered = agent?.models?.[name];
  if (registered !== undefined) return registered;
  const own = Object.values(agent?.models ?? {});
  const isNamed = (model: Model): boolean => model.provider === provider && model.modelId === modelId;
  return own.find(isNamed) ?? resolve?.(name);
}
