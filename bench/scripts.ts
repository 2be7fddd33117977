// Work of a fixed size that the benches `counts` and `pairs` measure.
import { Agent, tool } from "reeve";
import {
  formatAgentId,
  type HostedAgent,
  type Model,
  type ModelResponse,
  type Runtime,
  type SubmitOptions,
} from "reeve/kernel";
import { LoopScript } from "./loop-script.ts";
import { finishRun, loopAgent } from "./turn-loop.ts";

/** A turn: one model call and its tool call. */
export function turns(runtime: Runtime, units: number, options: SubmitOptions = {}): () => Promise<void> {
  const script = new LoopScript(units);
  const agent = loopAgent(script);
  return async () => {
    script.reset();
    await finishRun(runtime, agent, options);
  };
}

/** Runs with one model call, one after another: what the start and the end of a run cost. */
export function runs(runtime: Runtime, units: number): () => Promise<void> {
  const agent = new Agent({ name: `runs-${units}`, model: modelOf(() => saying("done")) });
  return async () => {
    for (let index = 0; index < units; index++) await finishRun(runtime, agent);
  };
}

/** Tool calls of one turn. */
export function toolCalls(runtime: Runtime, units: number): () => Promise<void> {
  const calls = Array.from({ length: units }, (_, index) => ({
    type: "tool_call" as const,
    callId: `call_${index}`,
    toolName: "lookup",
    input: { i: index },
  }));
  const model = modelOf(({ messages }) =>
    messages.at(-1)?.role === "tool"
      ? saying("done")
      : {
          ...saying(""),
          message: { role: "assistant", content: calls },
          stopReason: "tool_calls",
        },
  );
  const lookup = tool({
    name: "lookup",
    description: "Looks something up",
    inputSchema: { type: "object", properties: { i: { type: "integer" } }, required: ["i"] },
    execute: async () => "found",
  });
  const agent = new Agent({ name: `calls-${units}`, model, tools: [lookup] });
  return () => finishRun(runtime, agent);
}

/** Pieces of a streamed text, each of which the caller reads. */
export function deltas(runtime: Runtime, units: number): () => Promise<void> {
  const model: Model = {
    ...modelOf(() => saying("")),
    async *stream() {
      for (let piece = 0; piece < units; piece++) yield { type: "text_delta", text: "piece " };
      yield { type: "finish", ...saying("piece ".repeat(units)) };
    },
  };
  const agent = new Agent({ name: `deltas-${units}`, model });
  return async () => {
    let read = 0;
    for await (const event of agent.stream("go", { runtime })) if (event.type === "message_update") read++;
    if (read !== units) throw new Error(`the caller read ${read} of ${units} pieces`);
  };
}

/** Children that a hosted agent spawns and joins, one after another. */
export function children(runtime: Runtime, units: number): () => Promise<void> {
  const child: HostedAgent = { id: formatAgentId({ name: `child-${units}` }), run: async () => "done" };
  const parent: HostedAgent = {
    id: formatAgentId({ name: `parent-${units}` }),
    run: async (ctx) => {
      for (let index = 0; index < units; index++) {
        const spawned = await ctx.spawn(child.id, index);
        if (spawned.kind !== "spawned") throw new Error("the child got no seat");
        await ctx.join(spawned.handle);
      }
      return "done";
    },
  };
  runtime.register(child);
  return () => finishRun(runtime, parent);
}

/**
 * Runs of an agent whose tool is an agent, on three levels below the first: each calls the next one once and answers with its
 * answer. `peers/pi/nesting.mjs` does the same.
 */
export function nested(runtime: Runtime, units: number, options: SubmitOptions = {}): () => Promise<void> {
  let reached = 0;
  const answer = (): ModelResponse => {
    reached++;
    return saying("done");
  };
  let agent = new Agent({ name: `level-3-${units}`, model: modelOf(answer) });
  for (let level = 2; level >= 0; level--) {
    const model = modelOf(({ messages }) =>
      messages.at(-1)?.role === "tool"
        ? saying("done")
        : {
            ...saying(""),
            message: {
              role: "assistant",
              content: [{ type: "tool_call", callId: "call_0", toolName: "delegate", input: { task: "go" } }],
            },
            stopReason: "tool_calls",
          },
    );
    agent = new Agent({
      name: `level-${level}-${units}`,
      model,
      tools: [agent.asTool({ name: "delegate" })],
    });
  }
  return async () => {
    reached = 0;
    for (let index = 0; index < units; index++) await finishRun(runtime, agent, options);
    if (reached !== units) throw new Error(`${reached} of ${units} runs reached the last level`);
  };
}

function modelOf(generate: (request: Parameters<Model["generate"]>[0]) => ModelResponse): Model {
  return {
    provider: "bench",
    modelId: "bench",
    generate: async (request) => generate(request),
    async *stream(request) {
      yield { type: "finish", ...generate(request) };
    },
  };
}

function saying(text: string): ModelResponse {
  return {
    message: { role: "assistant", content: [{ type: "text", text }] },
    stopReason: "stop",
    usage: { inputTokens: 10, outputTokens: 5, cacheReadTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 },
  };
}
