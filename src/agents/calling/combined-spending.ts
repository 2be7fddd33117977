import {
  addUsage,
  addUsd,
  changedResult,
  fromNanoUsd,
  noUsage,
  toNanoUsd,
  toNanoUsdLimit,
  totalTokens,
  type BudgetDimension,
  type ExecutionBudget,
  type RunResult,
  type UnreportedSpend,
} from "../../kernel/index.ts";

type Spending = Pick<RunResult, "usage" | "costUsd" | "unreported" | "turns">;

/** The dimensions of a budget that a run spends. Time is not included. */
type SpendCaps = Omit<ExecutionBudget, "deadlineMs">;
export type SpentDimension = Exclude<BudgetDimension, "agents">;

/** Adds up what several runs have used, and computes the rest of their common budget. */
export class CombinedSpending {
  readonly #caps: SpendCaps;
  #total: Spending = { usage: noUsage, costUsd: 0, unreported: { tokens: 0, costUsd: 0 }, turns: 0 };
  /** Sum of the known costs. */
  #nanoUsd = 0;

  constructor(caps: SpendCaps) {
    this.#caps = caps;
  }

  get costUsd(): number | null {
    return this.#total.costUsd;
  }

  /** The amounts that the next run may spend. */
  get left(): SpendCaps {
    const { maxTokens, maxCostUsd, maxTurns } = this.#caps;
    const { usage, unreported: lost, turns } = this.#total;
    return {
      maxTokens: maxTokens === null ? null : Math.max(0, maxTokens - totalTokens(usage) - lost.tokens),
      maxCostUsd:
        maxCostUsd === null ? null : fromNanoUsd(Math.max(0, toNanoUsdLimit(maxCostUsd) - this.#nanoUsd)),
      maxTurns: maxTurns === null ? null : Math.max(0, maxTurns - turns),
    };
  }

  /** The first dimension that is used up. */
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
      unreported: addUnreported(total.unreported, lost),
      turns: total.turns + turns,
    };
  }

  of<Output>(result: RunResult<Output>): RunResult<Output> {
    return changedResult(result, this.#total);
  }
}

function addUnreported(one: UnreportedSpend, other: UnreportedSpend): UnreportedSpend {
  const tokens = one.tokens + other.tokens;
  const costUsd = addKnown(one.costUsd, other.costUsd);
  if (one.likelyUsd === undefined && other.likelyUsd === undefined) return { tokens, costUsd };
  return { tokens, costUsd, likelyUsd: addKnown(likelyOf(one), likelyOf(other)) };
}

/** Returns the likely cost of unreported calls. `null` if it is unknown, and 0 if there are no such calls. */
function likelyOf({ likelyUsd }: UnreportedSpend): number | null {
  return likelyUsd === undefined ? 0 : likelyUsd;
}

function addKnown(one: number | null, other: number | null): number | null {
  return one === null || other === null ? null : addUsd(one, other);
}
