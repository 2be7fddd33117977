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

/** A function that declares a test. Without a time limit that of the project applies. */
type Declare = (title: string, body: () => Promise<void>, timeoutMs?: number) => void;

/**
 * A case of an engine's contract that takes longer hangs, in milliseconds. The longest one takes 22 seconds on a machine with eight busy
 * processes per processor. `npm run test:full` keeps the limit of the project.
 */
const caseHangs = isFull ? undefined : 180_000;

/**
 * Returns a function that declares part number `part`, from 0, of `parts` parts of the cases of an engine's contract, and all
 * cases about the engine itself (G). In `npm test`, pairs of an engine and a store share the other cases, which run all on the
 * local engine with the memory store and with SQLite.
 */
export function shareOf(declare: Declare, part: number, parts: number): Declare {
  let index = 0;
  return (title, body) => {
    if (isFull || title.startsWith("G") || index++ % parts === part) declare(title, body, caseHangs);
  };
}
