import {
  fromNanoUsd,
  type Account,
  type Budget,
  type BudgetVerdict,
  type RunContext,
} from "../../kernel/index.ts";
import { ExecutionTracker, type Amounts } from "../interception/limits/execution-tracker.ts";

/** A read-only view of a task's account. */
export class TaskBudget implements Budget {
  readonly #ctx: RunContext;

  constructor(ctx: RunContext) {
    this.#ctx = ctx;
  }

  get limits(): Budget["limits"] {
    return new ExecutionTracker(this.#ctx).limits;
  }

  /** Whether neither the task nor a task above it has a limit, and the task has no deadline. */
  get isUnlimited(): boolean {
    const { accounts } = this.#ctx.snapshot.ledger;
    for (let account = accounts[this.#ctx.taskId]; account !== undefined;) {
      const { tokens, nanoUsd, turns } = account.caps;
      if (tokens !== null || nanoUsd !== null || turns !== null) return false;
      account = account.parentId === null ? undefined : accounts[account.parentId];
    }
    return this.#ctx.meta.deadline === null;
  }

  spent(): Amounts {
    return new ExecutionTracker(this.#ctx).spent;
  }

  allowsTurn(): BudgetVerdict {
    const { accounts } = this.#ctx.snapshot.ledger;
    for (let account = accounts[this.#ctx.taskId]; account !== undefined;) {
      const spentUp = usedUp(account);
      if (spentUp !== undefined) return { allowed: false, exhaustion: spentUp };
      account = account.parentId === null ? undefined : accounts[account.parentId];
    }
    return { allowed: true };
  }
}

function usedUp({
  taskId,
  caps,
  spent,
}: Account): Extract<BudgetVerdict, { allowed: false }>["exhaustion"] | undefined {
  if (isUsed(caps.tokens, spent.tokens))
    return { taskId, dimension: "tokens", limit: caps.tokens ?? 0, used: spent.tokens };
  if (isUsed(caps.turns, spent.turns))
    return { taskId, dimension: "turns", limit: caps.turns ?? 0, used: spent.turns };
  if (isUsed(caps.nanoUsd, spent.nanoUsd))
    return {
      taskId,
      dimension: "costUsd",
      limit: fromNanoUsd(caps.nanoUsd ?? 0),
      used: fromNanoUsd(spent.nanoUsd),
    };
  return undefined;
}

function isUsed(cap: number | null, amount: number): boolean {
  return cap !== null && amount >= cap;
}
