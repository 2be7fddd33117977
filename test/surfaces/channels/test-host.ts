import { onTestFinished } from "vitest";
import type { HostedAgent, Runtime, Store } from "../../../src/kernel/index.ts";
import { openRuntime } from "../../../src/assembly/open-runtime.ts";
import {
  createChannels,
  createServer,
  listen,
  storedPairings,
  type AllowedSender,
  type ChannelAdapter,
  type Channels,
  type ChannelsOptions,
  type Listening,
  type Pairings,
  type ServerOptions,
} from "../../../src/surfaces/server/index.ts";
import { channelAgent } from "../../../src/testing/contracts/index.ts";
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
  /** Resolves when the log contains a text. */
  readonly said: (text: string) => Promise<void>;
  readonly close: () => Promise<void>;
}

export interface TestHostOptions {
  readonly agents?: readonly HostedAgent[];
  readonly allow?: readonly AllowedSender[];
  readonly pairing?: boolean;
  readonly limits?: ServerOptions["limits"];
  /** Whether several tests use the host, and close it. Default: it is closed at the end of the test. */
  readonly isShared?: boolean;
  readonly notifications?: ChannelsOptions["notifications"];
  readonly runtimeOptions?: Parameters<typeof openRuntime>[0];
}

/** Starts a channel on the SQLite store at a path. */
export async function startHost(
  path: string,
  channel: ChannelAdapter,
  options: TestHostOptions = {},
): Promise<TestHost> {
  const { agents = [channelAgent()], pairing, runtimeOptions, notifications, isShared = false } = options;
  const store = await sqliteStore({ path, hash: sha256, watchEveryMs: 5 });
  const runtime = await openRuntime({ store, ...runtimeOptions });
  const lines: string[] = [];
  let changed = Promise.withResolvers<void>();
  const log = (line: string): void => {
    lines.push(line);
    changed.resolve();
    changed = Promise.withResolvers<void>();
  };
  const channels = createChannels(runtime, {
    store,
    agents,
    channels: [{ channel, allow: options.allow ?? allow, ...(pairing !== undefined && { pairing }) }],
    log,
    ...(notifications !== undefined && { notifications }),
  });
  const server = createServer(runtime, {
    agents,
    tokens: null,
    routes: channels.routes,
    onError: (error) => log(error.message),
    limits: { requestsPerSecond: 100_000, requestBurst: 100_000, ...options.limits },
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
  if (!isShared) onTestFinished(close);
  return {
    url: listening.url,
    runtime,
    store,
    channels,
    pairings: storedPairings(store.records),
    lines,
    said: async (text) => {
      while (!lines.some((line) => line.includes(text))) await changed.promise;
    },
    close,
  };
}

export { newPath };
