import { expect, test } from "vitest";
import type { Event, EventType } from "../../../src/kernel/index.ts";
import { gatewayBudget, gatewayState, isRefused, requestOf } from "./gateway-requests.ts";

const model = { provider: "anthropic", modelId: "sonnet" };

function row(type: EventType, data: object): ReturnType<typeof requestOf> {
  return requestOf({ seq: 7, at: 5, type, data } as unknown as Event);
}

test("the page shows a gateway call with its model, its limits, what was reserved and what it cost", () => {
  const usage = { inputTokens: 10, outputTokens: 20, costUsd: 0.03 };
  const limit = { asked: 90, sent: 40 };
  const reserved = { tokens: 50, costUsd: 0.04 };
  expect(row("metered_call", { model, usage, durationMs: 9, status: "ok", limit, reserved })).toEqual({
    seq: 7,
    at: 5,
    outcome: "done",
    words: "done",
    isBad: false,
    model: "sonnet",
    tokens: { input: 10, output: 20 },
    limit,
    durationMs: 9,
    reservedUsd: 0.04,
    costUsd: 0.03,
  });
});

test("the page shows a cut gateway call with its charge, and a call that the provider refused as free", () => {
  const charged = { tokens: 50, costUsd: 0.04 };
  expect(row("metered_call", { model, usage: null, durationMs: 9, status: "error", charged })).toMatchObject({
    outcome: "cut",
    costUsd: 0.04,
    isBad: true,
  });
  expect(row("metered_call", { model, usage: null, durationMs: 9, status: "refused" })).toMatchObject({
    outcome: "provider",
    costUsd: 0,
    isBad: false,
  });
});

test("the page shows a gateway call from the log of an earlier version with what the log contains", () => {
  expect(row("metered_call", { model, usage: null, durationMs: 9, status: "error" })).toMatchObject({
    limit: null,
    reservedUsd: null,
    costUsd: null,
  });
});

test("the page shows a refused gateway request with its status, its model and its reason", () => {
  const cap = { name: "perDayUsd", limitUsd: 1 };
  expect(row("budget_exhausted", { model })).toMatchObject({
    outcome: "budget",
    model: "sonnet",
    words: "402, above the budget, not sent",
  });
  expect(row("budget_exhausted", { cap })).toMatchObject({
    outcome: "cap",
    model: null,
    words: "402, above the cap, not sent",
  });
  const refused = { endpoint: "/v1/messages", status: 403, model: "x", reason: "the model x is not allowed" };
  expect(row("gateway_request", refused)).toMatchObject({
    outcome: "refused",
    model: "x",
    words: "403, not sent: the model x is not allowed",
  });
  expect(row("gateway_request", { ...refused, reason: "", skipped: 4 })?.words).toBe(
    "403, not sent: the reason was erased (4 more before it are not in the log)",
  );
});

test("the page shows a count of tokens not as a refusal, and other events not as gateway requests", () => {
  const counted = row("gateway_request", { endpoint: "/v1/messages/count_tokens", status: 200, model: "x" });
  expect(counted).toMatchObject({ outcome: "counted", words: "counted tokens, free", isBad: false });
  expect([counted, row("budget_exhausted", {})].map((each) => each && isRefused(each))).toEqual([
    false,
    true,
  ]);
  expect(row("task_start", {})).toBeUndefined();
});

test.each([
  [{ maxBudgetUsd: 5 }, "$5.00"],
  [{ maxBudgetUsd: 0.5, per: "day" }, "$0.50 per day"],
  [{}, null],
])("the page describes the gateway budget of %o as %s", (metadata, words) => {
  expect(gatewayBudget(metadata)).toBe(words);
});

const token = { ending: "abc", createdAt: 1, expiresAt: null };
const figures = { open: 0, held: 0, refused: 0, addedDelayMs: null };
const here = { url: "http://127.0.0.1:1", figures: null, tokens: [token], others: [] };

test.each([
  ["running", null, { ...here, figures }, null, null],
  ["running", null, here, null, /does not execute the run.*503: no other gateway/],
  [
    "running",
    null,
    { ...here, others: ["http://127.0.0.1:2"] },
    null,
    /others are at http:\/\/127\.0\.0\.1:2/,
  ],
  ["paused", null, here, null, null],
  ["budget_exhausted", 9, here, null, null],
  ["cancelled", 9, { ...here, tokens: [] }, null, /revoked/],
  ["cancelled", 9, here, null, /was cancelled/],
  ["completed", 9, here, '{"reason":"expired","requests":3}', /has expired/],
  ["completed", 9, here, null, /has ended/],
] as const)(
  "the page says of a gateway run that is %s (ended at %o) with %o and the result %o: %o",
  (status, endedAt, run, result, words) => {
    const state = gatewayState({ status, endedAt }, run, result);
    expect(state === null ? null : words?.test(state)).toBe(words === null ? null : true);
  },
);
