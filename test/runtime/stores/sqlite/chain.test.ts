import * as fc from "fast-check";
import { expect, test } from "vitest";
import {
  canonicalJson,
  chainHead,
  contentHash,
  formatAgentId,
  formatRunId,
  formatTaskId,
  type Event,
  type JsonValue,
} from "../../../../src/kernel/index.ts";
import { sha256 } from "../../../../src/runtime/sha256.ts";
import { Chain, eventText } from "../../../../src/runtime/stores/sqlite/chain.ts";

const event: fc.Arbitrary<Event> = fc
  .record({
    seq: fc.nat(),
    at: fc.nat(),
    task: fc.nat(),
    parent: fc.option(fc.nat()),
    input: fc.jsonValue() as fc.Arbitrary<JsonValue>,
  })
  .map(({ seq, at, task, parent, input }) => ({
    seq,
    runId: formatRunId("a"),
    taskId: formatTaskId(task),
    agentId: formatAgentId({ name: "tester", key: "one" }),
    parentId: parent === null ? null : formatTaskId(parent),
    type: "input",
    at,
    data: { input },
  }));

test("E1: an event's text is its canonical JSON", () => {
  fc.assert(
    fc.property(event, (each) => {
      expect(eventText(each)).toBe(canonicalJson(each));
    }),
  );
});

test("E1: the chain is the kernel's, so that a head fits in every store", () => {
  fc.assert(
    fc.property(fc.array(event), (events) => {
      const chain = new Chain(sha256, undefined);
      const head = events.reduce((last, each) => chainHead(last, contentHash(each, sha256), sha256), "");
      expect(chain.head("", chain.contents(events))).toBe(head);
    }),
  );
});

test("E1: each key makes a chain of its own", () => {
  const [one, other] = [new Chain(sha256, "one"), new Chain(sha256, "other")];
  expect([one.keyed, new Chain(sha256, undefined).keyed]).toEqual([true, false]);
  expect(one.head("", ["content"]) === other.head("", ["content"])).toBe(false);
});
