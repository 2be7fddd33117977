import {
  addUsage,
  addUsd,
  fromNanoUsd,
  noUsage,
  toNanoUsd,
  toNanoUsdLimit,
  totalTokens,
  type BudgetDimension,
  type ExecutionBudget,
  type RunResult,
} from "../kernel/index.ts";

type Spending = Pick<RunResult, "usage" | "costUsd" | "unreported" | "turns">;

/** What of a budget a run spends; its time is not of it. */
type RunLedger = Omit<ExecutionBudget, "deadlineMs">;
export type SpentDimension = Exclude<BudgetDimension, "agents">;

/** What several runs used together, and what is left of caps on it. */
export class Bill {
  readonly #caps: RunLedger;
  #total: Spending = { usage: noUsage, costUsd: 0, unreported: { tokens: 0, costUsd: 0 }, turns: 0 };
  /** Of those whose cost is known. */
  #nanoUsd = 0;

  constructor(caps: RunLedger) {
    this.#caps = caps;
  }

  get costUsd(): number | null {
    return this.#total.costUsd;
  }

  /** What the next may spend. */
  get left(): RunLedger {
    const { maxTokens, maxCostUsd, maxTurns } = this.#caps;
    const { usage, unreported: lost, turns } = this.#total;
    return {
      maxTokens: maxTokens === null ? null : Math.max(0, maxTokens - totalTokens(usage) - lost.tokens),
      maxCostUsd:
        maxCostUsd === null ? null : fromNanoUsd(Math.max(0, toNanoUsdLimit(maxCostUsd) - this.#nanoUsd)),
      maxTurns: maxTurns === null ? null : Math.max(0, maxTurns - turns),
    };
  }

  /** Of which nothing is left. */
  get exhausted(): SpentDimension | undefined {
    const { maxTokens, maxCostUsd, maxTurns } = this.left;
    if (maxCostUsd === 0) return "costUsd";
    if (maxTokens === 0) return "tokens";
    return maxTurns === 0 ? "turns" : undefined;
  }

  add({ usage, costUsd, unreported: lost, turns }: Spending): void {
    const total = this.#total;
    this.#nanoUsd += toNanoUsd(costUsd ?? 0);
    this.#total = {
      usage: addUsage(total.usage, usage),
      costUsd: addKnown(total.costUsd, costUsd),
      unreported: {
        tokens: total.unreported.tokens + lost.tokens,
        costUsd: addKnown(total.unreported.costUsd, lost.costUsd),
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
