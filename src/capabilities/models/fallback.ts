import {
  Fault,
  mayBeAnsweredElsewhere,
  type ClassifiedError,
  type Model,
  is,
  optionTable,
  type OptionKinds,
} from "../../kernel/index.ts";
import { ChosenModel } from "./chosen-model.ts";
import { toModel, type ModelLike } from "./to-model.ts";

/** Options of `fallback()`. */
export interface FallbackOptions {
  /**
   * Whether an error passes the request to the next model. Default: every error that another model might not have, such
   * as an overload.
   */
  readonly when?: (error: ClassifiedError) => boolean;
}

const knownOptions = optionTable({ when: is.callback() } satisfies OptionKinds<FallbackOptions>);

/**
 * Creates a model that calls the first of several models, and the next one if it fails. Once a part of an answer
 * was streamed, the request stays with that model. Each call is reserved and charged at the price of the called
 * model, and each change of model emits `model_fallback`. If all models failed and waiting may help, the runtime
 * tries again, beginning with the first.
 *
 * @example
 * ```ts
 * import { Agent, fallback } from "reeve";
 *
 * const model = fallback(["anthropic/claude-opus-5", "openai/gpt-5"], {
 *   when: ({ kind }) => kind === "server_error" || kind === "rate_limit",
 * });
 * const agent = new Agent({ name: "writer", model });
 * ```
 */
export function fallback(models: readonly ModelLike[], options: FallbackOptions = {}): Model {
  knownOptions.read("fallback()", options);
  const candidates = models.map(toModel);
  const [first, ...others] = candidates;
  if (first === undefined) throw new Fault("invalid_argument", "fallback() got no models: pass at least one");
  const { when = ({ kind }) => mayBeAnsweredElsewhere(kind) } = options;
  return new ChosenModel(first, others, { candidates: () => candidates, shouldFallBack: when });
}
