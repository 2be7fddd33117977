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
} from "../../kernel/index.ts";

/** A call that is to be made, at most. */
export interface Reserving {
  /** An upper bound of what is sent. */
  readonly inputTokens?: number;
  /** What the call asks for; it gets less when less is left, and no less than `minOutputTokens`, 1 unless told. */
  readonly maxOutputTokens?: number;
  readonly minOutputTokens?: number;
  /** Of the input; `null`: its price is not known (B4). */
  readonly inputCostUsd?: number | null;
  /** Of one token of output. */
  readonly outputUsdPerToken?: number | null;
  /** 1 unless told; another try of the same turn says 0. */
  readonly turns?: number;
  readonly attempt?: number;
}

/** Money held for a call until it is settled. */
export interface Hold {
  readonly id: string;
  /** The output limit the call is to send. */
  readonly outputTokens: number;
  /** Less than was asked for: an answer cut there means the budget ran out, not that the model was done (B1). */
  readonly clamped: boolean;
}

/** What a provider reported. `costUsd` `null`: not known, charged as held. */
export interface Spending {
  readonly tokens: number;
  readonly costUsd?: number | null;
}

/** A ledger of one account outside any run, and those who wait for money in it. */
export class OwnPurse {
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
    const { inputTokens = 0, maxOutputTokens = 0, minOutputTokens, turns = 1, attempt = 1 } = call;
    const { inputCostUsd = 0, outputUsdPerToken = 0 } = call;
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

  settle(hold: Hold, { tokens, costUsd = 0 }: Spending): void {
    this.#end({ type: "settle", id: hold.id, tokens, costUsd }, hold);
  }

  end(type: "lose" | "refund", hold: Hold): void {
    this.#end({ type, id: hold.id }, hold);
  }

  consume({
    tokens = 0,
    costUsd = 0,
    turns = 0,
  }: {
    readonly tokens?: number;
    readonly costUsd?: number;
    readonly turns?: number;
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
      throw new Fault("not_found", `${id} is not held: it was settled, lost or given back before`);
    if (overrun !== null) throw exhausted(overrun);
  }

  #book(command: LedgerCommand): LedgerOutcome {
    const { state, outcome } = stepLedger(this.#ledger, command);
    this.#ledger = state;
    for (const decision of outcome.decisions) this.#decide(decision);
    for (const warning of outcome.warnings) this.#onWarning?.(warning);
    return outcome;
  }

  /** Those of a reservation that is just being made find nobody waiting yet. */
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

function exhausted({ dimension, limit, used }: Exhaustion): BudgetExhaustedError {
  return new BudgetExhaustedError({ dimension, limit, used });
}

function unpriced(): Fault {
  return new Fault(
    "unknown_price",
    `the call has no known price and maxCostUsd is set: give inputCostUsd and outputUsdPerToken, or set unknownPrice to "ignore"`,
  );
}
