import type { BudgetDimension } from "../errors/budget-exhausted-error.ts";
import type { ExecutionBudget } from "./execution-budget.ts";
import type { AgentId, TaskId } from "../base/identity.ts";
import type { Priority } from "./priority.ts";

/**
 * What a run has spent and promised, as a state machine: `bookLedger` applies a command in place, `stepLedger` gives the next state and
 * leaves this one. The runtime and the execution tracker stand on it; nobody else counts money.
 *
 * A reservation is `open` from its grant to the command that ends it: `settle` (usage reported), `lose` (no usage
 * reported: charged in full), `refund` (refused before any body: charged nothing) or `crash`. One that does not fit
 * is `waiting` while what stands in its way may still come back, and fails when it cannot.
 *
 * The promises: B1 for each capped dimension spent + reserved <= cap, for a task and every ancestor, unless a provider
 * billed above its bound, which is recorded and stops the run. B2 `null` is unlimited and zero is zero. B3 an attempt
 * without reported usage is charged in full as `lost`. B6 spend counts against every ancestor.
 */
export interface Ledger {
  readonly unknownPrice: UnknownPrice;
  readonly accounts: Readonly<Record<TaskId, Account>>;
  readonly open: readonly Reservation[];
  /** In the order of asking. */
  readonly waiting: readonly ReserveCommand[];
  /** Stride scheduling of `waiting`: the lowest goes first. Empty while nobody waits. */
  readonly passes: Readonly<Partial<Record<Priority, number>>>;
  /** Set by a provider that billed above its bound; cleared by `topUp`. While set, nothing is granted. */
  readonly overrun: Overrun | null;
  /** What was spent, by the label of its reservation; those of tasks that have ended are here too. */
  readonly lines: Readonly<Record<string, CostLine>>;
}

/** Whose call it is, and of which model. */
export interface CostLabel {
  readonly agentId: AgentId;
  readonly provider: string;
  readonly modelId: string;
}

export interface CostLine {
  readonly label: CostLabel;
  /** Those that were charged. */
  readonly calls: number;
  readonly spent: Spend;
  /** The part of `spent` that no provider reported. */
  readonly lost: Spend;
  /** Calls counted at zero dollars because their price is not known. */
  readonly unpriced: number;
}

/** B4: what to do when a cost cap stands and a model has no known price. */
export type UnknownPrice = "refuse" | "ignore";

/** A dimension the ledger counts; seats are the headcount's. */
export type SpendDimension = Exclude<BudgetDimension, "agents">;

/** Whole numbers: tokens, nano-dollars, turns. */
export interface Spend {
  readonly tokens: number;
  readonly nanoUsd: number;
  readonly turns: number;
}

export interface SpendCaps {
  readonly tokens: number | null;
  readonly nanoUsd: number | null;
  readonly turns: number | null;
}

/** One task's purse. All amounts include those of its descendants. */
export interface Account {
  readonly taskId: TaskId;
  readonly parentId: TaskId | null;
  readonly priority: Priority;
  readonly caps: SpendCaps;
  readonly spent: Spend;
  readonly reserved: Spend;
  /** The part of `spent` that no provider reported. */
  readonly lost: Spend;
  /** Model calls counted at zero dollars because their price is not known. */
  readonly unpriced: number;
  /** The share of a cap at which `budget_warning` is due. */
  readonly warnAt: number;
  readonly warned: readonly SpendDimension[];
  readonly children: number;
  /** Its task ended; the account stays for its caps while children have accounts. */
  readonly closed: boolean;
}

export interface Reservation {
  readonly id: string;
  readonly taskId: TaskId;
  readonly attempt: number;
  readonly held: Spend;
  readonly priced: boolean;
  readonly label?: CostLabel;
}

export interface ReserveCommand {
  readonly type: "reserve";
  readonly id: string;
  readonly taskId: TaskId;
  /** Counts from 1; stored with the reservation, so that a crash tells which attempt was lost (B3). */
  readonly attempt: number;
  /** An upper bound of what is sent, not a guess (B1). `null`: the price is not known. */
  readonly input: { readonly tokens: number; readonly costUsd: number | null };
  /** The output limit the call will send is at most `maxTokens`, clamped to what is left, at least `minTokens` (1). */
  readonly output: {
    readonly maxTokens: number;
    readonly minTokens?: number;
    readonly usdPerToken: number | null;
  };
  /** 1 unless told; a retry of the same turn says 0. */
  readonly turns?: number;
  /** The line it is booked on. */
  readonly label?: CostLabel;
}

/** Usage that a provider reported. `costUsd` `null`: charged as reserved. */
export interface ReportedSpend {
  readonly tokens: number;
  readonly costUsd: number | null;
}

export type LedgerCommand =
  | {
      readonly type: "open";
      readonly taskId: TaskId;
      readonly parentId: TaskId | null;
      readonly budget: ExecutionBudget;
      readonly priority: Priority;
      /** 0.8 unless told. */
      readonly warnAt?: number;
    }
  | ReserveCommand
  | ({ readonly type: "settle"; readonly id: string } & ReportedSpend)
  | { readonly type: "lose" | "refund"; readonly id: string }
  /** A waiting reservation is not wanted any more. */
  | { readonly type: "withdraw"; readonly id: string }
  /** Spent without a reservation, known only afterwards. May pass a cap; then it is recorded as an overrun. */
  | ({ readonly type: "charge"; readonly taskId: TaskId; readonly turns: number } & ReportedSpend)
  | { readonly type: "topUp"; readonly taskId: TaskId; readonly add: Partial<TopUp> }
  | { readonly type: "reprioritize"; readonly taskId: TaskId; readonly priority: Priority }
  /** The task ended. Its open reservations must have ended before. */
  | { readonly type: "close"; readonly taskId: TaskId }
  /** The owner died: open attempts are lost, waiting ones will ask again. */
  | { readonly type: "crash" };

/** How much further the caps go. A dimension without a cap stays without. */
export interface TopUp {
  readonly maxTokens: number;
  readonly maxCostUsd: number;
  readonly maxTurns: number;
}

/** In the units a user writes: `costUsd` in dollars. */
export interface Exhaustion {
  readonly taskId: TaskId;
  readonly dimension: SpendDimension;
  readonly limit: number;
  readonly used: number;
}

/** A provider billed more than was reserved, or more was charged than a cap allows. */
export interface Overrun extends Exhaustion {
  readonly reservationId: string | null;
}

export type Decision =
  /** `clamped`: the limit is below what was asked for, so output that is cut there means the budget ran out. */
  | {
      readonly id: string;
      readonly kind: "granted";
      readonly outputTokens: number;
      readonly clamped: boolean;
    }
  | { readonly id: string; readonly kind: "exhausted"; readonly exhaustion: Exhaustion }
  | { readonly id: string; readonly kind: "unknown_price"; readonly taskId: TaskId };

export interface LedgerOutcome {
  /** False: the task or reservation is not here, or not in a state the command applies to; nothing changed. */
  readonly applied: boolean;
  /** Reservations this command decided, in order: its own, and others that waited. */
  readonly decisions: readonly Decision[];
  /** Soft thresholds crossed (B5). */
  readonly warnings: readonly Exhaustion[];
  readonly overrun: Overrun | null;
}

export interface LedgerStep {
  readonly state: Ledger;
  readonly outcome: LedgerOutcome;
}

export const nothing: Spend = Object.freeze({ tokens: 0, nanoUsd: 0, turns: 0 });

export function openLedger(unknownPrice: UnknownPrice = "refuse"): Ledger {
  return { unknownPrice, accounts: {}, open: [], waiting: [], passes: {}, overrun: null, lines: {} };
}
