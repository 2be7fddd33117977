import { Fault, mayBeAnsweredElsewhere, type ClassifiedError, type Model } from "../../kernel/index.ts";
import { ChosenModel } from "./chosen-model.ts";
import { toModel, type ModelLike } from "./to-model.ts";

export interface FallbackOptions {
  /** Whether this failure passes the request on. Unless told: any but what the next model would meet as well. */
  readonly when?: (error: ClassifiedError) => boolean;
}

/**
 * Asks the first model, and the next one when it fails; never after a piece of an answer was shown. Each call is reserved and paid at its
 * own model's price, and told as `model_fallback`. When all have failed and waiting may help, they are asked again from the first.
 */
export function fallback(models: readonly ModelLike[], options: FallbackOptions = {}): Model {
  const candidates = models.map(toModel);
  const [first] = candidates;
  if (first === undefined) throw new Fault("invalid_argument", "fallback needs at least one model");
  const { when = ({ kind }) => mayBeAnsweredElsewhere(kind) } = options;
  return new ChosenModel(first, { candidates: () => candidates, shouldFallBack: when });
}
