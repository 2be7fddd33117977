import { type AgentId, type TaskId, usageNameOf } from "../base/identity.ts";
import { toNanoUsdLimit } from "../base/money.ts";
import { is, optionTable, type OptionKinds } from "../base/option-table.ts";
import type { BudgetDimension, ExhaustedCap, RefusedReservation } from "../errors/budget-exhausted-error.ts";
import type { ExecutionBudget } from "./execution-budget.ts";
import type { Priority } from "./priority.ts";
import { countLatency, noLatency } from "./latency.ts";
import { addUsageDelta, type UsageDelta } from "./usage-delta.ts";

/**
 * The money of a run, as a state machine: what is spent and what is reserved. `bookLedger` applies a command in
 * place; `stepLedger` returns the next state and leaves the given one unchanged. The runtime and `ExecutionTracker`
 * use it; no other code counts money.
 *
 * A reservation is open from its grant until it ends by `settle` (the provider reported the usage), `lose` (the
 * provider reported no usage; everything except the turn is charged), `refund` (the provider refused the call
 * before an answer; nothing is charged) or `crash`. `narrow` lowers the charge of a later `lose`, and `correct`
 * replaces that charge when the usage becomes known. A reservation that does not fit waits while other reservations
 * may still return budget, and fails if none can.
 *
 * Promises: B1: for each capped dimension, spent + reserved <= cap, for a task and every ancestor, unless a
 * provider bills above the bound, which is recorded and stops the run. B2: `null` means unlimited and zero means
 * zero. B3: an attempt without reported usage is charged its full tokens and dollars as `lost`, or, if the provider
 * reported the input in its stream, with that input and the output limit. Its turn is not charged. Usage that
 * becomes known later replaces the charge once. B6: spending counts against every ancestor.
 */
export interface Ledger {
  readonly unknownPrice: UnknownPrice;
  readonly accounts: Readonly<Record<TaskId, Account>>;
  readonly open: readonly Reservation[];
  /** The waiting reservations, in the order in which they were requested. */
  readonly waiting: readonly ReserveCommand[];
  /**
   * State of the stride scheduler for `waiting`: the class with the lowest value is served first. Empty while no
   * reservation waits.
   */
  readonly passes: Readonly<Partial<Record<Priority, number>>>;
  /**
   * The overrun, if a provider billed above the reserved bound; `topUp` clears it. While it is set, no reservation
   * is granted.
   */
  readonly overrun: Overrun | null;
  /** Amounts spent per label (agent and model), including those of ended tasks. */
  readonly lines: Readonly<Record<string, CostLine>>;
  /** Amounts per hour, agent and model that are not yet part of a commit (`Commit.usage`). */
  readonly tally: Readonly<Record<string, UsageDelta>>;
  /**
   * B3: the calls that were charged without reported usage and not corrected later, by the id of their reservation.
   */
  readonly lostCalls: Readonly<Record<string, LostCharge>>;
  /**
   * B6: the part of `spent` that other runs have spent which tasks of this run have started. Those runs report it
   * themselves.
   */
  readonly elsewhere: Spend;
}

/** B3: a call that was charged without reported usage. */
export interface LostCharge {
  readonly taskId: TaskId;
  /** B6: the accounts that were charged and still exist, from the account of the task upwards. */
  readonly chain: readonly TaskId[];
  readonly charged: Spend;
  readonly priced: boolean;
  readonly label?: CostLabel;
  readonly day?: string;
  readonly hour?: number;
}

/** The agent and the model of a call. */
export interface CostLabel {
  readonly agentId: AgentId;
  readonly provider: string;
  readonly modelId: string;
}

export interface CostLine {
  readonly label: CostLabel;
  /** Number of charged calls. */
  readonly calls: number;
  /** The part of `calls` for which no provider reported usage. */
  readonly lostCalls: number;
  readonly spent: Spend;
  /** The part of `spent` for which no provider reported usage. */
  readonly lost: Spend;
  /** Number of calls that were charged zero dollars because their price is unknown. */
  readonly unpriced: number;
}

/** B4: what happens if a task has a budget in dollars but the price of the model is unknown. */
export type UnknownPrice = "refuse" | "ignore";

/** A dimension that the ledger counts. Seats are counted by the headcount. */
export type SpendDimension = Exclude<BudgetDimension, "agents">;

/** Amounts as whole numbers: tokens, nano-dollars and turns. */
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

/** The account of one task. All amounts include those of its descendants. */
export interface Account {
  readonly taskId: TaskId;
  readonly parentId: TaskId | null;
  readonly priority: Priority;
  readonly caps: SpendCaps;
  readonly spent: Spend;
  readonly reserved: Spend;
  /** The part of `spent` for which no provider reported usage. */
  readonly lost: Spend;
  /** Number of model calls that were charged zero dollars because their price is unknown. */
  readonly unpriced: number;
  /** The fraction of a cap at which `budget_warning` is emitted. */
  readonly warnAt: number;
  readonly warned: readonly SpendDimension[];
  readonly children: number;
  /**
   * Whether the task has ended. While its children have accounts, its account remains, because its caps apply to
   * them.
   */
  readonly closed: boolean;
}

export interface Reservation {
  readonly id: string;
  readonly taskId: TaskId;
  readonly attempt: number;
  readonly held: Spend;
  /** B3: the amount that the call is charged if its usage is never reported. If absent, `held` is charged. */
  readonly narrowed?: Spend;
  readonly priced: boolean;
  /**
   * B6: present if the amount is reserved for another run and not for a call. The reservation then remains when the
   * owner of this run ends.
   */
  readonly lasting?: true;
  readonly label?: CostLabel;
  readonly day?: string;
  readonly hour?: number;
}

export interface ReserveCommand {
  readonly type: "reserve";
  readonly id: string;
  readonly taskId: TaskId;
  /**
   * The number of the attempt, from 1. It is stored, so that after a crash it is known which attempt has no usage
   * (B3).
   */
  readonly attempt: number;
  /** B1: upper bound of what the call sends, not an estimate. `costUsd: null` means that the price is unknown. */
  readonly input: { readonly tokens: number; readonly costUsd: number | null };
  /**
   * The output limit that the call sends. It is at most `maxTokens`, reduced to the remaining budget, and at least
   * `minTokens` (default: 1).
   */
  readonly output: {
    readonly maxTokens: number;
    readonly minTokens?: number;
    readonly usdPerToken: number | null;
  };
  /** Number of turns to reserve. Default: 1. A retry after a settled reply of the same turn reserves 0. */
  readonly turns?: number;
  /**
   * B6: reserves an amount for another run, which the task has started. The reservation remains until that run
   * ends, also if the owner of this run ends.
   */
  readonly lasting?: true;
  /** The cost line to which the call is charged. */
  readonly label?: CostLabel;
  /** The UTC day on which the call counts. If absent, the call is not part of the tally. */
  readonly day?: string;
  /** The UTC hour of that day, from 0 to 23. */
  readonly hour?: number;
}

/** Usage reported by a provider. If `costUsd` is `null`, the reserved amount is charged. */
export interface ReportedSpend {
  /** Input and output tokens. */
  readonly tokens: number;
  readonly costUsd: number | null;
  /** The part of `tokens` that are output tokens. Default: 0. */
  readonly outputTokens?: number;
  /** The part of the input that the provider read from its cache. Default: 0. */
  readonly cachedTokens?: number;
}

export type LedgerCommand =
  | {
      readonly type: "open";
      readonly taskId: TaskId;
      readonly parentId: TaskId | null;
      readonly budget: ExecutionBudget;
      readonly priority: Priority;
      /** Default: 0.8. */
      readonly warnAt?: number;
    }
  | ReserveCommand
  /**
   * `durationMs` is the time from sending the request to the end of the reply. Default of `turns`: the number of
   * reserved turns.
   */
  | ({
      readonly type: "settle";
      readonly id: string;
      readonly durationMs?: number;
      readonly turns?: number;
    } & ReportedSpend)
  /**
   * `failed` says that the model or the connection to it ended the attempt. If absent, the attempt was interrupted,
   * for example by a cancel.
   */
  | { readonly type: "lose" | "refund"; readonly id: string; readonly failed?: true }
  /**
   * B3: the provider has reported the input of an open call. `tokens` and `costUsd` are the sum of that input and
   * the output limit. If `costUsd` is `null`, the reserved dollars do not change.
   */
  | { readonly type: "narrow"; readonly id: string; readonly tokens: number; readonly costUsd: number | null }
  /**
   * B3: the usage of an unreported call became known and replaces the charge. A second correction of the same call
   * is not applied.
   */
  | ({ readonly type: "correct"; readonly id: string } & ReportedSpend)
  /** Withdraws a waiting reservation that is no longer needed. */
  | { readonly type: "withdraw"; readonly id: string }
  /**
   * Charges an amount that was not reserved, because it is known only afterwards. It may exceed a cap, which is
   * then recorded as an overrun.
   */
  | ({
      readonly type: "charge";
      readonly taskId: TaskId;
      readonly turns: number;
      /** B6: present if another run, which the task has started, has spent the amount. */
      readonly elsewhere?: true;
    } & ReportedSpend)
  | { readonly type: "topUp"; readonly taskId: TaskId; readonly add: Partial<SpendTopUp> }
  | { readonly type: "reprioritize"; readonly taskId: TaskId; readonly priority: Priority }
  /** Closes the account of an ended task. Its open reservations must have ended before. */
  | { readonly type: "close"; readonly taskId: TaskId }
  /**
   * The owner of the run died. Open attempts are charged as unreported, and waiting reservations will be requested
   * again.
   */
  | { readonly type: "crash" };

/** Amounts by which caps of the ledger are raised. A dimension without a cap stays unlimited. */
export interface SpendTopUp {
  readonly maxTokens: number;
  readonly maxCostUsd: number;
  readonly maxTurns: number;
}

/** Amounts by which the budget of a task is raised. A dimension without a limit stays unlimited. */
export interface TopUp extends SpendTopUp {
  /** B5: milliseconds by which the deadlines of the task and of its descendants move. */
  readonly deadlineMs: number;
}

/** An exhausted dimension, in the units of the public API: `costUsd` is in dollars. */
export interface Exhaustion {
  readonly taskId: TaskId;
  readonly dimension: SpendDimension;
  readonly limit: number;
  readonly used: number;
  /** The reservation that did not fit. Absent for a warning and for a bill above a cap. */
  readonly refused?: RefusedReservation;
  /** B7: the spending cap that is exhausted. Absent if the budget of a task is exhausted. */
  readonly cap?: ExhaustedCap;
}

/** An amount that exceeds a limit: a provider billed more than was reserved, or more was charged than a cap allows. */
export interface Overrun extends Exhaustion {
  readonly reservationId: string | null;
}

export type Decision =
  /**
   * `clamped` means that the output limit is below the requested one. If the output reaches it, the budget is used
   * up.
   */
  | {
      readonly id: string;
      readonly kind: "granted";
      readonly outputTokens: number;
      readonly clamped: boolean;
    }
  | { readonly id: string; readonly kind: "exhausted"; readonly exhaustion: Exhaustion }
  | { readonly id: string; readonly kind: "unknown_price"; readonly taskId: TaskId };

export interface LedgerOutcome {
  /**
   * Whether the command was applied. `false` if the task or reservation does not exist or its state does not allow
   * the command; nothing changed then.
   */
  readonly applied: boolean;
  /** The reservations that this command decided, in order: that of the command and those that waited. */
  readonly decisions: readonly Decision[];
  /** B5: soft thresholds that were crossed. */
  readonly warnings: readonly Exhaustion[];
  readonly overrun: Overrun | null;
}

export interface LedgerStep {
  readonly state: Ledger;
  readonly outcome: LedgerOutcome;
}

export const nothing: Spend = Object.freeze({ tokens: 0, nanoUsd: 0, turns: 0 });

export function openLedger(unknownPrice: UnknownPrice = "refuse"): Ledger {
  return {
    unknownPrice,
    accounts: {},
    open: [],
    waiting: [],
    passes: {},
    overrun: null,
    lines: {},
    tally: {},
    lostCalls: {},
    elsewhere: nothing,
  };
}

const dimensions = optionTable({
  maxTokens: is.integer({ from: 0, default: 0 }),
  maxCostUsd: is.number({ from: 0, default: 0 }),
  maxTurns: is.integer({ from: 0, default: 0 }),
  deadlineMs: is.number({ from: 0, finite: true, default: 0 }),
} satisfies OptionKinds<TopUp>);

/** A top-up in the units of the ledger, with the time that it adds to deadlines. */
export interface RaisedCaps extends Spend {
  readonly deadlineMs: number;
}

/**
 * Converts a top-up to the ledger's units. It throws for an invalid top-up, so that the caller gets the error
 * before anything is stored.
 */
export function readTopUp(add: Partial<TopUp>, owner = "topUp()"): RaisedCaps {
  const { maxTokens, maxCostUsd, maxTurns, deadlineMs } = dimensions.read(owner, add);
  return { tokens: maxTokens, nanoUsd: toNanoUsdLimit(maxCostUsd), turns: maxTurns, deadlineMs };
}

/** The amounts of one ended reservation, or the changes that a correction makes to them. */
export interface TalliedCall {
  readonly label: CostLabel;
  readonly day: string;
  readonly hour?: number | undefined;
  readonly spent: Spend;
  readonly lost: Spend;
  /** 1 if the call is charged zero dollars because its price is unknown, -1 if a correction ends this. */
  readonly unpriced: number;
  /** 1 if the call has no reported usage, -1 if a correction adds it. */
  readonly lostCalls: number;
  /** Absent if no usage was reported. */
  readonly reported?: ReportedSpend | undefined;
  /** Milliseconds until the end of the reply. Absent if there was no reply. */
  readonly durationMs?: number | undefined;
  /** Whether the model or the connection to it ended the attempt. */
  readonly failed?: boolean;
}

/** Adds an ended or corrected reservation to the tally of a ledger, in place. */
export function tallyCall(ledger: Ledger, call: TalliedCall): void {
  const { label, day, hour, spent, lost, unpriced, lostCalls, reported, durationMs, failed = false } = call;
  const { agentId, provider, modelId } = label;
  const outputTokens = reported?.outputTokens ?? 0;
  const tally = ledger.tally as Record<string, UsageDelta>;
  const key = `${day} ${hour ?? ""} ${agentId} ${provider.length} ${provider} ${modelId}`;
  const line = tally[key];
  const delta: UsageDelta = {
    agent: usageNameOf(agentId),
    model: `${provider}/${modelId}`,
    inputTokens: reported === undefined ? 0 : reported.tokens - outputTokens,
    outputTokens,
    cachedTokens: reported?.cachedTokens ?? 0,
    turns: spent.turns,
    nanoUsd: spent.nanoUsd,
    lostTokens: lost.tokens,
    lostNanoUsd: lost.nanoUsd,
    lostCalls,
    unpriced,
    runs: 0,
    failedRuns: 0,
    failedCalls: failed ? 1 : 0,
    latency: durationMs === undefined ? noLatency : countLatency(noLatency, durationMs),
    day,
    ...(hour !== undefined && { hour }),
  };
  tally[key] = line === undefined ? delta : addUsageDelta(line, delta);
}

/** Empties the tally, because a commit now contains its amounts. */
export function clearTally(ledger: Ledger): void {
  (ledger as { tally: Ledger["tally"] }).tally = {};
}
