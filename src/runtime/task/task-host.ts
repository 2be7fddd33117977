import type {
  AgentId,
  CancellationStatus,
  Decision,
  Delivery,
  ExhaustedCap,
  Exhaustion,
  JsonValue,
  LedgerCommand,
  Priority,
  ReserveCommand,
  RunFlow,
  RunKind,
  SeatStatus,
  SpawnOutcome,
  TaskId,
  TaskOutcome,
} from "../../kernel/index.ts";
import type { Abandonment } from "../journal/branch-values.ts";
import type { NewTaskOptions } from "../journal/task-record.ts";
import type { LiveContext } from "../process/live-contexts.ts";
import type { AwaitedName, WaitRegistry } from "./wait-registry.ts";

/** What a task uses of the run it belongs to. */
export interface TaskHost {
  readonly tenantId: string | null;
  /** What the run does. */
  readonly kind: RunKind;
  /** L17, L19: the limits of the run, and the object to which it belongs. `undefined` if it has none. */
  readonly flow: RunFlow | undefined;
  /** L5: `turnKey` of the run. */
  readonly turn: string;
  /** Money of the run: every task reserves from and settles on this ledger. */
  readonly ledger: TaskLedger;
  /** B7: the part of the spending caps that the run holds. `undefined` if there are no caps. */
  readonly capShare: TaskCapShare | undefined;
  readonly waits: WaitRegistry;
  /** The live context of the run. `undefined` if the run has none. */
  readonly live: LiveContext | undefined;
  readonly seats: TaskSeats;
  /** Counts how often each message of the run was delivered. */
  readonly deliveries: { note(deliveries: readonly Delivery[]): void };
  readonly listener: IdleListener;
  /** Creates a child task synchronously, so that the child commits together with whatever the caller adds in the same tick. */
  spawn(parentId: TaskId, agentId: AgentId, input: JsonValue, options: NewTaskOptions): SpawnOutcome;
  whenEnded(taskId: TaskId): Promise<TaskOutcome>;
  /** C1: cancels the task and every task below it. */
  cancel(taskId: TaskId, reason: string, status?: CancellationStatus): void;
  /** B5: asks a person to raise a budget. The task pauses once its calls have settled, and is recalled after the answer. */
  askForTopUp(taskId: TaskId, exhaustion: Exhaustion): void;
  /** C2: a cancel reaches all code of the cancelled task again: its stop grace starts. */
  unshield(taskId: TaskId): void;
  /**
   * C1: cancels the children that abandoned branches of the task have spawned, and all tasks below them. Call it
   * synchronously with the record of the abandonment, so that one commit holds both. Returns whether there are such children.
   */
  cancelAbandoned(parentId: TaskId, abandoned: Abandonment): boolean;
}

/** The ledger of the run, as a task uses it. */
export interface TaskLedger {
  /** B1: whether a lower bound of the input could not improve the decision on the reservation. */
  fits(command: ReserveCommand): boolean;
  /** B1: reserves the upper bound of a call. Returns `undefined` if the reservation has to wait; `whenDecided` then has its decision. */
  reserve(command: ReserveCommand): Decision | undefined;
  /** Resolves with the decision on a reservation that `reserve` left waiting. */
  whenDecided(reservationId: string): Promise<Decision>;
  /** Resolves when an open reservation of the run may have ended. Returns `undefined` if none is open. */
  whenFreed(): Promise<void> | undefined;
  /** Applies a command, emits its warnings as events of `taskId`, and resolves the waiting reservations that the command made room for. */
  apply(taskId: TaskId, command: LedgerCommand): void;
  /** B3: charges an open reservation in full, because the call may have cost all of it. Does nothing if the reservation is not open. `isFailed`: the model or the connection to it ended the call. */
  lose(taskId: TaskId, reservationId: string, isFailed?: boolean): void;
}

/** B7: whether the cap share of the run covers a call. */
export type CoveredCall =
  | { readonly kind: "whole" }
  /** It covers the call with this output limit. */
  | { readonly kind: "clamped"; readonly outputTokens: number }
  /** It does not cover the call. The run must draw. */
  | { readonly kind: "short" }
  /** B4: the price of the call is unknown. */
  | { readonly kind: "unpriced" };

/** The outcome of a draw. */
export type DrawnCapShare =
  /** `tight` is the cap because of which the run holds less than the call would like. */
  | { readonly kind: "held"; readonly tight: Exhaustion | null }
  /** `waits`: other runs hold what the call needs. `exhausted`: the caps leave less than the least that the call needs. */
  | { readonly kind: "waits" | "exhausted"; readonly tight: Exhaustion & { readonly cap: ExhaustedCap } };

/** B7: the cap share of the run, as a task uses it. */
export interface TaskCapShare {
  /** Call it synchronously before `TaskLedger.reserve`. With `mayClamp`, a lower output limit is accepted. */
  cover(command: ReserveCommand, mayClamp: boolean): CoveredCall;
  /**
   * Draws what the call needs. With `mayWait`, the run holds nothing rather than less than the call would like, if other
   * runs hold the difference. Rejects when the lease is lost or the store fails.
   */
  draw(command: ReserveCommand, mayWait: boolean): Promise<DrawnCapShare>;
  /** A call that drew was abandoned before its reservation: the next commit returns what it would have used. */
  returnUnused(): void;
}

/** The seats of the run, as a task uses them. */
export interface TaskSeats {
  /** `paused` for every task while the run is paused or about to be released. */
  status(taskId: TaskId): SeatStatus;
  /** Whether the task has a seat, also while the run is about to be released. */
  hasSeat(taskId: TaskId): boolean;
  /** H2: whether the task waits for money, and keeps its seat until its calls have settled. */
  isHeldSeated(taskId: TaskId): boolean;
  priority(taskId: TaskId): Priority;
  /** H2: a pausing task gives up its seat, because its calls have settled. Does nothing for a task that is not pausing. */
  settle(taskId: TaskId): void;
  /** All code of the task waits. */
  suspend(taskId: TaskId, waitsFor: readonly AwaitedName[]): void;
  /** Code of the task continues. `by` names what it waited for. */
  wake(taskId: TaskId, by: string): void;
}

/** Learns when a run may have become idle and when it is not idle any more. */
export interface IdleListener {
  /** A task came to rest: perhaps the whole run is idle. */
  noteIdle(): void;
  /** A task continues: the run is not idle. */
  stayAwake(): void;
  /** A call of a task has ended. */
  noteCallEnd(): void;
}
