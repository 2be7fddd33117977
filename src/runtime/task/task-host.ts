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

/** The functions of its run that a task uses. */
export interface TaskHost {
  readonly tenantId: string | null;
  /** What the run does. */
  readonly kind: RunKind;
  /** L17, L19: the limits of the run, and the object to which it belongs. `undefined` if it has neither. */
  readonly flow: RunFlow | undefined;
  /** L5: `turnKey` of the run. */
  readonly turn: string;
  /** The ledger of the run, in which every task reserves and settles costs. */
  readonly ledger: TaskLedger;
  /** B7: the part of the spending caps that the run holds. `undefined` if there are no caps. */
  readonly capShare: TaskCapShare | undefined;
  readonly waits: WaitRegistry;
  /** The live context of the run. `undefined` if the run has none. */
  readonly live: LiveContext | undefined;
  readonly seats: TaskSeats;
  /** Receives how often each message of the run was delivered. */
  readonly deliveries: { note(deliveries: readonly Delivery[]): void };
  readonly listener: IdleListener;
  /**
   * Creates a child task synchronously, so that one commit contains the child and everything that the caller adds
   * in the same turn.
   */
  spawn(parentId: TaskId, agentId: AgentId, input: JsonValue, options: NewTaskOptions): SpawnOutcome;
  whenEnded(taskId: TaskId): Promise<TaskOutcome>;
  /** C1: cancels the task and every task below it. */
  cancel(taskId: TaskId, reason: string, status?: CancellationStatus): void;
  /**
   * B5: asks a person to raise a budget. The task pauses when its calls have settled, and gets a seat again after
   * the answer.
   */
  askForTopUp(taskId: TaskId, exhaustion: Exhaustion): void;
  /** C2: called when a cancel reaches all code of the cancelled task again, so that its time for stopping starts. */
  unshield(taskId: TaskId): void;
  /**
   * C1: cancels the children that abandoned branches of the task have spawned, and all tasks below them. Call it
   * synchronously with the record of the abandonment, so that one commit contains both. Returns whether there are
   * such children.
   */
  cancelAbandoned(parentId: TaskId, abandoned: Abandonment): boolean;
}

/** The ledger of the run, with the methods that a task uses. */
export interface TaskLedger {
  /** B1: whether an exact count of the input tokens could not change the decision on the reservation. */
  fits(command: ReserveCommand): boolean;
  /**
   * B1: reserves the upper bound of a call's cost. Returns `undefined` if the reservation has to wait;
   * `whenDecided` then returns its decision.
   */
  reserve(command: ReserveCommand): Decision | undefined;
  /** Resolves with the decision on a reservation that `reserve` left waiting. */
  whenDecided(reservationId: string): Promise<Decision>;
  /** Resolves when an open reservation of the run may have ended. Returns `undefined` if no reservation is open. */
  whenFreed(): Promise<void> | undefined;
  /**
   * Applies a command, emits its warnings as events of `taskId`, and decides waiting reservations for which there
   * is room now.
   */
  apply(taskId: TaskId, command: LedgerCommand): void;
  /**
   * B3: charges an open reservation in full, because the call may have cost all of it. Does nothing if the
   * reservation is not open. `isFailed` says that the model or the connection to it ended the call.
   */
  lose(taskId: TaskId, reservationId: string, isFailed?: boolean): void;
}

/** B7: whether the cap share of the run covers a call. */
export type CoveredCall =
  | { readonly kind: "whole" }
  /** The cap share covers the call with this output limit. */
  | { readonly kind: "clamped"; readonly outputTokens: number }
  /** The cap share does not cover the call, so that the run must draw. */
  | { readonly kind: "short" }
  /** B4: the price of the call is unknown. */
  | { readonly kind: "unpriced" };

/** The outcome of a draw. */
export type DrawnCapShare =
  /** The run holds enough for the call. `tight` is the cap because of which it holds less than the call would like. */
  | { readonly kind: "held"; readonly tight: Exhaustion | null }
  /**
   * `waits`: other runs hold the amount that the call needs. `exhausted`: the caps have less left than the lowest
   * amount that the call needs.
   */
  | { readonly kind: "waits" | "exhausted"; readonly tight: Exhaustion & { readonly cap: ExhaustedCap } };

/** B7: the cap share of the run, with the methods that a task uses. */
export interface TaskCapShare {
  /**
   * Whether the cap share covers a call. Call it synchronously before `TaskLedger.reserve`. With `mayClamp`, a
   * lower output limit is accepted.
   */
  cover(command: ReserveCommand, mayClamp: boolean): CoveredCall;
  /**
   * Draws the amount that the call needs. With `mayWait`, if other runs hold a part of what the call would like,
   * the run draws nothing and waits, instead of accepting less. Rejects when the lease is lost or the store fails.
   */
  draw(command: ReserveCommand, mayWait: boolean): Promise<DrawnCapShare>;
  /** Makes the next commit return the amount of a call that drew and was abandoned before its reservation. */
  returnUnused(): void;
}

/** The seats of the run, with the methods that a task uses. */
export interface TaskSeats {
  /**
   * Returns the seat status of a task. It is `paused` for every task while the run is paused or about to be
   * released.
   */
  status(taskId: TaskId): SeatStatus;
  /** Whether the task has a seat, even while the run is about to be released. */
  hasSeat(taskId: TaskId): boolean;
  /** H2: whether the task waits for a larger budget, and keeps its seat until its calls have settled. */
  isHeldSeated(taskId: TaskId): boolean;
  priority(taskId: TaskId): Priority;
  /**
   * H2: gives up the seat of a pausing task, because its calls have settled. Does nothing for a task that is not
   * pausing.
   */
  settle(taskId: TaskId): void;
  /** All code of the task waits. */
  suspend(taskId: TaskId, waitsFor: readonly AwaitedName[]): void;
  /** Records that code of the task continues. `by` names what it waited for. */
  wake(taskId: TaskId, by: string): void;
}

/** Is notified when a run may have become idle and when it is no longer idle. */
export interface IdleListener {
  /** A task now only waits, so that the whole run may be idle. */
  noteIdle(): void;
  /** A task continues: the run is not idle. */
  stayAwake(): void;
  /** A call of a task has ended. */
  noteCallEnd(): void;
}
