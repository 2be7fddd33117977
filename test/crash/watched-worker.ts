// A server process for `watched-server.test.ts`: `node watched-worker.mjs STORE PORT`. Prints the port when it listens.
import { openRuntime } from "../../src/assembly/open-runtime.ts";
import { formatAgentId, type HostedAgent } from "../../src/kernel/index.ts";
import { createServer, listen } from "../../src/surfaces/server/index.ts";

const [store = "", port = "0"] = process.argv.slice(2);

/** Makes 40 steps, with a turn of the event loop in each, so that a kill finds many runs in progress. */
const walker: HostedAgent = {
  id: formatAgentId({ name: "walker" }),
  run: async (ctx) => {
    for (let at = 0; at < 40; at++)
      await ctx.step("walk", () => new Promise<number>((resolve) => void setTimeout(() => resolve(at), 1)));
  },
};

const runtime = await openRuntime({ store: `sqlite:${store}`, keepAlive: true });
const limits = { requestsPerSecond: 10_000, requestBurst: 10_000 };
const server = createServer(runtime, { agents: [walker], tokens: null, limits });
const listening = await listen(server, { port: Number(port) });
process.stdout.write(`${listening.port}\n`);
