import { expect, test } from "vitest";
import { chainHead } from "../../../../src/kernel/index.ts";
import { sha256 } from "../../../../src/runtime/sha256.ts";
import { Chain } from "../../../../src/runtime/stores/sqlite/chain.ts";

const row = { id: 7, number: 1, at: 2, nextEvent: 3, link: "link", body: "body", seal: null };

test("E1: without a key the chain is the kernel's, over links that cover the text and the link before", () => {
  const chain = new Chain(sha256, undefined);
  expect(chain.keyed).toBe(false);
  expect(chain.link("before", row)).toBe(sha256("before\n1 2 3\nbody"));
  const link = { number: 1, at: 2, nextSeq: 3, content: "link" };
  expect(chain.head("before", row)).toBe(chainHead("before", link, sha256));
});

test("E1: each key makes a chain of its own", () => {
  const [one, other] = [new Chain(sha256, "one"), new Chain(sha256, "other")];
  expect(one.keyed).toBe(true);
  expect(one.link("", row) === other.link("", row)).toBe(false);
  expect(one.seal("", row) === other.seal("", row)).toBe(false);
  expect(one.head("", row) === other.head("", row)).toBe(false);
});

test("E1: a row holds where it was put, as it was written or with its text erased and sealed", () => {
  const chain = new Chain(sha256, "key");
  const written = { ...row, link: chain.link("before", row) };
  const erased = { ...written, body: "", seal: chain.seal("before", written) };
  for (const each of [written, erased]) {
    expect(chain.holds("before", each)).toBe(true);
    expect(chain.holds("another", each)).toBe(false);
    expect(chain.holds("before", { ...each, at: 3 })).toBe(false);
    expect(chain.holds("before", { ...each, link: "another" })).toBe(false);
  }
  expect(chain.holds("before", { ...written, body: "" })).toBe(false);
});
