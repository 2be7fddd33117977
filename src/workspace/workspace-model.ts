import { namedModel } from "../capabilities/index.ts";
import { Fault, withoutSecrets, type Model } from "../kernel/index.ts";
import { providerOf, type AgentFile, type Settings } from "./files/index.ts";

/** What the model of an agent is made from. */
export interface ModelParts {
  readonly settings: Settings;
  /** File of the agent, if the user has accepted its current text. */
  readonly file: Pick<AgentFile, "model" | "contextWindow"> | undefined;
  /** Whether the agent may use the address and the key of settings that name no model. */
  readonly isFree: boolean;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Returns the model of this name. Default: `namedModel`. */
  readonly resolveModel: ((name: string) => Model) | undefined;
  /** Loads the package of a model provider from the project, if it is not installed where Reeve is. */
  readonly loadPackage: (name: string) => Promise<object | undefined>;
}

/**
 * Returns the model of an agent. The address and the key of the settings apply only to the provider that the
 * settings name. If the settings name no model, they apply to the model of an agent that `isFree`. A context window
 * applies only to the model that is named in the same place.
 */
export function workspaceModel(name: string, parts: ModelParts): Model {
  const model = chosenModel(name, parts);
  const contextWindow = [parts.file, parts.settings].find(
    (each) => each?.contextWindow !== undefined && (each.model ?? name) === name,
  )?.contextWindow;
  return contextWindow === undefined ? model : withContextWindow(model, contextWindow);
}

function chosenModel(name: string, { settings, isFree, env, resolveModel, loadPackage }: ModelParts): Model {
  if (resolveModel !== undefined) return resolveModel(name);
  const isSame = settings.model === undefined ? isFree : providerOf(settings.model) === providerOf(name);
  const { baseUrl, apiKeyEnv } = isSame ? settings : {};
  const apiKey = apiKeyEnv === undefined ? undefined : env[apiKeyEnv];
  if (apiKeyEnv !== undefined && (apiKey === undefined || apiKey === ""))
    throw new Fault(
      "invalid_argument",
      `the setting "apiKeyEnv" names ${withoutSecrets(apiKeyEnv)}, which the environment does not set`,
    );
  return namedModel(name, {
    env,
    loadPackage,
    ...(baseUrl !== undefined && { baseUrl }),
    ...(apiKey !== undefined && { apiKey }),
  });
}

/** Returns the model with another context window, which also limits the length of an answer. */
function withContextWindow(model: Model, contextWindow: number): Model {
  const { provider, modelId, maxOutputTokens, defaultOutputTokens, supportsStructuredOutput, choice } = model;
  const count = model.countTokens?.bind(model);
  return {
    provider,
    modelId,
    contextWindow,
    ...(maxOutputTokens !== undefined && { maxOutputTokens: Math.min(maxOutputTokens, contextWindow) }),
    ...(defaultOutputTokens !== undefined && { defaultOutputTokens }),
    ...(supportsStructuredOutput !== undefined && { supportsStructuredOutput }),
    ...(choice !== undefined && { choice }),
    ...(count !== undefined && { countTokens: count }),
    generate: (request, options) => model.generate(request, options),
    stream: (request, options) => model.stream(request, options),
  };
}
