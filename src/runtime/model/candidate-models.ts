import { Fault, type ClassifiedError, type Model, type ModelRequest } from "../../kernel/index.ts";

/** A model that may answer, and whether a failure of its passes the request on. */
interface Candidate {
  readonly model: Model;
  readonly passesOn: (error: ClassifiedError) => boolean;
}

export interface FailedAttempt {
  readonly error: ClassifiedError;
  readonly cause: unknown;
  /** Watchers have seen a piece of its answer. */
  readonly shown: boolean;
}

/**
 * Who is asked for an answer, one after the other: most often one model. Each is asked once before there is a pause; nobody else is
 * asked once a piece of an answer was shown.
 */
export class CandidateModels {
  readonly #first: Model;
  /** Where the first stands for others. */
  readonly #candidates: readonly Candidate[] | undefined;
  #place = 0;
  #failed: FailedAttempt | undefined;

  constructor(model: Model, request: ModelRequest, role: string) {
    this.#first = model;
    if (model.choice !== undefined) this.#candidates = lineUp(model, request, role);
  }

  /** Who is to be asked. */
  get model(): Model {
    if (this.#candidates === undefined) return this.#first;
    const candidate = this.#candidates[this.#place];
    if (candidate === undefined)
      throw new Fault("invalid_argument", "a model's choice named no model to ask");
    return candidate.model;
  }

  /** Whether someone else is to be asked at once. */
  passOn(failed: FailedAttempt): boolean {
    const before = this.#failed;
    // What may pass by waiting is what counts.
    const counts =
      before === undefined || failed.shown || (!before.error.retryable && failed.error.retryable);
    this.#failed = counts ? failed : before;
    const candidates = this.#candidates;
    if (
      failed.shown ||
      candidates === undefined ||
      this.#place + 1 >= candidates.length ||
      candidates[this.#place]?.passesOn(failed.error) !== true
    )
      return false;
    this.#place++;
    return true;
  }

  /** All have been asked: the failure that says what comes of it. Whoever has begun to answer is asked again, or else the first. */
  startOver(): FailedAttempt {
    const failed = this.#failed;
    if (failed === undefined) throw new Fault("internal", "nobody has failed yet");
    this.#failed = undefined;
    if (!failed.shown) this.#place = 0;
    return failed;
  }
}

const staysHere = (): boolean => false;

/** A model may stand for others that stand for others. The last of a line passes on by the rule of the line around it. */
function lineUp(model: Model, request: ModelRequest, role: string): readonly Candidate[] {
  const { choice } = model;
  if (choice === undefined) return [{ model, passesOn: staysHere }];
  const lines = choice.candidates(request, { role }).map((each) => lineUp(each, request, role));
  const passesOn = (error: ClassifiedError): boolean => choice.shouldFallBack(error);
  return lines.flatMap((line, index) =>
    index === lines.length - 1
      ? line
      : line.map((each, place) => (place === line.length - 1 ? { ...each, passesOn } : each)),
  );
}
