import {
  classifyError,
  Fault,
  type Model,
  type ModelCallOptions,
  type ModelChoice,
  type ModelRequest,
  type ModelResponse,
  type ModelStreamPart,
} from "../../kernel/index.ts";

/**
 * A model that selects among other models. The runtime calls the candidates of `choice` itself; `generate` and `stream`
 * call them in order.
 */
export class ChosenModel implements Model {
  readonly provider: string;
  readonly modelId: string;
  readonly contextWindow?: number;
  readonly maxOutputTokens?: number;
  readonly supportsStructuredOutput?: boolean;
  /** The candidates for a request, with a function that says whether an error passes the request to the next one. */
  readonly choice: ModelChoice;

  /**
   * The provider and model id of this model are those of `first`. The limits are the lowest ones of all models, if
   * all are known, because any of them may receive the request.
   */
  constructor(first: Model, others: readonly Model[], choice: ModelChoice) {
    this.provider = first.provider;
    this.modelId = first.modelId;
    this.choice = choice;
    const models = [first, ...others];
    const contextWindow = lowest(models.map((model) => model.contextWindow));
    const maxOutputTokens = lowest(models.map((model) => model.maxOutputTokens));
    if (contextWindow !== undefined) this.contextWindow = contextWindow;
    if (maxOutputTokens !== undefined) this.maxOutputTokens = maxOutputTokens;
    if (models.every(({ supportsStructuredOutput }) => supportsStructuredOutput === true))
      this.supportsStructuredOutput = true;
  }

  /** Calls the candidates in order until one answers. */
  async generate(request: ModelRequest, options?: ModelCallOptions): Promise<ModelResponse> {
    const candidates = this.#candidates(request);
    for (const [place, model] of candidates.entries()) {
      try {
        return await model.generate(request, options);
      } catch (error) {
        if (!this.#passesOn(error, candidates.length - place - 1, options)) throw error;
      }
    }
    throw noCandidates();
  }

  /** Streams the first candidate that answers. After the first part, an error is not passed to the next candidate. */
  async *stream(request: ModelRequest, options?: ModelCallOptions): AsyncIterable<ModelStreamPart> {
    const candidates = this.#candidates(request);
    for (const [place, model] of candidates.entries()) {
      let begun = false;
      try {
        for await (const part of model.stream(request, options)) {
          begun = true;
          yield part;
        }
        return;
      } catch (error) {
        if (begun || !this.#passesOn(error, candidates.length - place - 1, options)) throw error;
      }
    }
    throw noCandidates();
  }

  #candidates(request: ModelRequest): readonly Model[] {
    return this.choice.candidates(request, { role: "main" });
  }

  #passesOn(error: unknown, left: number, { signal }: ModelCallOptions = {}): boolean {
    return left > 0 && signal?.aborted !== true && this.choice.shouldFallBack(classifyError(error));
  }
}

/** The lowest limit, or `undefined` if one of them is unknown. */
function lowest(limits: readonly (number | undefined)[]): number | undefined {
  const lowestLimit = Math.min(...limits.map((limit) => limit ?? Number.NaN));
  return Number.isNaN(lowestLimit) ? undefined : lowestLimit;
}

function noCandidates(): Fault {
  return new Fault(
    "invalid_argument",
    "the choice of a model returned no candidates: return at least one model",
  );
}
