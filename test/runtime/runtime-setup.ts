import {
  formatAgentId,
  type HostedAgent,
  type AgentId,
  type Event,
  type JsonValue,
  type RunContext,
  type RunId,
  type Runtime,
  type SpawnOptions,
  type Store,
  type TaskHandle,
  type TaskInbox,
  type Tool,
  type ToolResult,
} from "../../src/kernel/index.ts";
import { createRuntime } from "../../src/runtime/local-runtime.ts";
import { memoryStore, sha256, type RuntimeOptions } from "../../src/runtime/index.ts";
import { FakeClock, sequentialIds } from "../../src/testing/index.ts";

export interface Bench {
  readonly clock: FakeClock;
  readonly store: Store;
  readonly runtime: Runtime;
  /** Errors that any of the workers reported. */
  readonly errors: unknown[];
  /** Opens another worker on the same store and clock. */
  readonly open: (options?: RuntimeOptions) => Promise<Runtime>;
  readonly events: (runId: RunId) => Promise<Event[]>;
}

/** Opens a runtime on a memory store and a clock that only `clock.advance` moves. */
export async function setUp(options: RuntimeOptions = {}): Promise<Bench> {
  const clock = new FakeClock();
  const store = memoryStore({ hash: sha256, inbox: { maxDeliveries: 3 } });
  const errors: unknown[] = [];
  let workers = 0;
  const open = (more: RuntimeOptions = {}): Promise<Runtime> =>
    createRuntime({
      store,
      clock,
      ids: sequentialIds(`id${++workers}`),
      workerId: `worker-${workers}`,
      onError: (error) => errors.push(error),
      ...options,
      ...more,
    });
  const runtime = await open();
  return { clock, store, runtime, errors, open, events: (runId) => readAll(store, runId) };
}

export async function readAll(store: Store, runId: RunId): Promise<Event[]> {
  const events: Event[] = [];
  for await (const event of store.events.read(runId)) events.push(event);
  return events;
}

export type Code = (ctx: RunContext, inbox: TaskInbox) => Promise<JsonValue | void>;

export function agentId(name: string): AgentId {
  return formatAgentId({ name });
}

export function agent(name: string, run: Code, more: Partial<HostedAgent> = {}): HostedAgent {
  return { id: agentId(name), run, ...more };
}

export interface SimpleTool {
  readonly name: string;
  readonly execute: Tool["execute"];
  readonly sequential?: boolean;
  readonly timeoutMs?: number;
  readonly suspends?: boolean;
  readonly needsApproval?: boolean;
}

export function simpleTool(options: SimpleTool): Tool {
  const {
    name,
    execute,
    sequential = false,
    timeoutMs = null,
    suspends = false,
    needsApproval = false,
  } = options;
  return {
    name,
    description: name,
    inputSchema: { type: "object" },
    risk: "safe",
    destructive: false,
    edits: false,
    concurrency: sequential ? "sequential" : "parallel",
    timeoutMs,
    suspends,
    needsApproval: () => needsApproval,
    parse: (input) => input,
    execute,
  };
}

export function text(value: string): ToolResult {
  return { output: { type: "text", text: value }, isError: false };
}

/** Yields to the event loop until the runtime has done everything that needs neither time nor outside input. */
export async function settle(): Promise<void> {
  for (let round = 0; round < 20; round++) {
    await new Promise<void>((resolve) => {
      setImmediate(resolve);
    });
  }
}

/** Polls the condition without letting time pass. Throws if the condition does not hold after 100,000 turns of the event loop. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  for (let round = 0; round < 100_000; round++) {
    if (await condition()) return;
    await new Promise<void>((resolve) => {
      setImmediate(resolve);
    });
  }
  throw new Error("the condition did not become true within 100,000 turns of the event loop");
}

/** A promise that the test resolves, for example an effect that the agent's code waits for. */
export function gate<Value = void>(): PromiseWithResolvers<Value> {
  return Promise.withResolvers<Value>();
}

/** Spawns a child task. Throws if the seat is refused. */
export async function spawnTask(
  ctx: RunContext,
  { id }: HostedAgent,
  options: SpawnOptions = {},
): Promise<TaskHandle> {
  const spawned = await ctx.spawn(id, null, options);
  if (spawned.kind === "refused") throw new Error(`the seat was refused: ${spawned.reason}`);
  return spawned.handle;
}

export function typesOf(events: readonly Event[]): string[] {
  return events.map(({ type }) => type);
}
