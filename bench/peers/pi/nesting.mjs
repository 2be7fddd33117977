// Measures runs of pi with three levels of agents as tools, as bench/scripts.ts does it with Reeve: node nesting.mjs REQUEST. Prints the
// microseconds of processor time of one run.
import { Agent } from "@mariozechner/pi-agent-core";
import { createAssistantMessageEventStream, Type } from "@mariozechner/pi-ai";

const usage = {
  input: 10,
  output: 5,
  cacheRead: 0,
  cacheWrite: 0,
  totalTokens: 15,
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
};
const model = {
  id: "bench",
  name: "bench",
  api: "bench",
  provider: "bench",
  baseUrl: "",
  reasoning: false,
  input: ["text"],
  cost: usage.cost,
  contextWindow: 1_000_000,
  maxTokens: 100_000,
};
const units = 10;
let reached = 0;

/** A model that calls the tool once, if there is one, and then answers. */
function streamOf(callsTool) {
  return (_model, { messages }) => {
    const stream = createAssistantMessageEventStream();
    const message = {
      role: "assistant",
      content: [],
      api: "bench",
      provider: "bench",
      model: "bench",
      usage,
      stopReason: "stop",
      timestamp: 0,
    };
    queueMicrotask(() => {
      stream.push({ type: "start", partial: message });
      if (callsTool && messages.at(-1).role !== "toolResult") {
        const toolCall = { type: "toolCall", id: "call_0", name: "delegate", arguments: { task: "go" } };
        message.content.push(toolCall);
        message.stopReason = "toolUse";
        stream.push({ type: "toolcall_start", contentIndex: 0, partial: message });
        stream.push({ type: "toolcall_delta", contentIndex: 0, delta: '{"task":"go"}', partial: message });
        stream.push({ type: "toolcall_end", contentIndex: 0, toolCall, partial: message });
      } else {
        if (!callsTool) reached++;
        message.content.push({ type: "text", text: "done" });
        stream.push({ type: "text_start", contentIndex: 0, partial: message });
        stream.push({ type: "text_delta", contentIndex: 0, delta: "done", partial: message });
        stream.push({ type: "text_end", contentIndex: 0, content: "done", partial: message });
      }
      stream.push({ type: "done", reason: message.stopReason, message });
      stream.end(message);
    });
    return stream;
  };
}

const parameters = Type.Object({ task: Type.String() });

/** Runs the agent of a level and returns its answer. Below it are so many levels. */
async function ask(prompt, below) {
  const delegate = {
    name: "delegate",
    label: "delegate",
    description: "Gives the task to an agent",
    parameters,
    execute: async (_id, { task }) => ({
      content: [{ type: "text", text: await ask(task, below - 1) }],
      details: {},
    }),
  };
  const agent = new Agent({
    initialState: { systemPrompt: "", model, tools: below > 0 ? [delegate] : [] },
    streamFn: streamOf(below > 0),
    getApiKey: () => "key",
  });
  await agent.prompt(prompt);
  if (agent.state.errorMessage) throw new Error(agent.state.errorMessage);
  return agent.state.messages.at(-1).content[0].text;
}

async function work() {
  reached = 0;
  for (let run = 0; run < units; run++)
    if ((await ask("go", 3)) !== "done") throw new Error("the run has no answer");
  if (reached !== units) throw new Error(`${reached} of ${units} runs reached the last level`);
}

async function cpuMs() {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

const { warmUpMs, measuredMs } = JSON.parse(process.argv[2]);
for (let spent = 0; spent < warmUpMs;) spent += await cpuMs();
let [spent, executions] = [0, 0];
for (; spent < measuredMs; executions++) spent += await cpuMs();
console.log((spent * 1_000) / executions / units);
