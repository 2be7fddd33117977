import { once } from "node:events";
import { expect, onTestFinished, test } from "vitest";
import { openRuntime } from "../../../src/assembly/open-runtime.ts";
import { memoryStore, sha256 } from "../../../src/runtime/index.ts";
import { createChannels, type ChannelAdapter, type ChannelPort } from "../../../src/surfaces/server/index.ts";
import { FakeClock } from "../../../src/testing/index.ts";
import { channelAgent } from "../../../src/testing/contracts/index.ts";

test("a channel abandons a message whose answer can never be delivered, and answers the messages after it", async () => {
  const clock = new FakeClock();
  const store = memoryStore({ hash: sha256 });
  const runtime = await openRuntime({ store, clock });
  const sent: string[] = [];
  const lines: string[] = [];
  const opened = Promise.withResolvers<ChannelPort>();
  const channel: ChannelAdapter = {
    name: "odd",
    platform: "odd",
    pieces: (text) => {
      if (text.includes("poison")) throw new Error("cannot be cut");
      return [text];
    },
    send: async ({ text }) => {
      sent.push(text);
      return { kind: "sent" };
    },
    poll: async (port, signal) => {
      opened.resolve(port);
      await once(signal, "abort");
    },
  };
  const channels = createChannels(runtime, {
    store,
    agents: [channelAgent()],
    channels: [{ channel, allow: ["1"] }],
    log: (line) => void lines.push(line),
  });
  onTestFinished(async () => {
    await channels.close();
    await runtime.close();
  });
  channels.start();
  const port = await opened.promise;
  const message = { conversationId: "1", senderId: "1" };
  await port.receive({ ...message, messageId: "1", text: "poison" });
  await port.receive({ ...message, messageId: "2", text: "cure" });
  for (let minute = 0; minute < 60 && sent.length === 0; minute++) await clock.advance(60_000);
  expect(sent).toEqual(["echo: cure"]);
  expect(lines.filter((line) => line.includes("abandoned after 10 attempts: cannot be cut"))).toHaveLength(1);
});
