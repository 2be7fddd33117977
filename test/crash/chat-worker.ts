// A server process for `killed-chats.test.ts`: `node chat-worker.mjs STORE PORT hang|hold`. Prints the port when it listens.
// With `hang`, a model call stops after its first piece of text, and a tool never returns. With `hold`, both continue after
// the signal SIGUSR2.
import { Agent } from "../../src/assembly/agent.ts";
import { tool } from "../../src/capabilities/index.ts";
import { messageText, type Model } from "../../src/kernel/index.ts";
import { openRuntime } from "../../src/assembly/open-runtime.ts";
import { createServer, listen } from "../../src/surfaces/server/index.ts";
import { endlessModel } from "../surfaces/protocols/endless-model.ts";

const [store = "", port = "0", mode] = process.argv.slice(2);
const continued = new Promise<void>((resolve) => {
  if (mode === "hold") process.once("SIGUSR2", () => resolve());
});

const script = endlessModel(({ messages }) => {
  const last = messages.at(-1);
  if (last?.role === "tool") return { deltas: ["It is ", "done."] };
  const asked = last === undefined ? "" : messageText(last);
  if (asked === "talk") return { deltas: ["Half ", "of it."] };
  return { text: "I look.", toolCalls: [{ name: asked, input: {} }] };
});
const model: Model = {
  provider: script.provider,
  modelId: script.modelId,
  generate: (request) => script.generate(request),
  async *stream(request) {
    for await (const part of script.stream(request)) {
      yield part;
      if (part.type === "text_delta" && part.text === "Half ") await continued;
    }
  },
};
const send = tool({
  name: "send",
  description: "Sends a letter.",
  inputSchema: { type: "object" },
  needsApproval: true,
  execute: () => "sent",
});
const dig = tool({
  name: "dig",
  description: "Digs.",
  inputSchema: { type: "object" },
  execute: () => continued.then(() => "gold"),
});

const runtime = await openRuntime({ store: `sqlite:${store}`, keepAlive: true });
const agents = [new Agent({ name: "clerk", model, tools: [send, dig] })];
const server = createServer(runtime, { agents, tokens: null });
const listening = await listen(server, { port: Number(port) });
process.stdout.write(`${listening.port}\n`);
