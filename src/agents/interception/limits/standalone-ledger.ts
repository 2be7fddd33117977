import {
  BudgetExhaustedError,
  Fault,
  rootTaskId as taskId,
  stepLedger,
  type Account,
  type Decision,
  type ExecutionBudget,
  type Exhaustion,
  type Ledger,
  type LedgerCommand,
  type LedgerOutcome,
  type Priority,
  type TopUp,
  is,
  optionTable,
  type OptionKinds,
} from "../../../kernel/index.ts";

/** The upper bounds of a call that is about to be made. */
export interface Reserving {
  /** Upper bound of the input tokens. */
  readonly inputTokens?: number;
  /** The requested output limit. The granted one may be smaller, but not below `minOutputTokens` (default: 1). */
  readonly maxOutputTokens?: number;
  readonly minOutputTokens?: number;
  /** Cost of the input; `null` if its price is unknown (B4). */
  readonly inputCostUsd?: number | null;
  /** Price of one output token. */
  readonly outputUsdPerToken?: number | null;
  /** Number of turns. Default: 1. A retry of the same turn uses 0. */
  readonly turns?: number;
  readonly attempt?: number;
}

/** A reservation for one call. */
export interface Hold {
  readonly id: string;
  /** The output limit that the call must send. */
  readonly outputTokens: number;
  /** B1: whether the limit is below the requested one. An answer that is cut there means that the budget is used up. */
  readonly clamped: boolean;
}

/** Usage reported by a provider. If `costUsd` is `null`, the reserved amount is charged. */
export interface Spending {
  readonly tokens: number;
  readonly costUsd?: number | null;
}

const reserving = optionTable({
  inputTokens: is.integer({ from: 0 }),
  maxOutputTokens: is.integer({ from: 0 }),
  minOutputTokens: is.integer({ from: 0 }),
  inputCostUsd: is.number({ from: 0, finite: true, or: [null, "an unknown price"] }),
  outputUsdPerToken: is.number({ from: 0, finite: true, or: [null, "an unknown price"] }),
  turns: is.integer({ from: 0 }),
  attempt: is.integer({ from: 1 }),
} satisfies OptionKinds<Reserving>);
const spending = optionTable({
  tokens: is.integer({ from: 0, required: true }),
  costUsd: is.number({ from: 0, finite: true, or: [null, "an unknown price"] }),
} satisfies OptionKinds<Spending>);

/** A ledger with one account outside any run, with the callers that wait for budget. */
export class StandaloneLedger {
  #ledger: Ledger;
  #holds = 0;
  readonly #onWarning: ((warning: Exhaustion) => void) | undefined;
  readonly #waiting = new Map<string, PromiseWithResolvers<Hold>>();

  constructor(ledger: Ledger, onWarning: ((warning: Exhaustion) => void) | undefined) {
    this.#ledger = ledger;
    this.#onWarning = onWarning;
  }

  get account(): Account | undefined {
    return this.#ledger.accounts[taskId];
  }

  open(account: {
    readonly budget: ExecutionBudget;
    readonly priority: Priority;
    readonly warnAt: number;
  }): void {
    this.#book({ type: "open", taskId, parentId: null, ...account });
  }

  reserve(call: Reserving): Promise<Hold> {
    const {
      inputTokens = 0,
      maxOutputTokens = 0,
      minOutputTokens,
      turns = 1,
      attempt = 1,
      ...prices
    } = reserving.read("reserve()", call);
    const { inputCostUsd = 0, outputUsdPerToken = 0 } = prices;
    const id = `hold ${++this.#holds}`;
    const { decisions } = this.#book({
      type: "reserve",
      id,
      taskId,
      attempt,
      input: { tokens: inputTokens, costUsd: inputCostUsd },
      output: {
        maxTokens: maxOutputTokens,
        usdPerToken: outputUsdPerToken,
        ...(minOutputTokens === undefined ? {} : { minTokens: minOutputTokens }),
      },
      turns,
    });
    const hold = Promise.withResolvers<Hold>();
    this.#waiting.set(id, hold);
    for (const decision of decisions) this.#decide(decision);
    return hold.promise;
  }

  settle(hold: Hold, used: Spending): void {
    const { tokens, costUsd = 0 } = spending.read("settle()", used);
    this.#end({ type: "settle", id: hold.id, tokens, costUsd }, hold);
  }

  end(type: "lose" | "refund", hold: Hold): void {
    this.#end({ type, id: hold.id }, hold);
  }

  consume({
    tokens,
    costUsd,
    turns,
  }: {
    readonly tokens: number;
    readonly costUsd: number;
    readonly turns: number;
  }): void {
    const { overrun } = this.#book({ type: "charge", taskId, tokens, costUsd, turns });
    if (overrun !== null) throw exhausted(overrun);
  }

  topUp(add: Partial<TopUp>): void {
    this.#book({ type: "topUp", taskId, add });
  }

  #end(command: LedgerCommand, { id }: Hold): void {
    const { applied, overrun } = this.#book(command);
    if (!applied)
      throw new Fault("not_found", `reservation ${id} is not open; it was settled, lost or refunded before`);
    if (overrun !== null) throw exhausted(overrun);
  }

  #book(command: LedgerCommand): LedgerOutcome {
    const { state, outcome } = stepLedger(this.#ledger, command);
    this.#ledger = state;
    for (const decision of outcome.decisions) this.#decide(decision);
    for (const warning of outcome.warnings) this.#onWarning?.(warning);
    return outcome;
  }

  /**
   * Passes a decision to the caller that waits for it. For a reservation that is just being made, no caller waits
   * yet.
   */
  #decide(decision: Decision): void {
    const waiting = this.#waiting.get(decision.id);
    this.#waiting.delete(decision.id);
    if (decision.kind === "granted") {
      const { id, outputTokens, clamped } = decision;
      waiting?.resolve({ id, outputTokens, clamped });
    } else if (decision.kind === "exhausted") waiting?.reject(exhausted(decision.exhaustion));
    else waiting?.reject(unpriced());
  }
}

function exhausted({ dimension, limit, used, refused }: Exhaustion): BudgetExhaustedError {
  return new BudgetExhaustedError({ dimension, limit, used, ...(refused && { refused }) });
}

function unpriced(): Fault {
  return new Fault(
    "unknown_price",
    `the call has no known price, but maxCostUsd is set; pass inputCostUsd and outputUsdPerToken, or set unknownPrice to "ignore"`,
  );
}
