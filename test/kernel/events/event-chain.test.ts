import { expect, test } from "vitest";
import { chainHead, chainStart, formatRunId, type ChainLink } from "../../../src/kernel/index.ts";
import { sha256 } from "../../../src/runtime/index.ts";
import { runRecord } from "../../../src/testing/contracts/store-fixtures.ts";

const start = chainStart(runRecord());

function link(number: number, content = `content ${number}`): ChainLink {
  return { number, at: 10 + number, nextSeq: 2 * number, content };
}

function headOf(links: readonly ChainLink[], from = start): string {
  return links.reduce((head, each) => chainHead(head, each, sha256), from);
}

test("E1: the hash of the event chain changes with every field of a commit", () => {
  const changed = [{ number: 2 }, { at: 12 }, { nextSeq: 3 }, { content: "other" }];
  const heads = [link(1), ...changed.map((change) => ({ ...link(1), ...change }))].map((each) =>
    headOf([each]),
  );
  expect(new Set(heads).size).toBe(heads.length);
});

test("E1: the hash of the event chain changes if an earlier commit is edited, removed, added or reordered", () => {
  const [first, second, third] = [link(0), link(1), link(2)];
  const logs = [
    [first, second, third],
    [first, second],
    [first, third, second],
    [second, third],
    [first, link(1, "other"), third],
    [first, second, third, link(3)],
  ];
  const heads = logs.map((links) => headOf(links));
  expect(new Set(heads).size).toBe(heads.length);
});

test("E1: equal commits of two runs give different hashes of the event chain", () => {
  const other = chainStart({ ...runRecord(), runId: formatRunId("other") });
  expect(headOf([link(0)], other) === headOf([link(0)])).toBe(false);
});

test("E1: equal commits of runs with different users or tenants give different hashes of the event chain", () => {
  const callers = [
    { userId: null, tenantId: null },
    { userId: "ann", tenantId: null },
    { userId: null, tenantId: "ann" },
    { userId: "ann", tenantId: "acme" },
    { userId: "acme", tenantId: "ann" },
    { userId: "null", tenantId: null },
    { userId: 'ann","x', tenantId: "acme" },
    { userId: "ann\nacme", tenantId: null },
  ];
  const heads = callers.map((caller) => headOf([link(0)], chainStart({ ...runRecord(), ...caller })));
  expect(new Set(heads).size).toBe(callers.length);
});
