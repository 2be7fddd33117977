import { expect, test } from "vitest";
import { chainHead, formatAgentId, formatTaskId } from "../../../../src/kernel/index.ts";
import { sha256 } from "../../../../src/runtime/process/sha256.ts";
import { Chain } from "../../../../src/runtime/stores/codec/chain.ts";

const row = { id: 7, number: 1, at: 2, nextEvent: 3, link: "link", body: "body", refs: null, seal: null };

test("E1: without a key, each link of the event chain is the SHA-256 hash of the event's text and the previous link", () => {
  const chain = new Chain(sha256, undefined);
  expect(chain.keyed).toBe(false);
  expect(chain.link("before", row)).toBe(sha256("link\nbefore\n1 2 3\nbody"));
  const link = { number: 1, at: 2, nextSeq: 3, content: "link" };
  expect(chain.head("before", row)).toBe(chainHead("head\nbefore", link, sha256));
});

test("E1: link, seal and head of the same row of the event chain always differ", () => {
  const chain = new Chain(sha256, "key");
  for (const body of ["body", ""]) {
    const each = { ...row, body };
    const made = [chain.link("before", each), chain.seal("before", each), chain.head("before", each)];
    expect(new Set(made).size).toBe(3);
  }
});

test("E1: the head of the event chain covers the erasures that a commit orders", () => {
  const chain = new Chain(sha256, undefined);
  const erases = [{ taskId: formatTaskId(1), agentId: formatAgentId({ name: "helper" }) }];
  expect(chain.head("", row, erases) === chain.head("", row)).toBe(false);
  expect(chain.head("", row, [])).toBe(chain.head("", row));
});

test("E1: different keys give different links, seals and heads of the event chain", () => {
  const [one, other] = [new Chain(sha256, "one"), new Chain(sha256, "other")];
  expect(one.keyed).toBe(true);
  expect(one.link("", row) === other.link("", row)).toBe(false);
  expect(one.seal("", row) === other.seal("", row)).toBe(false);
  expect(one.head("", row) === other.head("", row)).toBe(false);
});

test("E1: holds() accepts a row of the chain only after its own predecessor and unchanged, or erased and sealed", () => {
  const chain = new Chain(sha256, "key");
  const written = { ...row, link: chain.link("before", row) };
  const left = { ...written, body: "left" };
  const erased = { ...left, seal: chain.seal("before", left) };
  for (const each of [written, erased]) {
    expect(chain.holds("before", each)).toBe(true);
    expect(chain.holds("another", each)).toBe(false);
    expect(chain.holds("before", { ...each, at: 3 })).toBe(false);
    expect(chain.holds("before", { ...each, link: "another" })).toBe(false);
    expect(chain.holds("before", { ...each, body: "another" })).toBe(false);
    expect(chain.holds("before", { ...each, refs: "[]" })).toBe(false);
  }
});

test("V1: a content's hash is SHA-256 without a key, and with a key neither SHA-256 nor the hash of a chain link", () => {
  const bytes = new TextEncoder().encode("link\nbefore\n1 2 3\nbody");
  expect(new Chain(sha256, undefined).contentHash(bytes)).toBe(sha256(bytes));
  const keyed = new Chain(sha256, "key");
  expect([sha256(bytes), keyed.link("before", row)]).not.toContain(keyed.contentHash(bytes));
  expect(keyed.contentHash(bytes)).not.toBe(new Chain(sha256, "other").contentHash(bytes));
});
