import { expect, test } from "vitest";
import { chainHead, contentHash, eventDraft, type Event } from "../../src/kernel/index.ts";
import { sha256 } from "../../src/runtime/index.ts";
import { placed, runRecord } from "../../src/testing/store-fixtures.ts";

const { runId } = runRecord();

function turn(seq: number): Event {
  return placed(runId, seq, eventDraft("turn_start", { turn: seq }));
}

function headOf(events: readonly Event[]): string {
  return events.reduce((head, event) => chainHead(head, contentHash(event, sha256), sha256), "");
}

test("E1: an event's content hash covers everything in it", () => {
  const event = turn(1);
  const changed: Event[] = [
    { ...event, seq: 2 },
    { ...event, at: 9 },
    { ...event, data: { turn: 9 } } as Event,
    { ...event, type: "turn_end" } as unknown as Event,
  ];
  const hashes = [event, ...changed].map((each) => contentHash(each, sha256));
  expect(new Set(hashes).size).toBe(hashes.length);
});

test("E1: the order of an event's keys does not matter", () => {
  const reordered = Object.fromEntries(Object.entries(turn(1)).toReversed()) as unknown as Event;
  expect(contentHash(reordered, sha256)).toBe(contentHash(turn(1), sha256));
});

test("E1: a head covers every event before it: edited, removed, added or reordered, it is another", () => {
  const events = [turn(0), turn(1), turn(2)];
  const [first, second, third] = events as [Event, Event, Event];
  const others = [
    [first, second],
    [first, third, second],
    [second, third],
    [first, turn(7), third],
    [...events, turn(3)],
  ];
  const heads = [events, ...others].map(headOf);
  expect(new Set(heads).size).toBe(heads.length);
});
