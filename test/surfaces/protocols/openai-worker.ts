// A server process for `openai-restart.test.ts`: `node openai-worker.ts STORE PORT`. Prints the port when it listens.
import { Agent } from "../../../src/assembly/agent.ts";
import { formatAgentId, messageText, type HostedAgent } from "../../../src/kernel/index.ts";
import { openRuntime } from "../../../src/assembly/open-runtime.ts";
import { createServer, listen } from "../../../src/surfaces/server/index.ts";
import { endlessModel } from "./endless-model.ts";

const [store = "", port = "0"] = process.argv.slice(2);

/** An agent that answers with the texts of the user that it sees. */
const echo = new Agent({
  name: "echo",
  model: endlessModel(({ messages }) =>
    messages
      .filter(({ role }) => role === "user")
      .map(messageText)
      .join(", "),
  ),
});

/** An agent that works until a signal arrives. */
const slow: HostedAgent = {
  id: formatAgentId({ name: "slow" }),
  run: async (ctx) => `Finished with ${JSON.stringify(await ctx.waitForSignal("go"))}.`,
};

const runtime = await openRuntime({ store: `sqlite:${store}`, keepAlive: true });
const server = createServer(runtime, { agents: [echo, slow], tokens: null });
const listening = await listen(server, { port: Number(port) });
process.stdout.write(`${listening.port}\n`);
