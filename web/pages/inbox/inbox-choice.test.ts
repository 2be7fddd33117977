import { expect, test } from "vitest";
import { nextChoice, noChoice, type Choice } from "./inbox-choice.ts";

const [one, two, three] = [{ id: "1" }, { id: "2" }, { id: "3" }];
const start: Choice<{ readonly id: string }> = noChoice;

test("the inbox starts with its oldest item, and the one that the person wants precedes", () => {
  expect(nextChoice(start, [one, two], null)).toMatchObject({ chosen: one, answered: null });
  expect(nextChoice(start, [one, two], "2")).toMatchObject({ chosen: two, at: 1 });
});

test("the item after an answered one comes up in its place, and the answered one stays above it", () => {
  const second = nextChoice(start, [one, two, three], "2");
  const answered = nextChoice(second, [one, three], "2");
  expect(answered).toEqual({ chosen: three, at: 1, answered: two });
  expect(nextChoice(answered, [one, three], "2")).toEqual(answered);
  expect(nextChoice(answered, [one], "2")).toEqual({ chosen: one, at: 0, answered: three });
  expect(nextChoice(answered, [one, three], "1")).toEqual({ chosen: one, at: 0, answered: null });
});

test("the last item that was answered stays when nothing else waits", () => {
  expect(nextChoice(nextChoice(start, [one], null), [], null)).toEqual({
    chosen: undefined,
    at: 0,
    answered: one,
  });
});
