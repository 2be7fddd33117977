import {
  describeValue,
  Fault,
  type HostedAgent,
  type Model,
  type ModelReference,
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

/** Returns the model that a session names: one of the agent's own, or one that the runtime resolves by name. */
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
