import { DatabaseSync, type StatementSync } from "node:sqlite";
import { Agent, HookEvent, HookManager, tool } from "reeve";
import type {
  HostedAgent,
  JsonValue,
  Model,
  ModelRequest,
  ModelResponse,
  Runtime,
  SubmitOptions,
} from "reeve/kernel";
import type { LoopScript } from "./loop-script.ts";

const instructions = "You are a test agent.";
const usage = {
  inputTokens: 10,
  outputTokens: 5,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  reasoningTokens: 0,
};

export function scriptedLoopModel(script: LoopScript): Model {
  const answer = (request: ModelRequest): ModelResponse => {
    const { messages } = request;
    const last = messages.at(-1);
    const result = last?.role === "tool" ? last.content[0] : undefined;
    const step = script.next(result?.callId ?? null, messages.length);
    if (!step.callsTool)
      return {
        message: { role: "assistant", content: [{ type: "text", text: step.text }] },
        stopReason: "stop",
        usage,
      };
    const { callId, toolName } = step;
    const input = JSON.parse(step.json) as JsonValue;
    const call = { type: "tool_call", callId, toolName, input } as const;
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

type Message = ModelRequest["messages"][number];

/** The whole loop by hand, in memory: the floor. */
export async function bareLoop(
  script: LoopScript,
  keep: (message: Message, count: number) => void = noKeep,
): Promise<void> {
  const model = scriptedLoopModel(script);
  const messages: Message[] = [];
  const push = (message: Message): void => {
    messages.push(message);
    keep(message, messages.length);
  };
  push({ role: "system", content: instructions });
  push({ role: "user", content: [{ type: "text", text: "go" }] });
  for (;;) {
    const { message } = await model.generate({ messages });
    push(message);
    const call = message.content.find((part) => part.type === "tool_call");
    if (call === undefined) return;
    const output = { type: "text", text: await Promise.resolve(script.tool(call.input)) } as const;
    push({
      role: "tool",
      content: [{ type: "tool_result", callId: call.callId, toolName: "lookup", output, isError: false }],
    });
  }
}

function noKeep(): void {}

/** The same, each message appended to SQLite before going on: the floor for a durable loop. */
export class BareSqliteLoop {
  readonly #db: DatabaseSync;
  readonly #insert: StatementSync;
  #runs = 0;

  constructor(path: string) {
    this.#db = new DatabaseSync(path);
    this.#db.exec("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL");
    this.#db.exec("CREATE TABLE m(run INTEGER, seq INTEGER, body TEXT, PRIMARY KEY(run, seq)) WITHOUT ROWID");
    this.#insert = this.#db.prepare("INSERT INTO m VALUES (?, ?, ?)");
  }

  async run(script: LoopScript): Promise<void> {
    const run = ++this.#runs;
    await bareLoop(script, (message, count) => {
      this.#insert.run(run, count, JSON.stringify(message));
    });
  }

  close(): void {
    this.#db.close();
  }
}

/** The same loop as an agent: with a cap to hold, and somebody who watches each answer. */
export function loopAgent(script: LoopScript): Agent {
  const hooks = new HookManager();
  hooks.on(HookEvent.LLM_END, () => undefined);
  const lookup = tool({
    name: "lookup",
    description: "Looks something up",
    inputSchema: { type: "object", properties: { i: { type: "integer" } }, required: ["i"] },
    execute: async (input) => script.tool(input),
  });
  return new Agent({
    name: `loop-${script.turns}`,
    model: scriptedLoopModel(script),
    instructions,
    tools: [lookup],
    maxTurns: script.turns + 1,
    budget: { maxTokens: 1_000_000_000 },
    hooks,
  });
}

/** Time from submission to result. */
export async function finishRun(
  runtime: Runtime,
  agent: HostedAgent,
  options: SubmitOptions = {},
): Promise<void> {
  const run = await runtime.submit(agent, "go", options);
  const { output } = await run.result();
  if (output !== "done") throw new Error(`the run ended with ${JSON.stringify(output)}`);
}
