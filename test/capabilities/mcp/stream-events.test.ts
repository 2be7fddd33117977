import { expect, it } from "vitest";
import { StreamEvents } from "../../../src/capabilities/mcp/http-endpoint.ts";

const message = (text: string) => ({ jsonrpc: "2.0", method: "note", params: { text } }) as const;

it("StreamEvents replays the messages of a stream that follow an event", async () => {
  const events = new StreamEvents();
  const first = await events.storeEvent("a", message("1"));
  await events.storeEvent("b", message("2"));
  await events.storeEvent("a", message("3"));
  const sent: unknown[] = [];
  const stream = await events.replayEventsAfter(first, { send: async (_id, each) => void sent.push(each) });
  expect([stream, sent]).toEqual(["a", [message("3")]]);
});

it("StreamEvents drops its oldest messages if there are too many or if they are too large", async () => {
  const events = new StreamEvents(3, 1_000);
  const known = async (ids: readonly string[]) =>
    Promise.all(ids.map((id) => events.getStreamIdForEventId(id)));
  const ids: string[] = [];
  for (const text of ["1", "2", "3", "4"]) ids.push(await events.storeEvent("a", message(text)));
  expect(await known(ids)).toEqual([undefined, "a", "a", "a"]);
  ids.push(await events.storeEvent("a", message("x".repeat(900))));
  expect(await known(ids)).toEqual([undefined, undefined, undefined, undefined, "a"]);
  ids.push(await events.storeEvent("a", message("x".repeat(5_000))));
  expect(await known(ids.slice(4))).toEqual([undefined, undefined]);
  ids.push(await events.storeEvent("a", message("5")));
  expect(await known(ids.slice(6))).toEqual(["a"]);
});
