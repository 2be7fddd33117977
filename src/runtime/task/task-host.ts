import type {
  AgentId,
  CancellationStatus,
  Decision,
  Delivery,
  JsonValue,
  LedgerCommand,
  Priority,
  ReserveCommand,
  SeatStatus,
  SpawnOptions,
  SpawnOutcome,
  StepRecord,
  TaskId,
  TaskOutcome,
} from "../../kernel/index.ts";
import type { IdleListener } from "./idle-listener.ts";
import type { AwaitedName, Due, Wait } from "./wait-registry.ts";

/** What a task sees of the tree it is in. */
export interface TaskHost {
  readonly tenantId: string | null;
  seatOf(taskId: TaskId): SeatStatus;
  priorityOf(taskId: TaskId): Priority;
  /** H2: if it is pausing, its calls have settled. */
  settle(taskId: TaskId): void;
  /** All the task does is wait; perhaps everyone does. */
  suspend(taskId: TaskId, waitsFor: readonly AwaitedName[]): void;
  wake(taskId: TaskId, by: string): void;
  /** Told when something came to rest, since perhaps everything has, and when something goes on. */
  readonly rest: Pick<IdleListener, "noteIdle" | "stayAwake">;
  /** At once: what it does commits with what is added in the same breath. */
  spawn(parentId: TaskId, agentId: AgentId, input: JsonValue, options: SpawnOptions): SpawnOutcome;
  whenEnded(taskId: TaskId): Promise<TaskOutcome>;
  cancel(taskId: TaskId, reason: string, status?: CancellationStatus): void;
  /** Waits for someone to resolve the name, or for the time, by the clock of the task that waits unless told. */
  wait(taskId: TaskId, name: string, due?: Due, clock?: TaskId): Wait;
  /** Keeps how often each message of the run was delivered. */
  readonly deliveries: { note(deliveries: readonly Delivery[]): void };
  /** A step of the task is recorded; what it waited for is taken. */
  recorded(step: StepRecord): void;
  /** The decision, if there is one at once; else `decided` has it later. */
  reserve(taskId: TaskId, command: ReserveCommand): Decision | undefined;
  decided(reservationId: string): Promise<Decision>;
  /** Books on the ledger, tells of warnings, and wakes those whom it made room for. */
  book(taskId: TaskId, command: LedgerCommand): void;
  /** B3: it may have cost all that was held. */
  lose(taskId: TaskId, reservationId: string): void;
}
