import {
  BudgetExhaustedError,
  fromNanoUsd,
  rootTaskId,
  type Account,
  type Failure,
  type Spend,
  type TopUp,
} from "../kernel/index.ts";

/** Limits of one fork, or amounts that are added to them. */
export type ForkLimits = Partial<Pick<TopUp, "maxCostUsd" | "maxTokens" | "maxTurns">>;

/** The limits of an experiment's fork, and the amounts that it has spent. */
export interface KnownFork {
  readonly caps: Account["caps"];
  readonly spent: Spend;
  readonly hasEnded: boolean;
}

/** The amounts that a fork needs after it has stopped at its part of the budget. */
export interface ForkLack {
  readonly unit: keyof Spend;
  /** Minimum amount with which the fork can continue. */
  readonly short: number;
}

/** Values that the forks of one run of an experiment share. */
export interface ForkBudgetOptions {
  /** Returns the current account of the experiment. It contains the costs of judges. */
  readonly account: () => Account | undefined;
  /** Number of parts of the budget, one for each trial that spends. */
  readonly parts: number;
  /** Whether there are judges. They spend the amounts that no fork holds. */
  readonly hasJudges: boolean;
  /** Reads the existing forks, by their ids. Called once. */
  readonly known: () => Promise<ReadonlyMap<string, KnownFork>>;
}

const units = ["nanoUsd", "tokens", "turns"] as const satisfies readonly (keyof Spend)[];
const nothing: Spend = { nanoUsd: 0, tokens: 0, turns: 0 };

/**
 * The budget of an experiment whose trials are forks, that is, separate runs. A fork receives a part of the budget
 * when it begins; the unspent rest is returned for other forks. A fork that needs more waits until another fork has
 * returned something. Forks and judges together spend no more than the budget.
 */
export class ForkBudget {
  readonly #options: ForkBudgetOptions;
  /** For each fork, the amounts that it may spend, or that it has spent if it has ended. */
  readonly #held = new Map<string, Spend>();
  /** The trials that have begun. */
  readonly #begun = new Set<string>();
  readonly #working = new Set<string>();
  readonly #waiting = new Set<string>();
  #changed = Promise.withResolvers<void>();
  #loaded: Promise<void> | undefined;

  constructor(options: ForkBudgetOptions) {
    this.#options = options;
  }

  get isLimited(): boolean {
    const caps = this.#options.account()?.caps;
    return caps !== undefined && units.some((unit) => caps[unit] !== null);
  }

  /**
   * Counts a trial as begun, so that the parts of the remaining trials become larger. For a stored run, only its
   * judges spend money.
   */
  begin(trial: string, isFork = true): void {
    if (isFork || this.#options.hasJudges) this.#begun.add(trial);
  }

  /**
   * Takes a part for a new fork, or the amount that an ended fork needs. Throws `budget_exhausted` if nothing is
   * left and no other fork can return something.
   */
  async take(fork: string, trial: string, lack?: ForkLack): Promise<ForkLimits> {
    if (!this.isLimited) return {};
    await (this.#loaded ??= this.#load());
    for (let unit = this.#shortUnit(lack); unit !== undefined; unit = this.#shortUnit(lack))
      await this.#wait(fork, unit, lack);
    const part = this.#partOf(lack);
    const held = lack === undefined ? nothing : (this.#held.get(fork) ?? nothing);
    this.#held.set(fork, combined(held, { ...nothing, ...part }));
    this.#working.add(fork);
    this.begin(trial);
    return limitsOf(part);
  }

  /** Returns the unspent rest of an ended fork. */
  async end(fork: string, spent: Spend): Promise<void> {
    if (!this.isLimited) return;
    await (this.#loaded ??= this.#load());
    this.#held.set(fork, spent);
    this.#working.delete(fork);
    this.#notify();
  }

  /**
   * Waits until a judge can spend something. Throws `budget_exhausted` if nothing is left and no fork can return
   * something.
   */
  async requireLeft(judge: string): Promise<void> {
    await (this.#loaded ??= this.#load());
    for (let unit = this.#shortUnit(); unit !== undefined; unit = this.#shortUnit())
      await this.#wait(judge, unit, undefined);
  }

  /**
   * Returns what a fork needs that has stopped at its part. `undefined` if it ended for another reason, such as the
   * budget of its original run.
   */
  lackOf(fork: string, caps: Account["caps"], failure: Failure | null): ForkLack | undefined {
    const { dimension, taskId, cap, refused, limit, used } = failure?.details ?? {};
    if (failure?.code !== "budget_exhausted" || taskId !== rootTaskId || cap !== undefined) return undefined;
    const unit = typeof dimension === "string" ? unitOf[dimension] : undefined;
    if (unit === undefined || (this.#options.account()?.caps[unit] ?? null) === null) return undefined;
    const held = this.#held.get(fork)?.[unit];
    // The budget of the stored run itself is smaller than the part.
    if (held !== undefined && this.#working.has(fork) && (caps[unit] ?? held) < held) return undefined;
    const { reserved = 0, remaining = 0 } = (refused ?? {}) as { reserved?: number; remaining?: number };
    const short = reserved > 0 ? reserved - remaining : Number(used) - Number(limit);
    const least = unit === "nanoUsd" ? Math.ceil(short * 1e9) : Math.ceil(short);
    return { unit, short: Math.max(1, Number.isFinite(least) ? least : 1) };
  }

  async #load(): Promise<void> {
    for (const [fork, { caps, spent, hasEnded }] of await this.#options.known()) {
      this.#held.set(fork, hasEnded ? spent : largest(spent, caps));
      if (!hasEnded) this.#working.add(fork);
    }
  }

  /** Waits until a fork has returned something. Throws if no active fork can do this. */
  async #wait(taker: string, unit: keyof Spend, lack: ForkLack | undefined): Promise<void> {
    this.#waiting.add(taker);
    const isAnyWorking = [...this.#working].some((each) => !this.#waiting.has(each));
    if (isAnyWorking) await this.#changed.promise;
    this.#waiting.delete(taker);
    if (isAnyWorking) return;
    this.#working.delete(taker);
    this.#notify();
    throw this.#exhausted(unit, lack);
  }

  #shortUnit(lack?: ForkLack): keyof Spend | undefined {
    return units.find((unit) => this.#isShort(unit, lack));
  }

  #isShort(unit: keyof Spend, lack: ForkLack | undefined): boolean {
    const free = this.#free(unit);
    return free !== null && free < (lack?.unit === unit ? lack.short : 1);
  }

  /** Returns the amount that neither judges nor forks have spent or hold. `null` if it is unlimited. */
  #free(unit: keyof Spend): number | null {
    const account = this.#options.account();
    const cap = account?.caps[unit] ?? null;
    if (account === undefined || cap === null) return null;
    const held = [...this.#held.values()].reduce((sum, each) => sum + each[unit], 0);
    return cap - account.spent[unit] - account.reserved[unit] - held;
  }

  #partOf(lack: ForkLack | undefined): Partial<Spend> {
    const { parts, hasJudges, account } = this.#options;
    const left = Math.max(1, parts - this.#begun.size) + (hasJudges ? 1 : 0);
    const part: Partial<Record<keyof Spend, number>> = {};
    for (const unit of units) {
      const free = this.#free(unit);
      const cap = account()?.caps[unit] ?? null;
      if (free === null || cap === null || (lack !== undefined && lack.unit !== unit)) continue;
      const least = lack === undefined ? 1 : Math.max(lack.short, Math.floor(cap / parts));
      part[unit] = Math.min(free, Math.max(Math.floor(free / left), least));
    }
    return part;
  }

  #exhausted(unit: keyof Spend, lack: ForkLack | undefined): BudgetExhaustedError {
    const amount = (value: number): number => (unit === "nanoUsd" ? fromNanoUsd(value) : value);
    const cap = this.#options.account()?.caps[unit] ?? 0;
    const free = Math.max(0, this.#free(unit) ?? 0);
    const short = lack?.unit === unit ? lack.short : 1;
    return new BudgetExhaustedError({
      dimension: unit === "nanoUsd" ? "costUsd" : unit,
      limit: amount(cap),
      used: amount(cap - free + short),
      refused: {
        reserved: amount(short),
        remaining: amount(free),
        spent: amount(cap - free),
        unreported: 0,
      },
      details: { taskId: rootTaskId },
    });
  }

  #notify(): void {
    const { resolve } = this.#changed;
    this.#changed = Promise.withResolvers<void>();
    resolve();
  }
}

const unitOf: Readonly<Record<string, keyof Spend>> = {
  costUsd: "nanoUsd",
  tokens: "tokens",
  turns: "turns",
};

function combined(one: Spend, other: Spend): Spend {
  return {
    nanoUsd: one.nanoUsd + other.nanoUsd,
    tokens: one.tokens + other.tokens,
    turns: one.turns + other.turns,
  };
}

function largest(spent: Spend, caps: Account["caps"]): Spend {
  return {
    nanoUsd: Math.max(spent.nanoUsd, caps.nanoUsd ?? 0),
    tokens: Math.max(spent.tokens, caps.tokens ?? 0),
    turns: Math.max(spent.turns, caps.turns ?? 0),
  };
}

function limitsOf({ nanoUsd, tokens, turns }: Partial<Spend>): ForkLimits {
  return {
    ...(nanoUsd !== undefined && { maxCostUsd: fromNanoUsd(nanoUsd) }),
    ...(tokens !== undefined && { maxTokens: tokens }),
    ...(turns !== undefined && { maxTurns: turns }),
  };
}
