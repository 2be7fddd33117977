/**
 * Whether every case of every sweep runs, such as a kill at each write. `npm run test:full` sets the variable. `npm test`
 * runs cases of every kind.
 */
export const isFull = process.env["REEVE_TESTS"] === "full";

/** Returns `full` if every case runs, and `few` otherwise. */
export function casesOf(full: number, few: number): number {
  return isFull ? full : few;
}

/** Returns the number of runs of a property, of which `npm test` makes a twentieth. */
export function propertyRuns(full: number): number {
  return casesOf(full, Math.ceil(full / 20));
}

/**
 * Returns whether a simulated worker dies before or after write number `at`. `npm test` alternates, because the store has the
 * same state after a write as before the next one.
 */
export function deathsAt(at: number): readonly ("before" | "after")[] {
  if (isFull) return ["before", "after"];
  return at % 2 === 1 ? ["before"] : ["after"];
}

/** A function that declares a test. */
type Declare = (title: string, body: () => Promise<void>) => void;

/**
 * Returns a function that declares every other case of an engine's contract, from the first or from the second on, and all
 * cases about the engine itself (G). Two engines that use the same store share the other cases in `npm test`.
 */
export function everyOther(declare: Declare, from: "first" | "second"): Declare {
  let isNext = from === "first";
  return (title, body) => {
    if (isFull || title.startsWith("G")) return declare(title, body);
    if (isNext) declare(title, body);
    isNext = !isNext;
  };
}
