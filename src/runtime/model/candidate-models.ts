import { Fault, type ClassifiedError, type Model, type ModelRequest } from "../../kernel/index.ts";

/** A model that may answer, with the rule which of its failures pass the request to the next candidate. */
interface Candidate {
  readonly model: Model;
  readonly shouldFallBack: (error: ClassifiedError) => boolean;
}

export interface FailedAttempt {
  /** The model that was called. */
  readonly model: Model;
  readonly error: ClassifiedError;
  readonly cause: unknown;
  /** Whether readers have received a part of the answer. */
  readonly isShown: boolean;
}

/**
 * The models that may answer a request, in order; usually there is one. A round calls each candidate once, without
 * a delay. Once readers have received a part of an answer, the request stays with the model that sent it.
 */
export class CandidateModels {
  readonly #first: Model;
  /** The candidates. `undefined` if the first model is the only one. */
  readonly #candidates: readonly Candidate[] | undefined;
  #index = 0;
  /** The failure of this round that decides about a retry. */
  #failed: FailedAttempt | undefined;

  constructor(model: Model, request: ModelRequest, role: string) {
    this.#first = model;
    if (model.choice !== undefined) this.#candidates = candidatesOf(model, request, role);
  }

  /** The candidate to call next. */
  get model(): Model {
    if (this.#candidates === undefined) return this.#first;
    const candidate = this.#candidates[this.#index];
    if (candidate === undefined)
      throw new Fault(
        "invalid_argument",
        "the `choice` of a model returned no candidates: it must return at least one model",
      );
    return candidate.model;
  }

  /** Moves to the next candidate if the failure allows it. Returns whether there is a next candidate. */
  fallBack(failed: FailedAttempt): boolean {
    const before = this.#failed;
    // A retryable failure wins: then the round is repeated after a delay.
    const decides =
      before === undefined || failed.isShown || (!before.error.retryable && failed.error.retryable);
    this.#failed = decides ? failed : before;
    const candidates = this.#candidates;
    if (
      failed.isShown ||
      candidates === undefined ||
      this.#index + 1 >= candidates.length ||
      candidates[this.#index]?.shouldFallBack(failed.error) !== true
    )
      return false;
    this.#index++;
    return true;
  }

  /**
   * Ends a round in which every candidate failed and returns the failure that decides about a retry. The next round
   * starts with the first candidate, or with the one whose answer was partly shown.
   */
  startRound(): FailedAttempt {
    const failed = this.#failed;
    if (failed === undefined) throw new Fault("internal", "no candidate model has failed in this round");
    this.#failed = undefined;
    if (!failed.isShown) this.#index = 0;
    return failed;
  }
}

const neverFallsBack = (): boolean => false;

/**
 * Returns the candidates of a model, including those of nested choices. The last candidate of an inner choice uses
 * the fallback rule of the outer choice.
 */
function candidatesOf(model: Model, request: ModelRequest, role: string): readonly Candidate[] {
  const { choice } = model;
  if (choice === undefined) return [{ model, shouldFallBack: neverFallsBack }];
  const groups = choice.candidates(request, { role }).map((each) => candidatesOf(each, request, role));
  const shouldFallBack = (error: ClassifiedError): boolean => choice.shouldFallBack(error);
  return groups.flatMap((group, index) =>
    index === groups.length - 1
      ? group
      : group.map((each, place) => (place === group.length - 1 ? { ...each, shouldFallBack } : each)),
  );
}
