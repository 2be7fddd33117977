import { onTestFinished } from "vitest";
import type { HostedAgent, Runtime, Store } from "../../../src/kernel/index.ts";
import { openRuntime } from "../../../src/open-runtime.ts";
import {
  createChannels,
  createServer,
  listen,
  storedPairings,
  type AllowedSender,
  type ChannelAdapter,
  type Channels,
  type Listening,
  type Pairings,
} from "../../../src/surfaces/server/index.ts";
import { channelAgent } from "../../../src/testing/index.ts";
import { newPath } from "../../runtime/stores/sqlite/store-files.ts";
import { sqliteStore } from "../../../src/runtime/stores/sqlite/store.ts";
import { sha256 } from "../../../src/runtime/index.ts";

const allow: readonly AllowedSender[] = [
  { sender: "1", user: "ann" },
  { sender: "2", user: "bob" },
];

/** A runtime with a channel and a server, as `reeve serve` has them. */
export interface TestHost {
  readonly url: string;
  readonly runtime: Runtime;
  readonly store: Store;
  readonly channels: Channels;
  readonly pairings: Pairings;
  readonly lines: string[];
  close(): Promise<void>;
}

export interface TestHostOptions {
  readonly agents?: readonly HostedAgent[];
  readonly allow?: readonly AllowedSender[];
  readonly pairing?: boolean;
  readonly runtimeOptions?: Parameters<typeof openRuntime>[0];
}

/** Starts a channel on the SQLite store at a path. */
export async function startHost(
  path: string,
  channel: ChannelAdapter,
  options: TestHostOptions = {},
): Promise<TestHost> {
  const { agents = [channelAgent()], pairing, runtimeOptions } = options;
  const store = await sqliteStore({ path, hash: sha256, watchEveryMs: 5 });
  const runtime = await openRuntime({ store, ...runtimeOptions });
  const lines: string[] = [];
  const channels = createChannels(runtime, {
    store,
    agents,
    channels: [{ channel, allow: options.allow ?? allow, ...(pairing !== undefined && { pairing }) }],
    log: (line) => void lines.push(line),
  });
  const server = createServer(runtime, {
    agents,
    tokens: null,
    routes: channels.routes,
    onError: (error) => void lines.push(error.message),
    limits: { requestsPerSecond: 100_000, requestBurst: 100_000 },
  });
  const listening: Listening = await listen(server, { port: 0 });
  channels.start();
  let isClosed = false;
  const close = async (): Promise<void> => {
    if (isClosed) return;
    isClosed = true;
    await channels.close();
    await listening.close();
    await runtime.close();
    await store.close();
  };
  onTestFinished(close);
  return {
    url: listening.url,
    runtime,
    store,
    channels,
    pairings: storedPairings(store.records),
    lines,
    close,
  };
}

export { newPath };
