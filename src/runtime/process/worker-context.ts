import {
  Fault,
  type HostedAgent,
  type AgentId,
  type ClaimOptions,
  type Clock,
  type Hash,
  type IdSource,
  type Lease,
  type PriceTable,
  type Random,
  type RetrySettings,
  type Store,
  type UnknownPrice,
} from "../../kernel/index.ts";
import type { CallTimeouts } from "./call-timeouts.ts";
import type { IdleFlusher } from "./idle-flusher.ts";
import type { ContentHashes } from "./content-hashes.ts";
import type { RunRetry } from "./run-retry.ts";
import type { TaskSlots } from "./task-slots.ts";

/**
 * J9: what becomes of a run that another version of its agent started. `resume`: it goes on with this one. `pin`: it is left for a worker
 * of its version. `refuse`: it fails.
 */
export type VersionPolicy = "resume" | "pin" | "refuse";

/** Who has places for runs that are created here. */
export interface RunTaker {
  /** A place that is kept until `take` says what came of it, if there is one. */
  offer(): ClaimOptions | undefined;
  take(lease: Lease | undefined): void;
}

/** What a worker hands to every run it owns. */
export interface WorkerContext {
  readonly store: Store;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly hash: Hash;
  readonly random: Random;
  readonly prices: PriceTable;
  readonly unknownPrice: UnknownPrice;
  /** B5: the share of a cap at which `budget_warning` is due; 0.8 unless told. */
  readonly warnAt?: number;
  readonly retry: RetrySettings;
  readonly runRetry: RunRetry;
  readonly slots: TaskSlots;
  readonly callTimers: CallTimeouts;
  readonly idleWrites: IdleFlusher;
  readonly contentNames: ContentHashes;
  /** How long a run that only waits is kept in memory. */
  readonly suspendAfterMs: number;
  /** How long what a task has open may take once it is told to stop. */
  readonly stopGraceMs: number;
  /** A run of this worker only waits from now on, or does so no longer. */
  noteIdle(by: 1 | -1): void;
  /** `resume` unless told. */
  readonly versionPolicy?: VersionPolicy;
  /** Errors that belong to no caller. */
  onError(error: Fault): void;
  readonly agents: Pick<ReadonlyMap<AgentId, HostedAgent>, "get">;
}

export function hostedAgent({ agents }: WorkerContext, agentId: AgentId): HostedAgent {
  const agent = agents.get(agentId);
  if (agent === undefined)
    throw new Fault("not_found", `there is no agent ${agentId} here: register it with the runtime`);
  return agent;
}
