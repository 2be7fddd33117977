import { Fault, type Model } from "../../kernel/index.ts";
import { AiSdkAdapter } from "./ai-sdk-adapter.ts";
import type { AiSdkModel } from "./ai-sdk-model.ts";
import { namedModel, type ModelName } from "./named-model.ts";

/** Whatever may be given as a model. */
export type ModelLike = Model | AiSdkModel | ModelName;

/** The model that is meant: one of ours as it is, one of the AI SDK's adapted, a name looked up. */
export function toModel(value: ModelLike): Model {
  if (typeof value === "string") return namedModel(value);
  if (isOurs(value)) return value;
  const version: unknown = Reflect.get(Object(value), "specificationVersion");
  if (version === "v3" || version === "v4") return new AiSdkAdapter(value);
  if (typeof version === "string") {
    throw new Fault(
      "unsupported",
      `an AI SDK model of specification ${version} cannot be used: update its provider's package to one for AI SDK 6 or 7 (specification v3 or v4)`,
    );
  }
  throw new Fault(
    "invalid_argument",
    `what was given as a model (${typeof value}) is none: give a model of an AI SDK provider, a name such as "anthropic/claude-sonnet-5", or a Model`,
  );
}

function isOurs(value: Model | AiSdkModel): value is Model {
  return typeof value === "object" && value !== null && "generate" in value && "stream" in value;
}
