import { Fault } from "../../kernel/index.ts";

/**
 * What the language throws at code that is wrong: started again on the same records, it would come to the same. One with a cause tells of
 * something else, such as a `fetch` that failed; a `SyntaxError` of what was parsed, such as an error page in place of JSON; a `RangeError`
 * of memory that was short. Those may pass.
 */
export function isProgrammingError(error: unknown): boolean {
  const thrown = Fault.is(error) && error.code === "internal" ? error.cause : error;
  return mistakes.some((Mistake) => thrown instanceof Mistake && thrown.cause === undefined);
}

const mistakes = [TypeError, ReferenceError] as const;
