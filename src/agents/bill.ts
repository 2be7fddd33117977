import {
  addUsage,
  addUsd,
  fromNanoUsd,
  noUsage,
  toNanoUsd,
  toNanoUsdLimit,
  type RunResult,
} from "../kernel/index.ts";

type Spending = Pick<RunResult, "usage" | "costUsd" | "lost" | "turns">;

/** What several runs used together, and what is left of a cap on their cost. */
export class Bill {
  readonly #maxNanoUsd: number | undefined;
  #total: Spending = { usage: noUsage, costUsd: 0, lost: { tokens: 0, costUsd: 0 }, turns: 0 };
  /** Of those whose cost is known. */
  #nanoUsd = 0;

  constructor(maxCostUsd: number | undefined) {
    this.#maxNanoUsd = maxCostUsd === undefined ? undefined : toNanoUsdLimit(maxCostUsd);
  }

  get costUsd(): number | null {
    return this.#total.costUsd;
  }

  /** `undefined`: there is no cap. */
  get leftUsd(): number | undefined {
    if (this.#maxNanoUsd === undefined) return undefined;
    return fromNanoUsd(Math.max(0, this.#maxNanoUsd - this.#nanoUsd));
  }

  add({ usage, costUsd, lost, turns }: Spending): void {
    const total = this.#total;
    this.#nanoUsd += toNanoUsd(costUsd ?? 0);
    this.#total = {
      usage: addUsage(total.usage, usage),
      costUsd: addKnown(total.costUsd, costUsd),
      lost: {
        tokens: total.lost.tokens + lost.tokens,
        costUsd: addKnown(total.lost.costUsd, lost.costUsd),
      },
      turns: total.turns + turns,
    };
  }

  of<Output>(result: RunResult<Output>): RunResult<Output> {
    return { ...result, ...this.#total };
  }
}

function addKnown(one: number | null, other: number | null): number | null {
  return one === null || other === null ? null : addUsd(one, other);
}
