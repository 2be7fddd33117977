import {
  Fault,
  formatAgentId,
  type EngineFactory,
  type Event,
  type EventType,
  type HostedAgent,
  type HostedWorkflow,
  type JsonValue,
  type PriceTable,
  type RunContext,
  type RunHandle,
  type Runtime,
  type SpawnOptions,
  type SpendingCaps,
  type Store,
  type TaskHandle,
  type TaskInbox,
} from "../../../kernel/index.ts";
import type { ContractHarness } from "../contract-harness.ts";

/** Options of a runtime that a case of the engine contract sets. */
export interface EngineRuntimeOptions {
  /** Same as the option of `openRuntime` (J9). Default: `"resume"`. */
  readonly versionPolicy?: "resume" | "pin" | "refuse";
  /** Same as the option of `openRuntime` (B7). Default: no caps. */
  readonly caps?: SpendingCaps;
  readonly capWaitMs?: number;
  /** Same as the option of `openRuntime`. Default: 0. */
  readonly suspendAfterMs?: number;
  /** Same as the option of `openRuntime`. Default: failed code is restarted for the first time after 5 seconds. */
  readonly runRetry?: { readonly baseDelayMs: number };
  readonly prices?: PriceTable;
  /** L21: as the option of `openRuntime`. */
  readonly host?: string;
  /**
   * Name of the group of workers in the case that host the same agents, for an engine that needs this information.
   * Default: all workers of the case host the same agents.
   */
  readonly group?: string;
}

/**
 * The parameters of `engineContract`: the functions of a test runner, the engine, and functions that create stores
 * and runtimes.
 */
export interface EngineHarness extends Pick<ContractHarness, "test" | "expect"> {
  /** Creates the engine under test. */
  readonly engine: EngineFactory;
  /** Whether `Engine.hostsPrograms` is `true`. Default: `false`. */
  readonly hostsPrograms?: boolean;
  /** Creates a new, empty store. Each call of the returned function opens this store, as another process would do. */
  readonly prepare: () => Promise<() => Promise<Store>>;
  /** Opens a runtime with a short `pollMs` and `suspendAfterMs: 0`. A model without a known price costs nothing. */
  readonly open: (
    store: Store,
    engine: EngineFactory,
    workerId: string,
    options?: EngineRuntimeOptions,
  ) => Promise<Runtime>;
}

/** One store and the runtimes that a case opens on it. */
export class EngineWorld {
  readonly #harness: EngineHarness;
  readonly #openStore: () => Promise<Store>;
  readonly #runtimes = new Set<Runtime>();

  constructor(harness: EngineHarness, openStore: () => Promise<Store>) {
    this.#harness = harness;
    this.#openStore = openStore;
  }

  /** Opens a runtime with the tested engine, as another process would do. */
  async open(workerId = "one", options?: EngineRuntimeOptions): Promise<Runtime> {
    const { engine, open } = this.#harness;
    const runtime = await open(await this.#openStore(), engine, workerId, options);
    this.#runtimes.add(runtime);
    return runtime;
  }

  /**
   * Closes the runtime of a run, opens another runtime that hosts `agent`, and returns the run from the new
   * runtime.
   */
  async takeOver(
    former: Runtime,
    run: RunHandle<unknown>,
    agent: HostedAgent,
    options?: EngineRuntimeOptions,
  ): Promise<RunHandle> {
    await former.close();
    const next = await this.open("two", options);
    next.register(agent);
    return runIn(next, run);
  }

  async close(): Promise<void> {
    for (const runtime of this.#runtimes) await runtime.close();
  }
}

/** Declares a case of the engine contract. The runtimes that the case opens are closed at its end. */
export type DeclareCase = (title: string, body: (world: EngineWorld) => Promise<void>) => void;

export function casesOf(harness: EngineHarness): DeclareCase {
  return (title, body) =>
    harness.test(title, async () => {
      const world = new EngineWorld(harness, await harness.prepare());
      try {
        await body(world);
      } finally {
        await world.close();
      }
    });
}

type Code = (ctx: RunContext, inbox: TaskInbox) => Promise<JsonValue | void>;

export function agentOf(name: string, run: Code, more: Partial<HostedAgent> = {}): HostedAgent {
  return { id: formatAgentId({ name }), run, ...more };
}

export function workflowOf(
  name: string,
  run: Code,
  more: Partial<HostedWorkflow> = {},
): HostedWorkflow<JsonValue> {
  return { ...agentOf(name, run), name, runKind: "workflow", ...more };
}

/** Starts a child task. Throws if the seat is refused. */
export async function spawnChild(
  ctx: RunContext,
  { id }: HostedAgent,
  options: SpawnOptions & { readonly input?: JsonValue } = {},
): Promise<TaskHandle> {
  const { input = null, ...spawning } = options;
  const spawned = await ctx.spawn(id, input, spawning);
  if (spawned.kind === "refused") throw new Fault("internal", `the seat was refused: ${spawned.reason}`);
  return spawned.handle;
}

/** Returns the run in another runtime. */
export async function runIn(runtime: Runtime, { runId }: Pick<RunHandle, "runId">): Promise<RunHandle> {
  const run = await runtime.find(runId);
  if (run === undefined) throw new Fault("not_found", `there is no run ${runId} in this store`);
  return run;
}

/** Reads the stored events of a run. */
export async function eventsOf(run: RunHandle<unknown>): Promise<Event[]> {
  const events: Event[] = [];
  for await (const event of run.events({ follow: false })) if ("seq" in event) events.push(event);
  return events;
}

/** Waits until the run has stored `count` events of this type, and returns the last of them. */
export async function eventOf<Type extends EventType>(
  run: RunHandle<unknown>,
  type: Type,
  count = 1,
): Promise<Event<Type>> {
  let seen = 0;
  for await (const event of run.events())
    if ("seq" in event && event.type === type && ++seen === count) return event as Event<Type>;
  throw new Fault("internal", `run ${run.runId} ended with ${seen} of ${count} events ${type}`);
}

/**
 * Calls a function with increasing times until it returns `true`. It must return `false` if the time was too short,
 * as on a busy machine.
 */
export async function untilLongEnough(
  fromMs: number,
  work: (timeMs: number) => Promise<boolean>,
): Promise<void> {
  for (let timeMs = fromMs; !(await work(timeMs)); timeMs *= 4);
}

/** Waits until a task of the run suspends itself, or until the run ends. Returns whether a task suspended itself. */
export async function suspendsItself(run: RunHandle<unknown>): Promise<boolean> {
  for await (const { type } of run.events()) if (type === "task_suspend") return true;
  return false;
}

/** Waits until each of these tasks has suspended itself. */
export async function suspended(run: RunHandle<unknown>, ...taskIds: readonly string[]): Promise<void> {
  const missing = new Set(taskIds);
  for await (const event of run.events()) {
    if ("seq" in event && event.type === "task_suspend") missing.delete(event.taskId);
    if (missing.size === 0) return;
  }
  throw new Fault("internal", `run ${run.runId} ended before ${[...missing].join(", ")} waited`);
}
