import type { SeededRandom } from "./seeded-random.ts";

/**
 * What can go wrong in a simulation. The rate of `pause`, `drift`, `jump`, `partition`, `restart` and `full` is a number per minute of
 * virtual time, for each worker or for the database. The rate of all others is a probability per call or message, from 0 to 1.
 */
export const faultKinds = [
  /** A worker dies before a call of a port or soon after it, and restarts later. */
  "kill",
  /** A worker does nothing for longer than its lease, and then continues. */
  "pause",
  /** The clock of a worker runs faster or slower. */
  "drift",
  /** The clock of a worker is set forward or back. */
  "jump",
  /** A worker and the database cannot reach each other. */
  "partition",
  /** The database restarts: uncommitted data are lost. */
  "restart",
  /** The database has no space left for a while. */
  "full",
  /** A message is lost. */
  "loss",
  /** A message arrives twice. */
  "repeat",
  /** A message arrives late, after others that were sent later. */
  "delay",
  /** A request takes effect, and its answer is lost. */
  "lostAnswer",
  /** A commit takes long. */
  "slow",
  /** The store refuses a request with one of its errors. */
  "storeError",
  /** A notification of a change arrives twice, or although nothing has changed. */
  "wake",
  /** A call of an external service is lost before it takes effect. */
  "callLost",
  /** A call of an external service takes effect, but its answer is lost. */
  "callUnanswered",
  /** The answer of the outside is late. */
  "callLate",
  /** The stream of a model ends in the middle. */
  "halfStream",
  /** A worker other than the first starts again with version 2 of the code. */
  "upgrade",
] as const;

/** One of `faultKinds`. */
export type FaultKind = (typeof faultKinds)[number];

/** How often each kind of fault happens, in the unit that `faultKinds` says. An absent kind never happens. */
export type FaultRates = Readonly<Partial<Record<FaultKind, number>>>;

/** A fault that was injected. */
export interface InjectedFault {
  /** The kind and the number of the decision, such as `kill#3`. */
  readonly id: string;
  readonly kind: FaultKind;
  /** Milliseconds since the start. */
  readonly atMs: number;
  readonly text: string;
}

/**
 * Decides which faults happen. Each decision follows from the seed, the kind and its number alone, so that a scenario with fewer
 * faults is found by leaving some of them out.
 *
 * @advanced
 */
export class FaultPlan {
  readonly injected: InjectedFault[] = [];
  readonly #random: SeededRandom;
  readonly #rates: FaultRates;
  readonly #only: ReadonlySet<string> | undefined;
  readonly #elapsed: () => number;
  readonly #counts = new Map<FaultKind, number>();
  /** `true` after the end of the faults: from then on, no fault happens. */
  isOver = false;

  constructor(
    random: SeededRandom,
    {
      rates,
      only,
      elapsed,
    }: { rates: FaultRates; only?: readonly string[] | undefined; elapsed: () => number },
  ) {
    this.#random = random.named("faults");
    this.#rates = rates;
    this.#only = only && new Set(only);
    this.#elapsed = elapsed;
  }

  rate(kind: FaultKind): number {
    return this.#rates[kind] ?? 0;
  }

  /**
   * Decides whether a fault happens now, with the probability of its kind. `text` describes what the fault affects.
   */
  happens(kind: FaultKind, text: string): SeededRandom | undefined {
    const rate = this.rate(kind);
    if (this.isOver || rate === 0) return undefined;
    const { id, random } = this.#next(kind);
    if (random.next() >= rate || !this.#isAllowed(id)) return undefined;
    this.#note(id, kind, text);
    return random;
  }

  /**
   * Returns the milliseconds until the next fault of a kind that has a rate per minute. `undefined` if it never
   * happens.
   */
  next(
    kind: FaultKind,
  ): { readonly id: string; readonly inMs: number; readonly random: SeededRandom } | undefined {
    const rate = this.rate(kind);
    if (rate === 0) return undefined;
    const { id, random } = this.#next(kind);
    return { id, random, inMs: (-Math.log(1 - random.next()) / rate) * 60_000 };
  }

  /** Whether a fault that `next` has announced really happens. */
  takesPlace(id: string, kind: FaultKind, text: string): boolean {
    if (this.isOver || !this.#isAllowed(id)) return false;
    this.#note(id, kind, text);
    return true;
  }

  #isAllowed(id: string): boolean {
    return this.#only === undefined || this.#only.has(id);
  }

  #next(kind: FaultKind): { readonly id: string; readonly random: SeededRandom } {
    const count = this.#counts.get(kind) ?? 0;
    this.#counts.set(kind, count + 1);
    const id = `${kind}#${count}`;
    return { id, random: this.#random.named(id) };
  }

  #note(id: string, kind: FaultKind, text: string): void {
    this.injected.push({ id, kind, text, atMs: Math.round(this.#elapsed()) });
  }
}

/** The highest rates of a swarm. */
const swarmRates: Readonly<Record<FaultKind, number>> = {
  kill: 0.01,
  pause: 4,
  drift: 4,
  jump: 4,
  partition: 6,
  restart: 4,
  full: 2,
  loss: 0.05,
  repeat: 0.1,
  delay: 0.1,
  lostAnswer: 0.05,
  slow: 0.05,
  storeError: 0.02,
  wake: 0.1,
  callLost: 0.1,
  callUnanswered: 0.1,
  callLate: 0.1,
  halfStream: 0.1,
  upgrade: 0.5,
};

/** Swarm testing: the seed activates a random subset of the faults, each with a random rate. */
export function swarm(random: SeededRandom, most: FaultRates = swarmRates): FaultRates {
  const rates: Partial<Record<FaultKind, number>> = {};
  for (const kind of faultKinds) {
    const [isOn, share] = [random.next() < 0.5, random.next()];
    const highest = most[kind] ?? 0;
    if (isOn && highest > 0) rates[kind] = highest * (0.1 + 0.9 * share);
  }
  return rates;
}
