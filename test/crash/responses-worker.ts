import { appendFileSync } from "node:fs";
import { Agent } from "../../src/assembly/agent.ts";
import { openRuntime } from "../../src/assembly/open-runtime.ts";
import { tool } from "../../src/capabilities/index.ts";
import type { Model } from "../../src/kernel/index.ts";
import { createServer, listen } from "../../src/surfaces/server/index.ts";
import { runWorkerDuty } from "../../src/testing/worker-duty.ts";
import { endlessModel } from "../surfaces/protocols/endless-model.ts";
import { openCrashStore } from "./crash-store.ts";

const dig = tool({
  name: "dig",
  description: "Digs.",
  inputSchema: { type: "object" },
  execute: () => "gold",
});

/** Digs, asks the client for the weather, and answers. */
const script = endlessModel(({ messages }) => {
  const results = messages.filter(({ role }) => role === "tool").length;
  const usage = { inputTokens: 5, outputTokens: 2 };
  if (results === 0)
    return { reasoning: "Dig first.", text: "I dig.", toolCalls: [{ name: "dig", input: {} }], usage };
  if (results === 1)
    return { text: "I ask.", toolCalls: [{ name: "weather", input: { city: "Blois" } }], usage };
  return { text: "Gold in the rain.", usage };
});

/** Serves the clerk until the process receives a signal to end. Appends a line to FILE.calls for each model call. */
await runWorkerDuty(async ({ file, data, mortal }) => {
  const model: Model = {
    provider: script.provider,
    modelId: script.modelId,
    generate: (request) => {
      appendFileSync(`${file}.calls`, `${process.pid}\n`);
      return script.generate(request);
    },
    stream: (request) => script.stream(request),
  };
  const runtime = await openRuntime({ store: mortal(await openCrashStore(file)) });
  const agents = [new Agent({ name: "clerk", model, tools: [dig] })];
  const server = createServer(runtime, { agents, tokens: null });
  const listening = await listen(server, { port: Number(data) });
  process.stderr.write("listening\n");
  const stayAlive = setInterval(() => undefined, 60_000);
  await new Promise((resolve) => process.once("SIGTERM", resolve));
  clearInterval(stayAlive);
  await listening.close();
  await runtime.close();
  return [];
});
