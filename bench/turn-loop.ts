import { DatabaseSync } from "node:sqlite";
import { openRuntime, soloAgent, tool } from "reeve";
import type { Agent, Model, ModelRequest, ModelResponse, Runtime, Store } from "reeve/kernel";

/** About 200 bytes, as a tool would return. */
const toolJson = {
  rows: Array.from({ length: 6 }, (_, row) => ({ row, name: `item ${row}`, price: row * 3.5 })),
};
const usage = {
  inputTokens: 10,
  outputTokens: 5,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  reasoningTokens: 0,
};

/** Asks for one tool call a turn, for so many turns, then answers. No latency. */
export function countingModel(turns: number): Model {
  const answer = (request: ModelRequest): ModelResponse => {
    const asked = Math.floor((request.messages.length - 1) / 2);
    if (asked >= turns)
      return {
        message: { role: "assistant", content: [{ type: "text", text: "done" }] },
        stopReason: "stop",
        usage,
      };
    const call = { type: "tool_call", callId: `c${asked}`, toolName: "lookup", input: { i: asked } } as const;
    return { message: { role: "assistant", content: [call] }, stopReason: "tool_calls", usage };
  };
  return {
    provider: "bench",
    modelId: "bench",
    generate: async (request) => answer(request),
    stream: async function* stream(request) {
      yield { type: "finish", ...answer(request) };
    },
  };
}

/** The whole loop by hand, each message appended to SQLite before going on: the floor for a durable loop. */
export async function bareLoop(path: string, turns: number): Promise<number> {
  const db = new DatabaseSync(path);
  db.exec("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL");
  db.exec(
    "CREATE TABLE IF NOT EXISTS m(run INTEGER, seq INTEGER, body TEXT, PRIMARY KEY(run, seq)) WITHOUT ROWID",
  );
  const insert = db.prepare("INSERT OR REPLACE INTO m VALUES (1, ?, ?)");
  const model = countingModel(turns);
  const messages: ModelRequest["messages"][number][] = [];
  const push = (message: ModelRequest["messages"][number]): void => {
    messages.push(message);
    insert.run(messages.length, JSON.stringify(message));
  };
  const started = performance.now();
  push({ role: "user", content: [{ type: "text", text: "go" }] });
  for (;;) {
    const { message } = await model.generate({ messages });
    push(message);
    const call = message.content.find((part) => part.type === "tool_call");
    if (call === undefined) break;
    const output = { type: "json", value: await Promise.resolve(toolJson) } as const;
    push({
      role: "tool",
      content: [{ type: "tool_result", callId: call.callId, toolName: "lookup", output, isError: false }],
    });
  }
  const took = performance.now() - started;
  db.close();
  return took;
}

export async function loopRuntime(store: Store): Promise<Runtime> {
  return openRuntime({ store, unknownPrice: "ignore" });
}

/** The same loop as an agent. */
export function loopAgent(turns: number): Agent {
  const lookup = tool({
    name: "lookup",
    description: "Looks something up",
    input: { type: "object", properties: { i: { type: "integer" } }, required: ["i"] },
    execute: () => toolJson,
  });
  return soloAgent({
    name: `loop-${turns}`,
    model: countingModel(turns),
    tools: [lookup],
    maxTurns: turns + 1,
  });
}

/** Milliseconds from submission to result. */
export async function timeRun(runtime: Runtime, agent: Agent): Promise<number> {
  const started = performance.now();
  const run = await runtime.submit(agent, "go");
  const { output } = await run.result();
  const took = performance.now() - started;
  if (output !== "done") throw new Error(`the run ended with ${JSON.stringify(output)}`);
  return took;
}
