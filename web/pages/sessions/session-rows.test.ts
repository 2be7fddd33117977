import { expect, test } from "vitest";
import { entryWords } from "./session-rows.ts";

test("a session counts its entries as the list does, and says how many lines it shows of them", () => {
  expect(entryWords(16, 6)).toBe("16 entries in 6 lines");
  expect(entryWords(6, 6)).toBe("6 entries");
  expect(entryWords(1, 0)).toBe("1 entry");
});
