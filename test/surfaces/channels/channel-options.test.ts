import { expect, test } from "vitest";
import { openRuntime } from "../../../src/assembly/open-runtime.ts";
import { createChannels, webhookChannel, type ChannelsOptions } from "../../../src/surfaces/server/index.ts";
import { channelAgent } from "../../../src/testing/contracts/index.ts";
import { openStore } from "../../../src/entries/index.ts";
import { secret } from "./signed-program.ts";

const channel = webhookChannel({ name: "shop", secret });
const rule = { name: "log", to: { url: "https://shop.example/runs", secret } };

test.each([
  [
    { channels: [{ channel, pairings: false }] },
    'unknown option "pairings" of a channel of createChannels()',
  ],
  [
    { channels: [{ channel, allow: [{ sender: "till-1", tenantId: "acme" }] }] },
    'unknown option "tenantId" of a sender in the allow list of channel shop',
  ],
  [
    { channels: [], notifications: [{ ...rule, tenant: ["acme"] }] },
    'unknown option "tenant" of a notification of createChannels()',
  ],
  [{ channels: [], notifications: [{ name: "log", ...rule.to }] }, 'unknown option "url" of a notification'],
  [{ channels: [], notifications: [{ name: "log" }] }, "invalid to undefined of a notification"],
] as const)(
  "createChannels() refuses %j, which would reach or notify other people",
  async (options, error) => {
    const store = await openStore("memory:");
    await using runtime = await openRuntime({ store });
    expect(() =>
      createChannels(runtime, { store, agents: [channelAgent()], ...options } as ChannelsOptions),
    ).toThrow(error);
  },
);
