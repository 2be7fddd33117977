import {
  Fault,
  type Clock,
  type HookRegistry,
  type PreToolVerdict,
  type RunFacts,
  type ToolCall,
  type ToolResult,
} from "../../kernel/index.ts";

export type PreToolHook = (call: ToolCall, facts: RunFacts) => PreToolVerdict | Promise<PreToolVerdict>;
export type PostToolHook = (call: ToolCall, result: ToolResult, facts: RunFacts) => void | Promise<void>;

export interface ToolHooksOptions {
  /** What the timeout goes by. */
  readonly clock: Clock;
  /** For each hook; 5 seconds unless told, `null` for none. */
  readonly timeoutMs?: number | null;
}

/**
 * The hooks of the tool gate. Those before a call are asked one after another, and the first deny wins; one that throws or takes too
 * long denies, because nobody knows what it would have said. Those after a call all run, and what goes wrong in them is told.
 */
export class ToolHooks implements HookRegistry {
  readonly #before = new Set<{ readonly hook: PreToolHook }>();
  readonly #after = new Set<{ readonly hook: PostToolHook }>();
  readonly #clock: Clock;
  readonly #timeoutMs: number | null;

  constructor({ clock, timeoutMs = 5_000 }: ToolHooksOptions) {
    if (timeoutMs !== null && !(Number.isFinite(timeoutMs) && timeoutMs > 0)) {
      throw new Fault(
        "invalid_argument",
        `timeoutMs of tool hooks is ${timeoutMs}: it must be above 0, or null for none`,
      );
    }
    this.#clock = clock;
    this.#timeoutMs = timeoutMs;
  }

  /** What it returns takes the hook out again. */
  onPreTool(hook: PreToolHook): () => void {
    return added(this.#before, { hook });
  }

  onPostTool(hook: PostToolHook): () => void {
    return added(this.#after, { hook });
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
