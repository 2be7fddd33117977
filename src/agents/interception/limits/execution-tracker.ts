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
  type RunSnapshot,
  type Spend,
  type SpendCaps,
  type TaskId,
  type TopUp,
  type UnknownPrice,
  is,
  optionTable,
  type OptionKinds,
} from "../../../kernel/index.ts";
import { requireBudget } from "./spawn-tracker.ts";
import { StandaloneLedger, type Hold, type Reserving, type Spending } from "./standalone-ledger.ts";

/** Amounts in the units of the public API. */
export interface Amounts {
  readonly tokens: number;
  readonly costUsd: number;
  readonly turns: number;
}

/** The amounts that `ExecutionTracker.consume` charges. Default of each amount: 0. */
export interface Consumption {
  readonly tokens?: number | undefined;
  readonly costUsd?: number | undefined;
  /** Another name of `costUsd`. */
  readonly cost?: number | undefined;
  readonly turns?: number | undefined;
}

export interface ExecutionTrackerOptions {
  /** The fraction of a cap at which `onWarning` is called, once per dimension. Default: 0.8. */
  readonly warnAt?: number;
  readonly onWarning?: (warning: Exhaustion) => void;
  /** B4: what happens to calls without a known price under a budget in dollars. Default: `"refuse"`. */
  readonly unknownPrice?: UnknownPrice;
}

const knownOptions = optionTable({
  warnAt: is.number({ above: 0, to: 1, default: 0.8 }),
  onWarning: is.callback(),
  unknownPrice: is.choice(["refuse", "ignore"]),
} satisfies OptionKinds<ExecutionTrackerOptions>);

const consumption = optionTable({
  tokens: is.integer({ from: 0 }),
  costUsd: is.number({ from: 0, finite: true }),
  cost: is.number({ from: 0, finite: true }),
  turns: is.integer({ from: 0 }),
} satisfies OptionKinds<Consumption>);

/**
 * Tracks the spending of one task. If it is created from a budget, it has its own ledger. If it is created from a
 * run (`new ExecutionTracker(ctx)`), it is a read-only view of the task's account, which only the runtime changes.
 *
 * B1: reserved amounts count as used until they are settled, so parallel calls never exceed a cap. `deadlineMs` is
 * not tracked here; `RunMeta.check()` enforces it.
 */
export class ExecutionTracker {
  readonly #own: StandaloneLedger | null;
  readonly #look: () => Account | undefined;

  constructor(
    source: Partial<ExecutionBudget> | { readonly snapshot: RunSnapshot; readonly taskId: TaskId } = {},
    options: ExecutionTrackerOptions = {},
  ) {
    requireBudget("ExecutionTracker", source, "maxTokens");
    if ("snapshot" in source) {
      this.#own = null;
      this.#look = () => source.snapshot.ledger.accounts[source.taskId];
    } else {
      const { warnAt, onWarning, unknownPrice } = knownOptions.read("ExecutionTracker", options);
      const own = new StandaloneLedger(openLedger(unknownPrice), onWarning);
      own.open({ budget: executionBudget(source), priority: Priority.NORMAL, warnAt });
      this.#own = own;
      this.#look = () => own.account;
    }
  }

  /**
   * Reserves the upper bound of a call's cost. It resolves when the reservation fits. It waits while open
   * reservations may still return an amount, and rejects with `BudgetExhaustedError` if they cannot. The call must
   * send `outputTokens` of the result as its output limit.
   */
  async reserve(call: Reserving): Promise<Hold> {
    return this.#writable("reserve", "ctx.llm() reserves before each call").reserve(call);
  }

  /**
   * Replaces a reservation by what the call has used. If more was billed than reserved, it charges the amount and
   * throws `BudgetExhaustedError`.
   */
  settle(hold: Hold, used: Spending): void {
    this.#writable("settle", "ctx.llm() settles with the record of the call").settle(hold, used);
  }

  /** B3: charges the full reservation, because no usage was reported. */
  lose(hold: Hold): void {
    this.#writable("lose", "the runtime charges what it lost").end("lose", hold);
  }

  /** Returns a reservation whose call was refused before anything was generated. */
  refund(hold: Hold): void {
    this.#writable("refund", "the runtime gives back what was refused").end("refund", hold);
  }

  /**
   * Charges an amount that is known only afterwards. It throws `BudgetExhaustedError` while a cap is exceeded.
   * Numbers as arguments are tokens, dollars and turns: `consume(4_200)` charges tokens.
   */
  consume(used: number | Consumption = {}, cost?: number, turns?: number): void {
    const own = this.#writable("consume", "what ctx.llm() uses is booked by it");
    if (typeof used !== "number" && (cost !== undefined || turns !== undefined))
      throw new Fault(
        "invalid_argument",
        "invalid arguments of consume(): expected an object, or tokens, cost and turns in this order; name every amount in the object",
      );
    const named: Consumption = typeof used === "number" ? { tokens: used, cost, turns } : used;
    const amounts = consumption.read("consume()", named);
    if (amounts.cost !== undefined && amounts.costUsd !== undefined)
      throw new Fault(
        "invalid_argument",
        "invalid cost of consume(): costUsd is given as well, and both mean dollars; give one of them",
      );
    own.consume({
      tokens: amounts.tokens ?? 0,
      costUsd: amounts.costUsd ?? amounts.cost ?? 0,
      turns: amounts.turns ?? 0,
    });
  }

  /** Raises the caps by the given amounts. */
  topUp(add: Partial<TopUp>): void {
    this.#writable("topUp", "call run.topUp() on the run's handle").topUp(add);
  }

  /**
   * The caps; `null` means unlimited. Inside a run they include all top-ups. Lower caps of ancestors apply as well.
   */
  get limits(): Omit<ExecutionBudget, "deadlineMs"> {
    const caps: SpendCaps = this.#look()?.caps ?? { tokens: null, nanoUsd: null, turns: null };
    return {
      maxTokens: caps.tokens,
      maxCostUsd: caps.nanoUsd === null ? unlimitedBudget.maxCostUsd : fromNanoUsd(caps.nanoUsd),
      maxTurns: caps.turns,
    };
  }

  /** The amounts spent, including those of children and of unreported calls (B3, B6). */
  get spent(): Amounts {
    return amountsOf(this.#look()?.spent);
  }

  /** The part of `spent` for which no provider reported usage. */
  get lost(): Amounts {
    return amountsOf(this.#look()?.lost);
  }

  /** The amounts reserved for calls in flight. */
  get reserved(): Amounts {
    return amountsOf(this.#look()?.reserved);
  }

  /** Number of calls without a known price; `spent.costUsd` does not include them. */
  get unpriced(): number {
    return this.#look()?.unpriced ?? 0;
  }

  #writable(method: string, instead: string): StandaloneLedger {
    if (this.#own !== null) return this.#own;
    throw new Fault(
      "unsupported",
      `ExecutionTracker.${method} is not available inside a run, where the tracker is a read-only view; ${instead}`,
    );
  }
}

function amountsOf(spend: Spend | undefined): Amounts {
  const { tokens, nanoUsd, turns } = spend ?? { tokens: 0, nanoUsd: 0, turns: 0 };
  return { tokens, costUsd: fromNanoUsd(nanoUsd), turns };
}
