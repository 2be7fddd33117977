import { expect, test } from "vitest";
import { shortId } from "./format.ts";

test("a list shows an id as it is, or cuts it with an ellipsis", () => {
  expect(shortId("run_release-0-9")).toBe("run_release-0-9");
  expect(shortId("run_394d481d-8c34-4c63-9c8c-26acb101eec5")).toBe("run_394d481d…");
  expect(shortId("run_a-name-that-is-too-long-for-a-list")).toBe("run_a-name-that-is-too-…");
});
