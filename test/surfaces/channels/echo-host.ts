/**
 * A process with a Telegram and a webhook channel, for tests that kill it. Its argument is `EchoHostOptions` as JSON; it
 * prints the address of its server.
 */
import { sha256 } from "../../../src/runtime/index.ts";
import { sqliteStore } from "../../../src/runtime/stores/sqlite/store.ts";
import { openRuntime } from "../../../src/assembly/open-runtime.ts";
import {
  createChannels,
  createServer,
  listen,
  telegramChannel,
  webhookChannel,
} from "../../../src/surfaces/server/index.ts";
import { channelAgent } from "../../../src/testing/contracts/index.ts";

export interface EchoHostOptions {
  readonly path: string;
  readonly token: string;
  readonly apiUrl: string;
  readonly secret: string;
  readonly callbackUrl: string;
}

const { path, token, apiUrl, secret, callbackUrl } = JSON.parse(process.argv[2] ?? "{}") as EchoHostOptions;
const store = await sqliteStore({ path, hash: sha256 });
const runtime = await openRuntime({ store, keepAlive: true });
const agents = [channelAgent()];
const allow = Array.from({ length: 20 }, (_, index) => ({
  sender: String(index + 1),
  user: `u${index + 1}`,
}));
const channels = createChannels(runtime, {
  store,
  agents,
  channels: [
    { channel: telegramChannel({ token, apiUrl }), allow },
    { channel: webhookChannel({ name: "shop", secret, callbackUrl, allowPrivate: true }), allow },
  ],
  log: (line) => void process.stderr.write(`${line}\n`),
});
const limits = { requestsPerSecond: 100_000, requestBurst: 100_000 };
const server = createServer(runtime, { agents, tokens: null, routes: channels.routes, limits });
const { url } = await listen(server, { port: 0 });
channels.start();
process.stdout.write(`${url}\n`);
