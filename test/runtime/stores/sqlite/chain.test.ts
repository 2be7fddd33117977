import { expect, test } from "vitest";
import { chainHead } from "../../../../src/kernel/index.ts";
import { sha256 } from "../../../../src/runtime/sha256.ts";
import { Chain } from "../../../../src/runtime/stores/sqlite/chain.ts";

const link = { number: 1, at: 2, nextSeq: 3, content: "content" };

test("E1: without a key the chain is the kernel's, and a content that of its text", () => {
  const chain = new Chain(sha256, undefined);
  expect(chain.keyed).toBe(false);
  expect(chain.content("body")).toBe(sha256("body"));
  expect(chain.head("before", link)).toBe(chainHead("before", link, sha256));
});

test("E1: each key makes a chain of its own", () => {
  const [one, other] = [new Chain(sha256, "one"), new Chain(sha256, "other")];
  expect(one.keyed).toBe(true);
  expect(one.content("body") === other.content("body")).toBe(false);
  expect(one.head("", link) === other.head("", link)).toBe(false);
});
