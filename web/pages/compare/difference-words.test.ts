import { expect, test } from "vitest";
import { costDifference, timeDifference } from "./difference-words.ts";

test("a comparison on the page shows times as equal if they differ by less than the clock shows", () => {
  expect(timeDifference(5_000, 5_000)).toEqual({ value: "Equal", words: "both took 0:05" });
  expect(timeDifference(5_300, 5_000)).toEqual({ value: "Equal", words: "both took 0:05" });
  expect(timeDifference(300, 900)).toEqual({ value: "Equal", words: "both took under 1 s" });
  expect(timeDifference(4_900, 5_100)).toEqual({ value: "Equal", words: "both took 0:04" });
});

test("a comparison on the page shows a difference of times with a sign and a word", () => {
  expect(timeDifference(30_000, 58_000)).toEqual({ value: "+0:28", words: "B took longer" });
  expect(timeDifference(58_000, 30_000)).toEqual({ value: "−0:28", words: "B took less" });
});

test("a comparison on the page shows costs as equal if they look alike", () => {
  expect(costDifference(0, 0)).toEqual({ value: "Equal", words: "both cost $0.000" });
  expect(costDifference(1.25, 1.2501)).toEqual({ value: "Equal", words: "both cost $1.250" });
});

test("a comparison on the page shows a difference of costs with a sign and a share of the first cost", () => {
  expect(costDifference(1.408, 0.871)).toEqual({ value: "−$0.537", words: "B costs 38 % less" });
  expect(costDifference(10, 10.01)).toEqual({ value: "+$0.010", words: "B costs under 1 % more" });
  expect(costDifference(0, 0.5)).toEqual({ value: "+$0.500", words: "B costs more" });
});
