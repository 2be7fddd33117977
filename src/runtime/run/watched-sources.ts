import { AsyncLocalStorage } from "node:async_hooks";

/** A use of the machine's time or random numbers by code that must be deterministic. */
export interface SourceUse {
  /** The function, as the code calls it, such as `Date.now()`. */
  readonly source: string;
  /** The first line of the caller's stack: the function, the file and the line. */
  readonly where: string;
}

/** The time and the random numbers that code receives while it is watched. */
export class WatchedSources {
  readonly uses: SourceUse[] = [];
  #now: number;
  #seed: number;

  /** Different seeds give different times and random numbers; the same seed always gives the same ones. */
  constructor(now: number, seed: number) {
    this.#now = now + seed * 86_461_003;
    this.#seed = seed * 0x9e37_79b9;
  }

  /**
   * Returns the time. It increases with each call, so that code which waits for a time does not wait forever.
   * `called` is the function that the code has called.
   */
  now(source: string, called: Called): number {
    this.#note(source, called);
    return (this.#now += 7);
  }

  /** Returns a random number of at least 0 and below 1 (mulberry32). */
  random(source: string, called: Called): number {
    this.#note(source, called);
    this.#seed = (this.#seed + 0x6d2b_79f5) | 0;
    let mixed = Math.imul(this.#seed ^ (this.#seed >>> 15), 1 | this.#seed);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  }

  #note(source: string, called: Called): void {
    if (this.uses.some((use) => use.source === source)) return;
    const holder = { stack: "" };
    Error.captureStackTrace(holder, called);
    const [, line = ""] = holder.stack.split("\n");
    this.uses.push({ source, where: line.trim().replace(/^at /u, "") });
  }
}

/** A function that the code has called. The first line of the stack shows the caller. */
type Called = (...given: never[]) => unknown;

const watched = new AsyncLocalStorage<WatchedSources>();
/** Number of `watching` calls in progress. */
let watchers = 0;
let restore: () => void = () => undefined;

/** Runs code that receives its time and its random numbers from `sources`. Only to be called inside `watching`. */
export function insideSources<Result>(sources: WatchedSources, code: () => Result): Result {
  return watched.run(sources, code);
}

/**
 * Replaces the global functions of time and random numbers during `work`. Only code inside `insideSources` is
 * affected; all other code of the process receives the values of the machine.
 */
export async function watching<Result>(work: () => Promise<Result>): Promise<Result> {
  if (watchers++ === 0) restore = replaceGlobals();
  try {
    return await work();
  } finally {
    if (--watchers === 0) restore();
  }
}

/** Replaces a function of a global object, and returns a function that restores it. */
function replace<Owner extends object, Key extends keyof Owner>(
  owner: Owner,
  key: Key,
  by: (real: Owner[Key]) => Owner[Key],
): () => void {
  const real = owner[key];
  owner[key] = by(real);
  return () => {
    owner[key] = real;
  };
}

function replaceGlobals(): () => void {
  const restored = [
    replace(globalThis, "Date", watchedDate),
    replace(Math, "random", (real) => {
      const random = (): number => watched.getStore()?.random("Math.random()", random) ?? real();
      return random;
    }),
    replace(performance, "now", (real) => {
      const now = (): number => watched.getStore()?.now("performance.now()", now) ?? real.call(performance);
      return now;
    }),
    replace(crypto, "randomUUID", (real) => {
      const randomUUID = (): ReturnType<typeof real> => {
        const sources = watched.getStore();
        return sources === undefined ? real.call(crypto) : uuidOf(sources, randomUUID);
      };
      return randomUUID;
    }),
  ];
  return () => {
    for (const each of restored) each();
  };
}

function watchedDate(real: DateConstructor): DateConstructor {
  const now = (): number => watched.getStore()?.now("Date.now()", now) ?? real.now();
  const construct = (target: DateConstructor, given: unknown[], newTarget: Called): object => {
    const sources = given.length === 0 ? watched.getStore() : undefined;
    const made = sources === undefined ? given : [sources.now("new Date()", construct)];
    return Reflect.construct(target, made, newTarget) as object;
  };
  const apply = (target: DateConstructor): string => {
    const sources = watched.getStore();
    return (sources === undefined ? new target() : new target(sources.now("Date()", apply))).toString();
  };
  const get = (target: DateConstructor, key: string | symbol): unknown =>
    key === "now" ? now : Reflect.get(target, key);
  return new Proxy(real, { construct, apply, get });
}

function uuidOf(sources: WatchedSources, called: Called): ReturnType<typeof crypto.randomUUID> {
  const digits = (count: number): string =>
    Array.from({ length: count }, () =>
      Math.floor(sources.random("crypto.randomUUID()", called) * 16).toString(16),
    ).join("");
  return `${digits(8)}-${digits(4)}-4${digits(3)}-8${digits(3)}-${digits(12)}`;
}
