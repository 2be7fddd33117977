import type { AgentId, CostLabel, Model } from "../../kernel/index.ts";

/** The names under which events and the ledger refer to a model. */
export interface ModelName {
  readonly name: { readonly provider: string; readonly modelId: string };
  readonly label: CostLabel;
}

type NamedModel = Pick<Model, "provider" | "modelId">;

const names = new WeakMap<NamedModel, ModelName>();

/**
 * Returns the names for a model of an agent. Every call returns the same frozen objects, so that the records of all
 * calls share them.
 */
export function modelName(agentId: AgentId, model: NamedModel): ModelName {
  const known = names.get(model);
  if (known?.label.agentId === agentId) return known;
  const { provider, modelId } = model;
  const name = Object.freeze({ provider, modelId });
  const label = Object.freeze({ agentId, provider, modelId });
  const named = { name, label };
  names.set(model, named);
  return named;
}
