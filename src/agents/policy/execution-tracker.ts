import {
  executionBudget,
  Fault,
  fromNanoUsd,
  openLedger,
  Priority,
  unlimitedBudget,
  type Account,
  type ExecutionBudget,
  type Exhaustion,
  type Spend,
  type SpendCaps,
  type RunSnapshot,
  type TaskId,
  type TopUp,
  type UnknownPrice,
} from "../../kernel/index.ts";
import { OwnPurse, type Hold, type Reserving, type Spending } from "./own-purse.ts";

/** Amounts in the units a user writes. */
export interface Amounts {
  readonly tokens: number;
  readonly costUsd: number;
  readonly turns: number;
}

export interface ExecutionTrackerOptions {
  /** The share of a cap at which `onWarning` is called, once per dimension. 0.8 unless told. */
  readonly warnAt?: number;
  readonly onWarning?: (warning: Exhaustion) => void;
  /** B4: `refuse` unless told. */
  readonly unknownPrice?: UnknownPrice;
}

/**
 * One task's running tab. Made from a budget it stands alone and owns a ledger; made from a run (`new ExecutionTracker(ctx)`) it is a
 * view of the task's account, which only the runtime books on: `ctx.llm` reserves and settles by itself.
 *
 * B1: what is reserved counts as used until it is settled, so calls made side by side never pass a cap. `deadlineMs` is not counted
 * here: `RunMeta.check()` holds it.
 */
export class ExecutionTracker {
  readonly #own: OwnPurse | null;
  readonly #look: () => Account | undefined;

  constructor(
    source: Partial<ExecutionBudget> | { readonly snapshot: RunSnapshot; readonly taskId: TaskId } = {},
    options: ExecutionTrackerOptions = {},
  ) {
    if ("snapshot" in source) {
      this.#own = null;
      this.#look = () => source.snapshot.ledger.accounts[source.taskId];
    } else {
      const { warnAt = 0.8, onWarning, unknownPrice } = options;
      const own = new OwnPurse(openLedger(unknownPrice), onWarning);
      own.open({ budget: executionBudget(source), priority: Priority.NORMAL, warnAt });
      this.#own = own;
      this.#look = () => own.account;
    }
  }

  /**
   * Holds the most a call can cost before it is made. Resolves at once if it fits; waits while holds that are open may leave room;
   * rejects with `BudgetExhaustedError` when they cannot. The output limit of the call is to be `outputTokens` of what it resolves to.
   */
  async reserve(call: Reserving): Promise<Hold> {
    return this.#writable("reserve", "ctx.llm() reserves before each call").reserve(call);
  }

  /**
   * What the call did use takes the place of what was held. Throws `BudgetExhaustedError` when it was billed above its bound; it is
   * booked all the same.
   */
  settle(hold: Hold, used: Spending): void {
    this.#writable("settle", "ctx.llm() settles with the record of the call").settle(hold, used);
  }

  /** B3: nobody said what the call used, so it is charged in full, and counted as lost. */
  lose(hold: Hold): void {
    this.#writable("lose", "the runtime charges what it lost").end("lose", hold);
  }

  /** The call was refused before anything was sent back: nothing is charged. */
  refund(hold: Hold): void {
    this.#writable("refund", "the runtime gives back what was refused").end("refund", hold);
  }

  /** Adds what is known only afterwards; throws `BudgetExhaustedError` the moment a cap is passed, and again until it is topped up. */
  consume(used: Partial<Amounts>): void {
    this.#writable("consume", "what ctx.llm() uses is booked by it").consume(used);
  }

  /** How much further the caps go. */
  topUp(add: Partial<TopUp>): void {
    this.#writable("topUp", "call run.topUp() on the run's handle").topUp(add);
  }

  /** What may be spent; `null` is unlimited. Inside a run with all top-ups; the tighter caps of those above count as well. */
  get limits(): Omit<ExecutionBudget, "deadlineMs"> {
    const caps: SpendCaps = this.#look()?.caps ?? { tokens: null, nanoUsd: null, turns: null };
    return {
      maxTokens: caps.tokens,
      maxCostUsd: caps.nanoUsd === null ? unlimitedBudget.maxCostUsd : fromNanoUsd(caps.nanoUsd),
      maxTurns: caps.turns,
    };
  }

  /** What children spent, and what was lost, included (B3, B6). */
  get spent(): Amounts {
    return amountsOf(this.#look()?.spent);
  }

  /** The part of `spent` that no provider reported. */
  get lost(): Amounts {
    return amountsOf(this.#look()?.lost);
  }

  /** Held for calls that are open. */
  get reserved(): Amounts {
    return amountsOf(this.#look()?.reserved);
  }

  /** Calls whose price is not known: `spent.costUsd` lacks them. */
  get unpriced(): number {
    return this.#look()?.unpriced ?? 0;
  }

  #writable(method: string, instead: string): OwnPurse {
    if (this.#own !== null) return this.#own;
    throw new Fault(
      "unsupported",
      `ExecutionTracker.${method}: inside a run the tracker is a view of the money the runtime holds; ${instead}`,
    );
  }
}

function amountsOf(spend: Spend | undefined): Amounts {
  const { tokens, nanoUsd, turns } = spend ?? { tokens: 0, nanoUsd: 0, turns: 0 };
  return { tokens, costUsd: fromNanoUsd(nanoUsd), turns };
}
