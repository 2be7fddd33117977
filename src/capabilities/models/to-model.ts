import { Fault, type Model } from "../../kernel/index.ts";
import { AiSdkAdapter } from "./ai-sdk-adapter.ts";
import type { AiSdkModel } from "./ai-sdk-model.ts";
import { namedModel, type ModelName } from "./named-model.ts";

/**
 * A value that is accepted as a model: a `Model`, a model of the AI SDK, or a name such as
 * `"anthropic/claude-sonnet-5"`.
 */
export type ModelLike = Model | AiSdkModel | ModelName;

/**
 * Converts a value to a `Model`: a `Model` is returned unchanged, an AI SDK model is adapted, and a name is resolved by
 * `namedModel`.
 */
export function toModel(value: ModelLike): Model {
  if (typeof value === "string") return namedModel(value);
  if (isOurs(value)) return value;
  const version: unknown = Reflect.get(Object(value), "specificationVersion");
  if (version === "v3" || version === "v4") return new AiSdkAdapter(value);
  if (typeof version === "string") {
    const { provider, modelId } = value as Partial<AiSdkModel>;
    const name = modelId === undefined ? "" : ` ${provider}/${modelId}`;
    throw new Fault(
      "unsupported",
      `invalid model${name}: an AI SDK model of specification ${version} is not supported; update the package of its provider to one for AI SDK 6 or 7 (specification v3 or v4)`,
    );
  }
  throw new Fault("invalid_argument", `invalid model of type ${typeof value}: ${expectedModel(value)}`);
}

/** The members by which a model is recognised. An agent also has such methods, but no model id. */
const modelMembers = ["modelId", "generate", "stream"] as const;

function expectedModel(value: unknown): string {
  // Providers of the AI SDK are functions with a method for each kind of model.
  const isProvider = typeof Reflect.get(Object(value), "languageModel") === "function";
  if (isProvider)
    return 'a provider is not a model; call it with the id of a model, such as model: openai("gpt-5.2")';
  const missing = modelMembers.filter((name) => !(name in Object(value)));
  if (!missing.includes("modelId"))
    return `a Model has the members ${modelMembers.join(", ")}; this one lacks ${missing.join(", ")}`;
  return 'expected a model of an AI SDK provider, a name such as "anthropic/claude-sonnet-5", or a Model';
}

function isOurs(value: Model | AiSdkModel): value is Model {
  if (typeof value !== "object" || value === null) return false;
  return modelMembers.every((name) => name in value);
}
