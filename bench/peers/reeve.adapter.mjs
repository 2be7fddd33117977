// Adapter for an agent-runtime overhead bench that drives every framework with the same scripted model: see README.md beside this file.
import { INSTRUCTIONS, PROMPT } from "../../lib/script.mjs";

export const meta = { label: "reeve (memory)", pkgs: ["reeve"] };

export async function load() {
  return import("reeve");
}

export async function create(lib, script, store = "memory:") {
  const { openRuntime, Agent, HistoryRetention, HookEvent, HookManager, tool } = lib;
  const usage = {
    inputTokens: 10,
    outputTokens: 5,
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
    reasoningTokens: 0,
  };
  const answer = (request) => {
    const last = request.messages.at(-1);
    const step = script.next(last.role === "tool" ? last.content[0].callId : null, request.messages.length);
    const content = step.tool
      ? [{ type: "tool_call", callId: step.id, toolName: step.name, input: JSON.parse(step.json) }]
      : [{ type: "text", text: step.text }];
    return { message: { role: "assistant", content }, stopReason: step.tool ? "tool_calls" : "stop", usage };
  };
  const model = {
    provider: "bench",
    modelId: "bench",
    generate: async (request) => answer(request),
    async *stream() {
      let text = "";
      for (let index = 0; index < script.deltas; index++) {
        const piece = script.delta(index);
        text += piece;
        yield { type: "text_delta", text: piece };
      }
      yield {
        type: "finish",
        message: { role: "assistant", content: [{ type: "text", text }] },
        stopReason: "stop",
        usage,
      };
    },
  };
  const lookup = tool({
    name: "lookup",
    description: "Looks something up",
    inputSchema: { type: "object", properties: { i: { type: "number" } } },
    execute: async (input) => script.tool(input),
  });
  // A cap and a hook are on, as in a real agent.
  const hooks = new HookManager();
  hooks.on(HookEvent.LLM_END, () => undefined);
  const agent = new Agent({
    name: "bench",
    model,
    tools: [lookup],
    instructions: INSTRUCTIONS,
    maxTurns: 1_000_000,
    budget: { maxTokens: 1_000_000_000_000 },
    hooks,
  });
  // In memory, as with the peers, nothing is kept of a run that has ended, and no session can be continued.
  const isKept = store !== "memory:";
  const runtime = await openRuntime({ store, ...(isKept ? {} : { keepEndedRunsMs: 0 }) });
  const once = isKept ? {} : { retention: HistoryRetention.RUN };
  runtime.register(agent);
  return {
    async run(onFirst) {
      const run = await runtime.submit(agent, PROMPT, once);
      if (onFirst === undefined) return (await run.result()).output;
      for await (const event of run.events()) {
        onFirst?.();
        onFirst = undefined;
        if (event.type === "task_end") return event.data.output;
      }
      return undefined;
    },
    async stream(onEvent) {
      const run = await runtime.submit(agent, PROMPT, { ...once, streaming: true });
      let text = "";
      for await (const event of run.events()) {
        onEvent(event.type === "message_update" ? "delta" : "event");
        if (event.type === "message_update") text += event.text;
      }
      return text;
    },
    close: () => runtime.close(),
  };
}
