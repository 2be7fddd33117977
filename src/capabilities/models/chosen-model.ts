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

/** A model that stands for others. A runtime asks them itself (`choice`); called by hand, this asks them in their order. */
export class ChosenModel implements Model {
  readonly provider: string;
  readonly modelId: string;
  readonly choice: ModelChoice;

  /** `first` lends it its name. */
  constructor(first: Pick<Model, "provider" | "modelId">, choice: ModelChoice) {
    this.provider = first.provider;
    this.modelId = first.modelId;
    this.choice = choice;
  }

  async generate(request: ModelRequest, options?: ModelCallOptions): Promise<ModelResponse> {
    const candidates = this.#candidates(request);
    for (const [place, model] of candidates.entries()) {
      try {
        return await model.generate(request, options);
      } catch (error) {
        if (!this.#passesOn(error, candidates.length - place - 1, options)) throw error;
      }
    }
    throw nobody();
  }

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
    throw nobody();
  }

  #candidates(request: ModelRequest): readonly Model[] {
    return this.choice.candidates(request, { role: "main" });
  }

  #passesOn(error: unknown, left: number, { signal }: ModelCallOptions = {}): boolean {
    return left > 0 && signal?.aborted !== true && this.choice.shouldFallBack(classifyError(error));
  }
}

function nobody(): Fault {
  return new Fault("invalid_argument", "a model's choice named no model to ask");
}
