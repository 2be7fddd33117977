/**
 * Whether all cases are executed, for example a kill at each write. `npm run test:full` sets the variable. Without it,
 * `npm test` executes some cases of every kind.
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
 * Returns whether a simulated worker dies before or after write number `at`. `npm test` alternates, because the state of
 * the store after one write is its state before the next.
 */
export function deathsAt(at: number): readonly ("before" | "after")[] {
  if (isFull) return ["before", "after"];
  return at % 2 === 1 ? ["before"] : ["after"];
}

/** A function that declares a test. If the time limit is absent, that of the project applies. */
type Declare = (title: string, body: () => Promise<void>, timeoutMs?: number) => void;

/**
 * Time after which a case of an engine's contract counts as hanging, in milliseconds. The longest case takes 22 seconds
 * on a machine with eight busy processes per processor. `npm run test:full` uses the limit of the project.
 */
const caseHangs = isFull ? undefined : 180_000;

/**
 * Returns a function that declares, in `npm test`, the first case of every promise that it receives, and each case that `isOwn`
 * selects by its title. The promise is the first word of a title, such as `J5` or `sleep`. Implementations that share a sample
 * declare part number `part`, from 0, of `parts` parts of it. On the memory store and on SQLite, all cases of a contract run.
 */
export function sampleOf(
  declare: Declare,
  isOwn: (title: string) => boolean,
  { part, parts }: { readonly part: number; readonly parts: number } = { part: 0, parts: 1 },
): Declare {
  const seen = new Set<string>();
  return (title, body) => {
    const promise = /^\w+/u.exec(title)?.[0] ?? title;
    const isInSample = !seen.has(promise) && seen.size % parts === part;
    seen.add(promise);
    if (isFull || isOwn(title) || isInSample) declare(title, body, caseHangs);
  };
}

/** Whether a case of the engine contract is about the engine itself: who executes a run, and when. */
export const isOfEngine = (title: string): boolean => title.startsWith("G");
