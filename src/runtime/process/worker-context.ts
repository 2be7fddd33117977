import {
  Fault,
  type HostedAgent,
  type AgentId,
  type CapLimits,
  type Clock,
  type EmittableEvent,
  type Engine,
  type EventLoop,
  type ExtensionPort,
  type Hash,
  type IdSource,
  type Model,
  type ModelTimeouts,
  type PriceTable,
  type Random,
  type RetrySettings,
  type RunFacts,
  type RunId,
  type Store,
  type UnknownPrice,
  type SchemaCheck,
} from "../../kernel/index.ts";
import type { CapQueue } from "./cap-queue.ts";
import type { Attendance } from "./attendance.ts";
import type { CallTimeouts } from "./call-timeouts.ts";
import type { IdleFlusher } from "./idle-flusher.ts";
import type { ContentHashes } from "./content-hashes.ts";
import type { KeptHomes } from "./kept-homes.ts";
import type { LiveContexts } from "./live-contexts.ts";
import type { RunRetry } from "./run-retry.ts";
import type { SizeLimit } from "./size-limit.ts";
import type { TaskSlots } from "./task-slots.ts";

/**
 * J9: what a worker does with a run that another version of its agent started. `resume`: it continues the run with
 * the version that it hosts. `pin`: it leaves the run to a worker that hosts the run's version. `refuse`: the run
 * fails.
 */
export type VersionPolicy = "resume" | "pin" | "refuse";

/** Finds agents by id. */
export type AgentLookup = Pick<ReadonlyMap<AgentId, HostedAgent>, "get">;

/** Whom an extension port is for. */
export interface PortOwner extends Pick<RunFacts, "tenantId" | "userId" | "sessionId"> {
  /** `null` outside a run. */
  readonly runId: RunId | null;
  /** The abort signal of the task. Absent if no task is running. */
  readonly signal?: AbortSignal;
  /** Whether the owner of the run has input that the task has not read. If absent, it has none. */
  readonly hasQueued?: () => boolean;
  /** Adds an event to the log of the run. Absent outside a run. */
  readonly emitEvent?: (event: EmittableEvent) => void;
}

/** What all runs of a worker share. */
export interface WorkerContext {
  readonly store: Store;
  readonly clock: Clock;
  readonly eventLoop: EventLoop;
  /** L21: name of the machine of this worker. */
  readonly host: string;
  /** The home folders that programs have left on this machine. */
  readonly homes: KeptHomes;
  /** Returns the engine that passes runs to this worker. Absent if there is no engine. */
  readonly engine?: () => Pick<Engine, "kind" | "hostsPrograms">;
  readonly ids: IdSource;
  readonly hash: Hash;
  readonly random: Random;
  readonly prices: PriceTable;
  /** Returns the model that a session names as `provider/id`. If absent, only the agent's own models are known. */
  readonly resolveModel?: (name: string) => Model | undefined;
  /** Checks edited arguments before an approval is stored. If absent, only the tool of the call checks them. */
  readonly checkSchema?: SchemaCheck;
  readonly unknownPrice: UnknownPrice;
  /** B7: caps per UTC day or month. Absent if there are no caps. */
  readonly caps?: CapLimits | undefined;
  /** B7: maximum time that a call waits until other runs return amounts of a cap, in milliseconds. */
  readonly capWaitMs: number;
  readonly capQueue: CapQueue;
  /** B5: share of a cap at which `budget_warning` is emitted. Default: 0.8. */
  readonly warnAt?: number;
  readonly modelTimeouts: ModelTimeouts;
  readonly retry: RetrySettings;
  readonly runRetry: RunRetry;
  readonly slots: TaskSlots;
  readonly callTimeouts: CallTimeouts;
  /** B5: who can answer a question at once. */
  readonly attendance: Attendance;
  readonly idleFlusher: IdleFlusher;
  readonly contentHashes: ContentHashes;
  readonly sizes: SizeLimit;
  /** Time after which a run that only waits is dropped from memory, in milliseconds. */
  readonly suspendAfterMs: number;
  /** L7: number of processes in a row that died while they executed a run, at which the run is paused. */
  readonly crashLoopLimit: number;
  /** Time that the calls of a cancelled task may still take, in milliseconds. */
  readonly stopGraceMs: number;
  /** Default: `resume`. */
  readonly versionPolicy?: VersionPolicy;
  /** Receives errors that no caller can receive. */
  onError(error: Fault): void;
  readonly agents: AgentLookup;
  /** If absent, no run has a context. */
  readonly contexts?: LiveContexts;
  /** Creates the functions of the runtime that extensions use. If absent, extensions throw `unsupported`. */
  readonly extensionPort?: (owner: PortOwner) => ExtensionPort;
}

/** Creates the functions of the runtime that the extensions of an agent use. */
export function portFor(
  { extensionPort }: Pick<WorkerContext, "extensionPort">,
  owner: PortOwner,
): ExtensionPort {
  if (extensionPort !== undefined) return extensionPort(owner);
  throw new Fault("unsupported", "extensions need the runtime of openRuntime()");
}

/** Returns the agent with this id. Throws `not_found` if it is not registered. */
export function hostedAgent({ agents }: WorkerContext, agentId: AgentId): HostedAgent {
  const agent = agents.get(agentId);
  if (agent === undefined)
    throw new Fault(
      "not_found",
      `agent ${agentId} is not registered with this runtime: call runtime.register(agent)`,
    );
  return agent;
}

/**
 * Returns the agent or workflow that a task calls. Throws `not_found` if it is not registered. `caller` is the
 * agent of the task, for the error.
 */
export function calledAgent({ agents }: WorkerContext, agentId: AgentId, caller: AgentId): HostedAgent {
  const agent = agents.get(agentId);
  if (agent !== undefined) return agent;
  const owner =
    agents.get(caller)?.runKind === "workflow"
      ? `agents of workflow ${caller}`
      : `subAgents of agent ${caller}`;
  throw new Fault(
    "not_found",
    `${caller} calls ${agentId}, which is not registered with this runtime: list it in the option ${owner}, or call runtime.register()`,
    { details: { agentId } },
  );
}

/** The actor that is recorded for a command without a user name. */
export const anonymousUser = "user";
