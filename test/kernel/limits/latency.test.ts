import { expect, test } from "vitest";
import {
  addLatency,
  countLatency,
  latencyBoundsMs,
  latencyBucket,
  latencyList,
  latencyQuantile,
  noLatency,
} from "../../../src/kernel/index.ts";

test("a call duration that equals a bound is counted in the bucket of the bound, and a longer one in the last bucket", () => {
  expect(latencyBoundsMs.map(latencyBucket)).toEqual(latencyBoundsMs.map((_bound, bucket) => bucket));
  expect([latencyBucket(-1), latencyBucket(0), latencyBucket(101), latencyBucket(1e9)]).toEqual([
    0, 0, 1, 24,
  ]);
});

test("a quantile of call durations lies within the bucket of its call, and added counts have the quantile of all calls", () => {
  const counts = (times: readonly number[]) => times.reduce(countLatency, noLatency);
  const fast = counts(Array.from({ length: 95 }, () => 500));
  const slow = counts(Array.from({ length: 5 }, () => 20_000));
  const all = latencyList(addLatency(fast, slow));
  const within = (share: number, from: number, to: number): boolean => {
    const found = latencyQuantile(all, share) ?? -1;
    return found > from && found <= to;
  };
  expect([within(0.5, 400, 600), within(0.95, 400, 600), within(0.96, 19_200, 25_600)]).toEqual([
    true,
    true,
    true,
  ]);
  expect(latencyQuantile(latencyList(noLatency), 0.95)).toBeNull();
  expect(latencyQuantile(latencyList(counts([1e9])), 0.95)).toBe(latencyBoundsMs.at(-1));
});
