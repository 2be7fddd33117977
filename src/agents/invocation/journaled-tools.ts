import type { Tool, ToolCall, ToolHost, ToolResult, ToolSpec, Transcript } from "../../kernel/index.ts";
import type { InvocationParts, InvocationScope, ResultWatcher } from "./invocation-scope.ts";
import { SearchedSpecs } from "./searched-specs.ts";
import { specOf } from "../base/tool-specs.ts";

type CallAllOptions = NonNullable<Parameters<ToolHost["callAll"]>[1]>;

/** The agent's tools with those of the scope. If two have the same name, the tool of the scope is used. */
export class JournaledTools implements ToolHost {
  readonly #parts: InvocationParts;
  readonly #scope: InvocationScope;
  #specs: SearchedSpecs | undefined;

  constructor(parts: InvocationParts, scope: InvocationScope) {
    this.#parts = parts;
    this.#scope = scope;
  }

  list(conversation?: Transcript): readonly ToolSpec[] {
    this.#specs ??= new SearchedSpecs(this.#allSpecs());
    if (conversation === undefined) return this.#specs.all;
    return this.#specs.sent(conversation, () => [
      ...this.#scope.extra,
      ...(this.#parts.plan.agent.tools ?? []),
    ]);
  }

  #allSpecs(): readonly ToolSpec[] {
    const { tools: specs } = this.#parts.turn;
    const { extra } = this.#scope;
    if (extra.length === 0) return specs;
    const names = new Set(extra.map(({ name }) => name));
    return [...specs.filter(({ name }) => !names.has(name)), ...extra.map(specOf)];
  }

  find(name: string): Tool | undefined {
    const named = (tool: Tool): boolean => tool.name === name;
    return this.#scope.extra.find(named) ?? this.#parts.plan.agent.tools?.find(named);
  }

  async call(call: ToolCall): Promise<ToolResult> {
    const [result] = await this.callAll([call]);
    return result as ToolResult;
  }

  callAll(calls: readonly ToolCall[], options: CallAllOptions = {}): Promise<readonly ToolResult[]> {
    const { ctx, extra, watchers } = this.#scope;
    const { maxParallelToolCalls: maxParallel } = this.#parts.plan;
    const limited = maxParallel === undefined ? options : { ...options, maxParallel };
    if (extra.length === 0) return ctx.tools(calls, limited);
    const onResult = inOrder(calls, watchers, options.onResult);
    return ctx.tools(calls, { ...limited, extra, ...(onResult && { onResult }) });
  }
}

/** Reports results to the watchers in the order of the calls, so that every replay reports them in the same order. */
function inOrder(
  calls: readonly ToolCall[],
  watchers: readonly ResultWatcher[],
  onResult: CallAllOptions["onResult"],
): CallAllOptions["onResult"] {
  if (watchers.length === 0) return onResult;
  const results: (ToolResult | undefined)[] = calls.map(() => undefined);
  let reported = 0;
  return (result, index) => {
    onResult?.(result, index);
    results[index] = result;
    for (; reported < calls.length; reported++) {
      const [next, call] = [results[reported], calls[reported]];
      if (next === undefined || call === undefined) return;
      for (const { tools, onResult: report } of watchers)
        if (tools.some(({ name }) => name === call.toolName)) report(next, call);
    }
  };
}
