import type { CancelSignal } from "../base/cancel-signal.ts";
import type { Clock, EventLoop } from "../base/sources.ts";
import type { AgentsOfName, AgentVersion, ClaimOptions, Lease, Leases, Rest } from "../stores/lease.ts";
import type { StoreChange } from "../stores/store.ts";

/** How a host left a run that it executed. @advanced */
export interface DriveResult {
  /**
   * State in which the execution leaves the run: ended, ready for the next owner, or suspended until mail arrives
   * or a time is reached.
   */
  readonly rest: Rest;
  /** Whether the host released the lease together with the last commit (`Journal.appendAndRelease`). */
  readonly isReleased: boolean;
}

export interface DriveOptions {
  /**
   * G4: ends the execution when it aborts. The host then starts no call, waits until the open calls have settled,
   * records their results and returns. The returned rest is `suspended` if the run only waits, and `ready` if it
   * has more to do.
   */
  readonly signal?: CancelSignal;
  /** Called with `true` when all tasks of the run wait, and with `false` when one of them continues. */
  readonly onIdle?: (isIdle: boolean) => void;
  /** Called when the run has recorded a step. The step is durable at the latest when the run is released. */
  readonly onStep?: () => void;
}

/** Executes runs on behalf of an engine. @advanced */
export interface RunHost {
  /** Executes the run of this lease until the run waits or has ended, or until the lease is lost (`lease_lost`). */
  drive(lease: Lease, options?: DriveOptions): Promise<DriveResult>;
}

/** The parts of its process that an engine may use. @advanced */
export interface EnginePort {
  readonly leases: Leases;
  readonly clock: Clock;
  readonly eventLoop: EventLoop;
  /** Name of this worker in the leases. */
  readonly workerId: string;
  /** L21: name of the machine of this worker. */
  readonly host: string;
  /** Maximum number of runs that are executed at the same time. Runs that only wait do not count. */
  readonly concurrency: number;
  /** Interval at which the engine looks for ready runs, in case no call of `wake` reported them. Milliseconds. */
  readonly pollMs: number;
  /** The agents whose runs this worker may claim. */
  readonly agents: () => readonly (AgentVersion | AgentsOfName)[];
  /** Receives errors that no caller can receive. */
  readonly onError: (error: unknown) => void;
}

/** Lets the submission of a new run claim the run for this worker in the transaction that creates it. */
export interface RunClaimer {
  /**
   * Reserves capacity for one run until `completeClaim`. `undefined` if the worker has no capacity, or if other runs
   * are due first.
   */
  reserveClaim(): ClaimOptions | undefined;
  /** Ends a reservation: executes the run if it was claimed, otherwise frees the capacity. */
  completeClaim(lease: Lease | undefined): void;
}

/**
 * Decides which worker owns a run and when the run wakes up. The store, and not the engine, keeps the journal, the
 * ledger and the events. Every engine passes `engineContract` of `reeve/testing/contracts`, which checks:
 *
 * - G1 At most one host executes a run at a time. The store refuses writes with the epoch of an earlier lease.
 * - G2 A run that is new, has mail or has reached its wake-up time is executed, also if processes die or a call of
 *   `wake` is lost.
 * - G3 `stop` waits until the runs in execution wait or have ended, and starts to execute no other run.
 * - G4 A call that is open when an execution ends is not made twice: see `DriveOptions.signal`.
 * - G5 The store records the kind of its engine and refuses another kind with `engine_mismatch`.
 */
export interface Engine {
  /**
   * Kind of the engine, such as `local`: 1 to 64 lower-case letters, digits and `-`, starting with a letter. `null`
   * for an engine that executes no runs: the store then records no kind and accepts an engine of any kind.
   */
  readonly kind: string | null;
  /**
   * Whether a worker may keep a run while a program of the run lives (`ctx.attempt` with a `program`). If `false`,
   * such an attempt fails with `unsupported`. Default: `false`.
   */
  readonly hostsPrograms?: boolean;
  /**
   * Claims the runs of new submissions at once. If absent, the engine finds submitted runs like all other ready
   * runs.
   */
  readonly claimer?: RunClaimer;
  /** Starts to claim runs and passes each of them to the host. */
  start(host: RunHost): Promise<void>;
  /** Tells the engine that the store has changed. */
  wake(change: StoreChange): void;
  /** Tells the engine that `EnginePort.agents` returns other agents than before. */
  agentsChanged(): void;
  /** Stops claiming runs and waits for the runs in execution (G3). */
  stop(): Promise<void>;
}

/** Creates the engine of a runtime. @advanced */
export type EngineFactory = (port: EnginePort) => Engine;
