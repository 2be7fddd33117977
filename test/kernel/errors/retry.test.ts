import { describe, expect, test } from "vitest";
import { formatAgentId, retryDelayMs, RetryPolicy, retrySettings } from "../../../src/kernel/index.ts";

const defaults = retrySettings();

const never = { next: () => 0 };

describe("the delay before a retry", () => {
  test("doubles from the base on, as the seed's own example says", () => {
    expect([1, 2, 3, 4].map((retry) => retryDelayMs(retry, defaults, never))).toEqual([
      2_000, 4_000, 8_000, 16_000,
    ]);
  });

  test("is never shorter than the provider asks for, and the schedule has a ceiling", () => {
    expect(retryDelayMs(1, defaults, never, 9_000)).toBe(9_000);
    expect(retryDelayMs(40, defaults, never)).toBe(defaults.maxDelayMs);
    expect(retryDelayMs(40, defaults, never, 600_000)).toBe(600_000);
  });

  test("gets its share of chance when asked to", () => {
    const settings = { ...defaults, jitter: 0.5 };
    expect(retryDelayMs(1, settings, { next: () => 0.5 })).toBe(2_500);
  });
});

describe("RetryPolicy", () => {
  const [ann, bob] = [formatAgentId({ name: "ann" }), formatAgentId({ name: "bob" })];

  test("allows so many restarts of each agent, then no more, until it is reset", () => {
    const policy = new RetryPolicy(2);
    expect([ann, ann, ann, bob].map((agent) => policy.shouldRetry(agent))).toEqual([true, true, false, true]);
    policy.reset(ann);
    expect(policy.shouldRetry(ann)).toBe(true);
  });

  test("allows three unless told, none when told zero, and refuses what is no count", () => {
    expect(new RetryPolicy().maxRetries).toBe(3);
    expect(new RetryPolicy(0).shouldRetry(ann)).toBe(false);
    for (const bad of [-1, Number.NaN, 1.5]) expect(() => new RetryPolicy(bad)).toThrow("invalid maxRetries");
  });
});
