import {
  Fault,
  type Clock,
  type HookRegistry,
  type PreToolVerdict,
  type RunFacts,
  type ToolCall,
  type ToolResult,
  is,
  optionTable,
  type OptionKinds,
} from "../../../kernel/index.ts";

/** A function before each tool call. It returns `{ deny: reason }` to refuse the call. */
export type PreToolHook<Context = unknown> = (
  call: ToolCall,
  facts: RunFacts<Context>,
) => PreToolVerdict | Promise<PreToolVerdict>;
/** A function after each tool call. It changes nothing. */
export type PostToolHook<Context = unknown> = (
  call: ToolCall,
  result: ToolResult,
  facts: RunFacts<Context>,
) => void | Promise<void>;

export interface ToolHooksOptions {
  /** The clock for timeouts. */
  readonly clock: Clock;
  /** Maximum time of each hook, in milliseconds. `null` sets no limit. Default: 5_000. */
  readonly timeoutMs?: number | null;
}

const knownOptions = optionTable({
  clock: is.any,
  timeoutMs: is.number({ above: 0, finite: true, or: [null, "no limit"], default: 5_000 }),
} satisfies OptionKinds<ToolHooksOptions>);

/**
 * Hooks that run before and after tool calls. Hooks before a call run one after another, and the first denial
 * decides. A hook that throws or times out denies the call, because its decision is unknown. All hooks after a call
 * run, and their errors are emitted.
 */
export class ToolHooks implements HookRegistry {
  readonly #before = new Set<{ readonly hook: PreToolHook }>();
  readonly #after = new Set<{ readonly hook: PostToolHook }>();
  readonly #clock: Clock;
  readonly #timeoutMs: number | null;

  constructor(options: ToolHooksOptions) {
    const { clock, timeoutMs } = knownOptions.read("toolHooks()", options);
    this.#clock = clock;
    this.#timeoutMs = timeoutMs;
  }

  /** Adds a hook. The returned function removes it. */
  onPreTool<Context = unknown>(hook: PreToolHook<Context>): () => void {
    return added(this.#before, { hook: hook as PreToolHook });
  }

  onPostTool<Context = unknown>(hook: PostToolHook<Context>): () => void {
    return added(this.#after, { hook: hook as PostToolHook });
  }

  async preTool(call: ToolCall, facts: RunFacts): Promise<PreToolVerdict> {
    for (const { hook } of this.#before) {
      const verdict = await this.#inTime("a hook before", call, async () => hook(call, facts));
      if (verdict !== undefined) return verdict;
    }
    return undefined;
  }

  async postTool(call: ToolCall, result: ToolResult, facts: RunFacts): Promise<void> {
    const errors: unknown[] = [];
    for (const { hook } of this.#after) {
      try {
        await this.#inTime("a hook after", call, async () => hook(call, result, facts));
      } catch (error) {
        errors.push(error);
      }
    }
    if (errors.length > 0)
      throw new AggregateError(errors, `${errors.length} hooks after ${call.toolName} failed`);
  }

  #inTime<Value>(what: string, { toolName }: ToolCall, run: () => Promise<Value>): Promise<Value> {
    const timeoutMs = this.#timeoutMs;
    if (timeoutMs === null) return run();
    const clock = this.#clock;
    return new Promise((resolve, reject) => {
      const cancel = clock.schedule(clock.now() + timeoutMs, () => {
        reject(new Fault("tool_timeout", `${what} ${toolName} took longer than ${timeoutMs} ms`));
      });
      run().then(resolve, reject).finally(cancel);
    });
  }
}

function added<Entry>(entries: Set<Entry>, entry: Entry): () => void {
  entries.add(entry);
  return () => {
    entries.delete(entry);
  };
}
