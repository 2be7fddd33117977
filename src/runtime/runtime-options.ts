import type { CronLoader } from "./process/schedule-record.ts";
import { constants } from "node:os";
import {
  capLimits,
  checkOptionalMethods,
  inboxSettings,
  modelTimeouts,
  retrySettings,
  type Fault,
  type Clock,
  type EngineFactory,
  type EventLoop,
  type ExtensionSurface,
  type Hash,
  type IdSource,
  type InboxSettings,
  type ModelTimeouts,
  type Model,
  type PriceTable,
  type Random,
  type RetryChanges,
  type SpendingCaps,
  type Store,
  type UnknownPrice,
  invalidOption,
  is,
  optionTable,
  type Filled,
  type OptionKinds,
  type SchemaCheck,
} from "../kernel/index.ts";
import type { StoreAddress } from "./open-store.ts";
import { runRetry, type RunRetry } from "./process/run-retry.ts";
import type { VersionPolicy } from "./process/worker-context.ts";

/** Options of `openRuntime`. Durations are milliseconds. */
export interface RuntimeOptions {
  /**
   * Where runs, events and sessions are stored: `"memory:"`, `"sqlite:PATH"`, `"postgres://HOST/DATABASE"`, or a
   * store that the caller has opened. Default: `"memory:"`. `close()` always closes the store.
   */
  readonly store?: StoreAddress | Store;
  /**
   * Creates the engine, which decides which worker executes a run and when. The store records the kind of its
   * engine; a runtime with another kind fails with `engine_mismatch`. Default: the local engine, which claims runs
   * in the store.
   */
  readonly engine?: EngineFactory;
  /**
   * E1: secret key of the event chain, which makes the chain an HMAC. Only for a store that is given by its
   * address, but not for a memory store. If absent, the chain uses plain SHA-256.
   */
  readonly auditKey?: string;
  /**
   * How often and when an inbox message is delivered again after a run failed to process it. Only for a store that
   * is given by its address. Default: `{ maxDeliveries: 5, baseDelayMs: 1_000, maxDelayMs: 300_000 }`; the delay
   * grows by a factor of 4 with each delivery.
   */
  readonly inbox?: Partial<InboxSettings>;
  /** Clock for deadlines, delays and timestamps. Default: the machine's clock. */
  readonly clock?: Clock;
  /** The turns of the JavaScript event loop, in which the runtime orders its work. Default: those of this process. */
  readonly eventLoop?: EventLoop;
  /** Source of the ids of runs, sessions and messages. Default: random UUIDs. */
  readonly ids?: IdSource;
  /** Hash function for digests and the event chain. Default: SHA-256. */
  readonly hash?: Hash;
  /** Source of the random part of retry delays. Default: `Math.random`. */
  readonly random?: Random;
  /** Price per token of each model. Default: `priceCatalog()`. */
  readonly prices?: PriceTable;
  /**
   * Returns the model that a session names as `provider/id` (`sessions.setModel`), or `undefined` if it is unknown. An
   * agent's own models are found by their names first. Default: the models that `namedModel()` finds.
   */
  readonly resolveModel?: (name: string) => Model | undefined;
  /**
   * The part of this process that shows sessions to a person. Extensions of agents use it for notices and errors
   * outside a run, navigation, `shutdown` and `reload`. A method that it lacks throws `unsupported` for extensions.
   * Default: no surface.
   */
  readonly surface?: ExtensionSurface;
  /**
   * What a call of a model without a known price does in a run with a budget in dollars. `"refuse"`: the call fails with
   * `unknown_price`. `"ignore"`: the call runs and counts as 0 USD. Default: `"refuse"`.
   */
  readonly unknownPrice?: UnknownPrice;
  /**
   * B7: caps on what the runs of the store may spend per UTC day or month, over all runs and processes:
   * `perDayUsd`, `perTenantPerDayUsd`, `perUserPerDayUsd`, `perAgentPerDayUsd`, and the same per month
   * (`perMonthUsd`). A run ends as `budget_exhausted` when a cap does not cover its next model call. Every process
   * that executes runs of the store must set the same caps. Default: no caps.
   */
  readonly caps?: SpendingCaps;
  /**
   * B7: maximum time that a model call waits if it does not fit into a cap because open calls of other runs have
   * reserved a part of it. During the wait the run has the status `waiting` and waits for `cap`. With 0, it does
   * not wait. Default: 60_000.
   */
  readonly capWaitMs?: number;
  /**
   * B5: share of a cap, above 0 and at most 1, at which the runtime emits `budget_warning`, once per task and
   * dimension. Default: 0.8.
   */
  readonly warnAt?: number;
  /**
   * J9: what the worker does with a run that another version of its agent started: `"resume"` it with this version,
   * `"pin"` it to a worker that hosts its version, or `"refuse"` it, so that it fails. Default: `"resume"`.
   */
  readonly versionPolicy?: VersionPolicy;
  /**
   * Time limits of one attempt of a model call: until the first chunk of a streamed answer, between two of its
   * chunks, and until any answer is complete. An attempt that exceeds a limit is retried according to `retry`.
   * `null` sets no limit. The option `modelTimeouts` of an agent takes precedence. Default: `{ firstChunkMs:
   * 300_000, chunkMs: 120_000, totalMs: 1_800_000 }`.
   */
  readonly modelTimeouts?: Partial<ModelTimeouts>;
  /**
   * How a failed model call is retried inside its step. Default: `{ enabled: true, maxRetries: 3, baseDelayMs:
   * 2_000, jitter: 0, maxDelayMs: 120_000 }`; the delay doubles with each retry. `false` means no retries. The
   * option `retry` of an agent takes precedence.
   */
  readonly retry?: RetryChanges;
  /**
   * How a task whose code threw an unexpected error is restarted. Default: `{ maxRetries: 3, baseDelayMs: 5_000,
   * maxDelayMs: 300_000 }`; the delay doubles with each restart.
   */
  readonly runRetry?: Partial<RunRetry>;
  /**
   * Maximum number of tasks of this worker whose code runs at the same time. A task that waits does not count. Default:
   * 64.
   */
  readonly concurrency?: number;
  /**
   * Maximum size of a single value that enters a run: an input, its metadata, a result of a tool or of `ctx.step`,
   * a model's reply, a message, a signal. The size is the number of bytes of its JSON text. A larger value throws
   * `too_large`; a tool's result that is too large becomes an error result. Default: 16_777_216 (16 MiB).
   */
  readonly maxValueBytes?: number;
  /**
   * Time after which a run that only waits is dropped from memory. It is loaded again when its wait ends. Default:
   * 5_000.
   */
  readonly suspendAfterMs?: number;
  /**
   * L7: number of processes in a row, known to have died while they executed a run, at which the run is paused. A
   * paused run waits for `crash_loop`, and only `resume()` continues it. Progress of the run sets the count back to
   * zero. Default: 5.
   */
  readonly crashLoopLimit?: number;
  /**
   * Interval at which the worker polls the store for due runs and for runs of workers that have died. Changes that the
   * store reports are picked up at once. Default: 500.
   */
  readonly pollMs?: number;
  /**
   * Whether the open runtime keeps the process alive until `close()`. While a run is in progress, it always does.
   * `true`: it keeps the process alive. `false`: the process may end. If absent, it keeps the process alive, and
   * emits a process warning when the process has nothing else to do and no caller waits for a run, because
   * `close()` was probably forgotten. A runtime that only hosts agents for other processes does not warn.
   */
  readonly keepAlive?: boolean;
  /**
   * What `register` and `submit` do with an agent whose name is taken by another agent. `"refuse"`: they throw
   * `already_exists`. `"replace"`: the new agent takes the name, and a run keeps the agents with which it was
   * submitted as long as this process executes it. Default: `"refuse"`.
   */
  readonly sameName?: "refuse" | "replace";
  /**
   * Time that the calls of a task may still take after the task was cancelled, missed its deadline or exceeded the
   * timeout of its hand-off. A call that has not settled by then is abandoned and charged in full as unreported.
   * Agent code that has not ended by then is abandoned too. Default: 5_000.
   */
  readonly stopGraceMs?: number;
  /**
   * Time for which `close()` waits for calls in flight. A call that has not settled by then is abandoned and charged in
   * full as unreported; the next owner of the run repeats it. Default: 10_000.
   */
  readonly closeGraceMs?: number;
  /** Signals of the process on which the runtime closes itself, for example `["SIGTERM"]`. Default: none. */
  readonly closeOn?: readonly NodeJS.Signals[];
  /**
   * Name of this worker in the store's leases; it must be unique among the workers of a store. Default: `worker-` and a
   * UUID.
   */
  readonly workerId?: string;
  /**
   * L21: name of this machine. If the program of a run, such as a hired agent, has left something on a machine,
   * only workers with the same name claim the run. Default: the host name of the machine.
   */
  readonly host?: string;
  /**
   * Time for which a run is kept after its end. After it, the run and its events are deleted; its session is kept.
   * With 0, only a caller that already waits for the result receives it. If absent, ended runs are kept until
   * `collect()` deletes them.
   */
  readonly keepEndedRunsMs?: number;
  /**
   * Time for which an unnamed session is kept after its last message. A session is unnamed if its run was submitted
   * without a `sessionId` and no other run has used the session. It is kept at least as long as its run. If absent,
   * sessions are kept until `sessions.delete()`.
   */
  readonly keepUnnamedSessionsMs?: number;
  /**
   * Maximum number of schedules of each tenant. A further one throws `permission_denied`. Schedules without a
   * tenant are not counted. `null` means no maximum. Default: 1_000.
   */
  readonly maxSchedulesPerTenant?: number | null;
  /**
   * Loads the reader of cron expressions and local times when it is first needed. Default of `openRuntime`: a
   * reader that uses croner.
   */
  readonly cron?: CronLoader;
  /**
   * Checks the arguments that a person edits against the schema of their tool, before the approval is stored.
   * Default of `openRuntime`: ajv, as for the arguments of a model. If absent, only the tool checks them, after the
   * approval.
   */
  readonly checkSchema?: SchemaCheck;
  /**
   * Deletes a home folder that a program, such as a hired agent, has left on this machine. Called when the
   * conversation for which the folder was kept is deleted. Default of `openRuntime`: deletes the folders of hired
   * agents. If absent, such folders are kept.
   */
  readonly removeHome?: (name: string) => Promise<void>;
  /**
   * Receives errors that no caller can receive, for example a run that cannot be loaded. Default: a process warning.
   */
  readonly onError?: (error: Fault) => void;
}

/** Signals that a process cannot handle. */
const unhandledSignals: readonly string[] = ["SIGKILL", "SIGSTOP"];

const surfaceMethods = [
  "notify",
  "reportError",
  "showSession",
  "shutdown",
  "reload",
] satisfies (keyof ExtensionSurface)[];

const runtimeKinds = {
  store: is.any,
  engine: is.callback({ hint: "the function creates the engine, as restate() does" }),
  auditKey: is.any,
  inbox: is.checkedBy(inboxSettings),
  clock: is.any,
  eventLoop: is.any,
  ids: is.any,
  hash: is.any,
  random: is.any,
  prices: is.any,
  resolveModel: is.callback(),
  surface: is.checkedBy((surface, option, owner) =>
    checkOptionalMethods(`${option} of ${owner}`, surface, surfaceMethods),
  ),
  unknownPrice: is.choice(["refuse", "ignore"], { default: "refuse" }),
  caps: is.checkedBy(capLimits),
  capWaitMs: is.number({ from: 0, finite: true, default: 60_000 }),
  warnAt: is.number({ above: 0, to: 1 }),
  versionPolicy: is.choice(["resume", "pin", "refuse"], { default: "resume" }),
  modelTimeouts: is.checkedBy((changes, _option, owner) => modelTimeouts(owner, changes)),
  retry: is.checkedBy((changes, _option, owner) => retrySettings(changes, owner)),
  runRetry: is.checkedBy(runRetry),
  concurrency: is.number({ from: 1, default: 64 }),
  maxValueBytes: is.integer({ from: 1 }),
  suspendAfterMs: is.number({ from: 0, default: 5_000 }),
  crashLoopLimit: is.integer({ from: 1, default: 5 }),
  pollMs: is.number({ from: 1, default: 500 }),
  keepAlive: is.boolean(),
  sameName: is.choice(["refuse", "replace"], { default: "refuse" }),
  stopGraceMs: is.number({ from: 0, default: 5_000 }),
  closeGraceMs: is.number({ from: 0, default: 10_000 }),
  closeOn: is.list({ of: is.checkedBy(checkSignal), hint: 'use signals, as in ["SIGTERM", "SIGINT"]' }),
  workerId: is.text(),
  host: is.text({ empty: false }),
  keepEndedRunsMs: is.number({ from: 0, finite: true }),
  keepUnnamedSessionsMs: is.number({ from: 0, finite: true }),
  maxSchedulesPerTenant: is.integer({ from: 1, or: [null, "no cap"] }),
  cron: is.callback(),
  checkSchema: is.callback(),
  removeHome: is.callback(),
  onError: is.callback(),
} satisfies OptionKinds<RuntimeOptions>;

/**
 * Names of options that belong to agents. A runtime has no such options, because it gets its agents after it is
 * opened.
 */
const ofAgents: ReadonlySet<string> = new Set(["agent", "agents", "subAgents", "workers"]);

export const runtimeTable = optionTable(runtimeKinds, (name) =>
  ofAgents.has(name)
    ? "open the runtime without it, then call runtime.register(agent), which also registers its sub-agents"
    : undefined,
);

/** Checked options with their defaults. */
export type CheckedRuntimeOptions = Filled<RuntimeOptions, typeof runtimeKinds>;

/** Throws for a signal on which the process could not close the runtime. */
function checkSignal(signal: unknown, option: string, owner: string): void {
  if (
    typeof signal === "string" &&
    Object.hasOwn(constants.signals, signal) &&
    !unhandledSignals.includes(signal)
  )
    return;
  throw invalidOption(
    owner,
    option,
    signal,
    'signals that a process can handle, as in ["SIGTERM", "SIGINT"]',
  );
}
