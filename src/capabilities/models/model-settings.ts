import {
  callSettingKinds,
  Fault,
  type CallSettings,
  type Model,
  type ModelCallOptions,
  type ModelChoice,
  type ModelRequest,
  type ModelResponse,
  type ModelStreamPart,
  type ProviderOptions,
  is,
  optionTable,
  type OptionKinds,
} from "../../kernel/index.ts";
import { markPrefix } from "./prompt-cache.ts";
import { toModel, type ModelLike } from "./to-model.ts";

/** Settings that are sent with every request of a model, unless the request sets them itself. */
export interface ModelSettings extends CallSettings, Pick<ModelRequest, "stopSequences" | "providerOptions"> {
  /** Maximum number of tokens of one answer, including reasoning. B1: this number is reserved for a call. */
  readonly maxOutputTokens?: number;
  /** Size of the model's context window, in tokens. */
  readonly contextWindow?: number;
  /**
   * Whether the prompt is marked for providers that cache its beginning only on request. Default: `true` for models
   * of Anthropic, otherwise `false`.
   */
  readonly promptCache?: boolean;
  /**
   * Counts the input tokens of a request, for example with the counting endpoint of the provider. B1: the number must
   * not be below the bill. Default: the count of the model, if it offers one.
   */
  readonly countTokens?: NonNullable<Model["countTokens"]>;
}

const knownOptions = optionTable({
  ...callSettingKinds,
  contextWindow: is.integer({ from: 1 }),
  promptCache: is.boolean(),
  countTokens: is.callback(),
  stopSequences: is.list({ of: is.text() }),
  providerOptions: is.any,
} satisfies OptionKinds<ModelSettings>);

/**
 * Returns a model that sends settings with every request. A setting of the request itself takes precedence.
 *
 * @example
 * ```ts
 * import { Agent, withSettings } from "reeve";
 *
 * const model = withSettings("anthropic/claude-sonnet-5", { temperature: 0, maxOutputTokens: 4_000 });
 * const agent = new Agent({ name: "extractor", model });
 * ```
 */
export function withSettings(model: ModelLike, settings: ModelSettings): Model {
  knownOptions.read("withSettings()", settings);
  const whole = toModel(model);
  if (settings.countTokens !== undefined && whole.choice !== undefined)
    throw new Fault(
      "invalid_argument",
      "invalid countTokens of withSettings(): the model chooses among several models, which count differently; use withSettings() on each of them",
    );
  return new ModelWithSettings(whole, settings);
}

class ModelWithSettings implements Model {
  readonly provider: string;
  readonly modelId: string;
  readonly contextWindow?: number;
  readonly maxOutputTokens?: number;
  readonly defaultOutputTokens?: number;
  readonly supportsStructuredOutput?: boolean;
  readonly choice?: ModelChoice;
  readonly countTokens?: NonNullable<Model["countTokens"]>;
  readonly #model: Model;
  readonly #settings: ModelSettings;

  constructor(model: Model, settings: ModelSettings) {
    this.#model = model;
    this.#settings = settings;
    this.provider = model.provider;
    this.modelId = model.modelId;
    const { choice, contextWindow, maxOutputTokens, supportsStructuredOutput } = model;
    if (supportsStructuredOutput !== undefined) this.supportsStructuredOutput = supportsStructuredOutput;
    const [window, output] = [
      settings.contextWindow ?? contextWindow,
      settings.maxOutputTokens ?? maxOutputTokens,
    ];
    if (window !== undefined) this.contextWindow = window;
    if (output !== undefined) this.maxOutputTokens = output;
    const usual = settings.maxOutputTokens ?? model.defaultOutputTokens;
    if (usual !== undefined) this.defaultOutputTokens = usual;
    const count = settings.countTokens ?? model.countTokens?.bind(model);
    if (count !== undefined)
      this.countTokens = (request, options) => count(this.#apply(request, options), options);
    if (choice !== undefined) {
      this.choice = {
        candidates: (request, task) =>
          choice.candidates(request, task).map((each) => new ModelWithSettings(each, settings)),
        shouldFallBack: (error) => choice.shouldFallBack(error),
      };
    }
  }

  async generate(request: ModelRequest, options?: ModelCallOptions): Promise<ModelResponse> {
    return this.#model.generate(this.#apply(request, options), this.#options(options));
  }

  stream(request: ModelRequest, options?: ModelCallOptions): AsyncIterable<ModelStreamPart> {
    return this.#model.stream(this.#apply(request, options), this.#options(options));
  }

  /** Adds to the options that the prompt must not be marked, if the settings say so. */
  #options(options: ModelCallOptions | undefined): ModelCallOptions | undefined {
    const { promptCache } = this.#settings;
    return promptCache === undefined ? options : { ...options, promptCache };
  }

  #apply(request: ModelRequest, options: ModelCallOptions = {}): ModelRequest {
    const {
      contextWindow: _window,
      countTokens: _count,
      promptCache = false,
      providerOptions,
      ...settings
    } = this.#settings;
    const merged = mergeOptions(providerOptions, request.providerOptions);
    return {
      ...settings,
      ...request,
      ...(merged === undefined ? {} : { providerOptions: merged }),
      ...(promptCache ? { messages: markPrefix(request.messages, options.ephemeralMessages) } : {}),
    };
  }
}

/** Merges provider options by provider and option. An option of the request takes precedence. */
function mergeOptions(
  settings: ProviderOptions | undefined,
  request: ProviderOptions | undefined,
): ProviderOptions | undefined {
  if (settings === undefined || request === undefined) return request ?? settings;
  const merged = { ...settings };
  for (const [provider, options] of Object.entries(request))
    Object.assign(merged, { [provider]: { ...settings[provider], ...options } });
  return merged;
}
