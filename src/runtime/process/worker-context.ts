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

/** Lets a submission claim the run that it creates in the same transaction. Implemented by the engine. */
export interface RunClaimer {
  /** Reserves capacity for one run until `completeClaim`. `undefined` if the worker has no capacity, or if other runs are due first. */
  reserveClaim(): ClaimOptions | undefined;
  /** Ends a reservation: drives the run if it was claimed, otherwise frees the capacity. */
  completeClaim(lease: Lease | undefined): void;
}

/** Finds agents by id. */
export type AgentLookup = Pick<ReadonlyMap<AgentId, HostedAgent>, "get">;

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
  readonly callTimeouts: CallTimeouts;
  readonly idleFlusher: IdleFlusher;
  readonly contentHashes: ContentHashes;
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
  readonly agents: AgentLookup;
}

export function hostedAgent({ agents }: WorkerContext, agentId: AgentId): HostedAgent {
  const agent = agents.get(agentId);
  if (agent === undefined)
    throw new Fault("not_found", `there is no agent ${agentId} here: register it with the runtime`);
  return agent;
}

/** Actor recorded for a command that names no user. */
export const anonymousUser = "user";
