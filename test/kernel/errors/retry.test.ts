import { describe, expect, test } from "vitest";
import { formatAgentId, retryDelayMs, RetryPolicy, retrySettings } from "../../../src/kernel/index.ts";

const defaults = retrySettings();

const never = { next: () => 0 };

describe("retryDelayMs()", () => {
  test("the retry delay doubles from the base delay with each retry", () => {
    expect([1, 2, 3, 4].map((retry) => retryDelayMs(retry, defaults, never))).toEqual([
      2_000, 4_000, 8_000, 16_000,
    ]);
  });

  test("the retry delay has a maximum, but is never shorter than the provider asks for", () => {
    expect(retryDelayMs(1, defaults, never, 9_000)).toBe(9_000);
    expect(retryDelayMs(40, defaults, never)).toBe(defaults.maxDelayMs);
    expect(retryDelayMs(40, defaults, never, 600_000)).toBe(600_000);
  });

  test("the retry delay is extended by a random part if jitter is set", () => {
    const settings = { ...defaults, jitter: 0.5 };
    expect(retryDelayMs(1, settings, { next: () => 0.5 })).toBe(2_500);
  });
});

describe("RetryPolicy", () => {
  const [ann, bob] = [formatAgentId({ name: "ann" }), formatAgentId({ name: "bob" })];

  test("RetryPolicy allows its number of restarts per agent until it is reset", () => {
    const policy = new RetryPolicy(2);
    expect([ann, ann, ann, bob].map((agent) => policy.shouldRetry(agent))).toEqual([true, true, false, true]);
    policy.reset(ann);
    expect(policy.shouldRetry(ann)).toBe(true);
  });

  test("RetryPolicy defaults to three restarts, allows none for zero, and refuses an invalid count", () => {
    expect(new RetryPolicy().maxRetries).toBe(3);
    expect(new RetryPolicy(0).shouldRetry(ann)).toBe(false);
    for (const bad of [-1, Number.NaN, 1.5]) expect(() => new RetryPolicy(bad)).toThrow("invalid maxRetries");
  });
});
