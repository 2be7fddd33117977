import type {
  AgentId,
  CancellationStatus,
  Decision,
  JsonValue,
  LedgerCommand,
  ReserveCommand,
  SeatStatus,
  SpawnOptions,
  SpawnOutcome,
  TaskId,
  TaskOutcome,
} from "../kernel/index.ts";

/** What a task sees of the tree it is in. The run's owner implements it. */
export interface TaskTree {
  readonly tenantId: string | null;
  seatOf(taskId: TaskId): SeatStatus;
  /** H2: if it is pausing, its calls have settled. */
  settle(taskId: TaskId): void;
  suspend(taskId: TaskId): void;
  wake(taskId: TaskId): void;
  /** Something came to rest; perhaps everything has. */
  noteIdle(): void;
  spawn(parentId: TaskId, agentId: AgentId, input: JsonValue, options: SpawnOptions): SpawnOutcome;
  whenEnded(taskId: TaskId): Promise<TaskOutcome>;
  cancel(taskId: TaskId, reason: string, status?: CancellationStatus): void;
  /** Resolves when someone resolves the name, or with `undefined` when `until` is there first. */
  resolved(taskId: TaskId, wait: string, until: number | null): Promise<JsonValue | undefined>;
  /** The decision, if there is one at once; else `decided` has it later. */
  reserve(taskId: TaskId, command: ReserveCommand): Decision | undefined;
  decided(reservationId: string): Promise<Decision>;
  /** Books on the ledger, tells of warnings, and wakes those whom it made room for. */
  book(taskId: TaskId, command: LedgerCommand): void;
}
