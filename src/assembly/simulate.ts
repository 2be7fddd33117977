import {
  is,
  optionTable,
  type AgentResolver,
  type Clock,
  type Commit,
  type Event,
  type HostedAgent,
  type JsonValue,
  type Model,
  type ModelRequest,
  type OptionKinds,
  type Random,
  type RunId,
  type RunHandle,
  type RunSummary,
  type Store,
  type Runtime,
  type SubmitOptions,
} from "../kernel/index.ts";
import type { RuntimeOptions } from "../runtime/index.ts";
import type {
  FaultKind,
  FaultRates,
  InjectedFault,
  OutsideCall,
  OutsideCallOptions,
  ScriptedReply,
} from "../testing/index.ts";

/** The functions with which the code of a simulated process accesses its environment. */
export interface SimulationSite<World> {
  /** Name of the process, made from the name of the worker and the number of its life, such as `w1-3`. */
  readonly name: string;
  /** The state of the external services. It survives the end of every process. */
  readonly world: World;
  readonly clock: Clock;
  readonly random: Random;
  /** The version of the code: 1, or 2 after a worker was replaced by a worker with another version. */
  readonly version: number;
  /**
   * Calls an external service. `effect` is the action of the service, which happens in one step, and its return
   * value is the answer. The call takes virtual time. A fault may lose the call before its effect, or the answer
   * after its effect.
   */
  readonly call: <Answer>(
    name: string,
    effect: () => Answer,
    options?: OutsideCallOptions,
  ) => Promise<Answer>;
  /** Creates a model whose answers the simulation provides. Each model call is an external call. */
  readonly model: (reply: (request: ModelRequest) => string | ScriptedReply, name?: string) => Model;
  /** Resolves after this virtual time. */
  readonly sleep: (ms: number) => Promise<void>;
}

/** The functions that `load` receives: a client of the fleet, in a process that never crashes. */
export interface SimulationClient<World> extends SimulationSite<World> {
  /** A runtime that starts, signals and reads runs, but executes none. */
  readonly runtime: Runtime;
  /** The store of the fleet, as this client reaches it. */
  readonly store: Store;
  /** Submits work to an agent of the fleet, by its name. */
  readonly submit: (agent: string, input: JsonValue, options?: SubmitOptions) => Promise<RunHandle>;
}

/** A run at the end of a simulation, with its events. */
export interface SimulatedRun {
  readonly run: RunSummary;
  readonly events: readonly Event[];
}

/** What a simulation has left. */
export interface SimulationEnd<World> {
  readonly world: World;
  /** Every external call that took effect, in order. */
  readonly calls: readonly OutsideCall[];
  readonly runs: readonly SimulatedRun[];
  /** Number of deaths of workers. */
  readonly deaths: number;
}

/** A commit at the moment when the store has accepted it. */
export interface SeenCommit {
  readonly runId: RunId;
  readonly commit: Commit;
  /** Name of the process that wrote it. */
  readonly process: string;
  /** The epoch of the lease of its writer. `null` for the first commit of a run. */
  readonly epoch: number | null;
  /** Milliseconds since the start. */
  readonly atMs: number;
}

type Violations = string | readonly string[] | undefined | void;

/** Options of `simulate`. Durations are in milliseconds of virtual time. */
export interface SimulateOptions<World = undefined> {
  /** Seed of the random numbers. The same seed produces exactly the same simulation, byte for byte. */
  readonly seed: number;
  /** Number of workers. Default: 2. */
  readonly workers?: number;
  /** Creates the state of the external services. Default: `undefined`. */
  readonly world?: () => World;
  /**
   * The kinds of faults and their frequency. `"swarm"`: the seed activates a random subset of all faults, each with
   * a random rate. `"none"`: no faults. Default: `"swarm"`.
   */
  readonly faults?: "swarm" | "none" | FaultRates;
  /**
   * Creates the agents and resolvers that a worker hosts. It is called for each life of a worker, as a real process
   * would do.
   */
  readonly agents: (site: SimulationSite<World>) => readonly (HostedAgent | AgentResolver)[];
  /**
   * Starts the work, and sends signals or other requests to it as a client. The simulation ends when the returned
   * promise has resolved and every run has ended.
   */
  readonly load: (client: SimulationClient<World>) => Promise<void>;
  /**
   * Checks the end state and returns descriptions of all problems. `undefined` or an empty list means that there
   * are none.
   */
  readonly check?: (end: SimulationEnd<World>) => Violations | Promise<Violations>;
  /** Checks a commit at the moment when the store accepts it, and returns descriptions of all problems. */
  readonly watch?: (seen: SeenCommit) => Violations;
  /** Options of the workers' runtimes. */
  readonly runtime?: Omit<
    RuntimeOptions,
    | "store"
    | "engine"
    | "clock"
    | "eventLoop"
    | "ids"
    | "random"
    | "workerId"
    | "keepAlive"
    | "closeOn"
    | "host"
  >;
  /** Time after its last heartbeat at which a worker is considered dead. Default: 3_000. */
  readonly leaseMs?: number;
  /** Maximum time in which faults happen. Default: 60_000. */
  readonly faultsForMs?: number;
  /** Time without faults after which all runs that can end must have ended. Default: 15 minutes. */
  readonly settleMs?: number;
  /** Only these faults of the seed happen, such as `["kill#0"]`. Default: all faults of the seed. */
  readonly only?: readonly string[];
}

/** What a simulation has found. */
export interface SimulationReport {
  readonly seed: number;
  /** Descriptions of all problems. Empty if there are none. */
  readonly violations: readonly string[];
  /** The faults that happened, in order. */
  readonly faults: readonly InjectedFault[];
  /** Number of faults by their kind. */
  readonly faultCounts: Readonly<Partial<Record<FaultKind, number>>>;
  /** All runs with their events, and all external calls, as text. The same seed always produces the same text. */
  readonly log: string;
  /** The incidents in their order, one per line: faults, crashes, calls and commits. */
  readonly timeline: readonly string[];
  /** Virtual time that has passed. */
  readonly simulatedMs: number;
  readonly happenings: number;
  readonly deaths: number;
}

const knownOptions = optionTable({
  seed: is.integer({ required: true }),
  workers: is.integer({ from: 1, default: 2 }),
  world: is.callback(),
  faults: is.any,
  agents: is.callback({ required: true }),
  load: is.callback({ required: true }),
  check: is.callback(),
  watch: is.callback(),
  runtime: is.any,
  leaseMs: is.integer({ from: 100, default: 3_000 }),
  faultsForMs: is.integer({ from: 0, default: 60_000 }),
  settleMs: is.integer({ from: 1, default: 900_000 }),
  only: is.any,
} satisfies OptionKinds<SimulateOptions>);

/**
 * Simulates a fleet of workers with its store, its clients and the external services in this process, in virtual
 * time. A seed decides about the faults. The runtime, the agents and the tools are real.
 *
 * The report contains the problems that were found. `simulate` rejects only if an option is invalid.
 */
export async function simulate<World = undefined>(
  options: SimulateOptions<World>,
): Promise<SimulationReport> {
  knownOptions.read("simulate()", options as unknown as SimulateOptions);
  const { simulateFleet } = await import("./simulated-fleet.ts");
  return simulateFleet(options);
}
