import { hostname } from "node:os";
import {
  capLimits,
  modelTimeouts,
  retrySettings,
  type Clock,
  type EventLoop,
  type Hash,
  type Store,
} from "../kernel/index.ts";
import { Attendance } from "./process/attendance.ts";
import { CapQueue } from "./process/cap-queue.ts";
import { CallTimeouts } from "./process/call-timeouts.ts";
import { ContentHashes } from "./process/content-hashes.ts";
import { IdleFlusher } from "./process/idle-flusher.ts";
import type { LiveContexts } from "./process/live-contexts.ts";
import { KeptHomes } from "./process/kept-homes.ts";
import { runRetry } from "./process/run-retry.ts";
import { SizeLimit } from "./process/size-limit.ts";
import { systemRandom, uuidSource } from "./process/system-sources.ts";
import { TaskSlots } from "./process/task-slots.ts";
import type { WorkerContext } from "./process/worker-context.ts";
import type { CheckedRuntimeOptions } from "./runtime-options.ts";

/** The options of a worker: the options of its runtime, with a clock, an event loop and a hash. */
export interface WorkerOptions extends CheckedRuntimeOptions {
  readonly clock: Clock;
  readonly eventLoop: EventLoop;
  readonly hash: Hash;
}

/** The parts of a worker's context that the worker itself provides. */
interface WorkerParts
  extends Required<Pick<WorkerContext, "agents" | "extensionPort">>, Pick<WorkerContext, "engine"> {
  readonly contexts: LiveContexts;
  /** Maximum number of tasks that execute at the same time. */
  readonly concurrency: number;
  readonly onError: (error: unknown) => void;
}

/** Creates the context that all runs of a worker share. Throws for invalid options. */
export function workerContext(store: Store, options: WorkerOptions, parts: WorkerParts): WorkerContext {
  const { clock, eventLoop, hash } = options;
  const { agents, contexts, concurrency, extensionPort } = parts;
  const host = options.host ?? hostname();
  return {
    store,
    clock,
    eventLoop,
    host,
    homes: new KeptHomes({ store, hash, host, remove: options.removeHome, onError: parts.onError }),
    ...(parts.engine !== undefined && { engine: parts.engine }),
    hash,
    ids: options.ids ?? uuidSource,
    random: options.random ?? systemRandom,
    prices: options.prices ?? { find: () => null },
    ...(options.resolveModel !== undefined && { resolveModel: options.resolveModel }),
    ...(options.checkSchema !== undefined && { checkSchema: options.checkSchema }),
    unknownPrice: options.unknownPrice,
    caps: capLimits(options.caps),
    capWaitMs: options.capWaitMs,
    capQueue: new CapQueue(clock),
    ...(options.warnAt === undefined ? {} : { warnAt: options.warnAt }),
    versionPolicy: options.versionPolicy,
    modelTimeouts: modelTimeouts("openRuntime()", options.modelTimeouts),
    retry: retrySettings(options.retry),
    runRetry: runRetry(options.runRetry),
    slots: new TaskSlots(concurrency),
    attendance: new Attendance(),
    callTimeouts: new CallTimeouts(clock, eventLoop),
    idleFlusher: new IdleFlusher(eventLoop),
    contentHashes: new ContentHashes(hash),
    sizes: new SizeLimit(options.maxValueBytes),
    stopGraceMs: options.stopGraceMs,
    suspendAfterMs: options.suspendAfterMs,
    crashLoopLimit: options.crashLoopLimit,
    onError: parts.onError,
    agents,
    contexts,
    extensionPort,
  };
}
