import { describe, expect, it } from "vitest";
import { priceCatalog, type PriceOverride } from "../../../src/capabilities/index.ts";
import type { ModelPrice, PriceQuery } from "../../../src/kernel/index.ts";

const may = Date.UTC(2026, 4, 1);

function query(name: string, more: Partial<PriceQuery> = {}): PriceQuery {
  const [provider = "", ...rest] = name.split("/");
  return { provider, modelId: rest.join("/"), inputTokens: 1_000, at: may, ...more };
}

/** Returns a price in USD per million tokens. */
function read(price: ModelPrice | null): Record<string, number> | null {
  if (price === null) return null;
  return Object.fromEntries(
    Object.entries(price).map(([part, usd]) => [
      part,
      Math.round(usd * (part === "requestUsd" ? 1e9 : 1e15)) / 1e9,
    ]),
  );
}

describe("priceCatalog() with the bundled list", () => {
  const catalog = priceCatalog();
  const find = async (name: string, more?: Partial<PriceQuery>) => {
    await catalog.load?.();
    return read(catalog.find(query(name, more)));
  };

  it("priceCatalog() with the bundled list loads the list once, at the first load()", async () => {
    const fresh = priceCatalog();
    expect(fresh.find(query("anthropic/claude-sonnet-4-20250514"))).toBeNull();
    expect(fresh.load?.()).toBe(fresh.load?.());
    await fresh.load?.();
    expect(fresh.load?.()).toBeUndefined();
    expect(fresh.find(query("anthropic/claude-sonnet-4-20250514"))).not.toBeNull();
  });

  it("priceCatalog() with the bundled list has separate prices for cache reads and cache writes", async () => {
    const price = { inputUsd: 3, outputUsd: 15, cacheReadUsd: 0.3, cacheWriteUsd: 3.75 };
    expect(await find("anthropic/claude-sonnet-4-20250514")).toEqual(price);
  });

  it("priceCatalog() with the bundled list finds providers by the names that SDKs use", async () => {
    expect(await find("anthropic.messages/claude-sonnet-4-20250514")).toMatchObject({ inputUsd: 3 });
    expect(await find("google.generative-ai/gemini-2.5-pro")).toMatchObject({ inputUsd: 1.25 });
    expect(await find("openai.responses/gpt-5")).toMatchObject({ inputUsd: 1.25, outputUsd: 10 });
  });

  it("priceCatalog() with the bundled list applies the price tier of the input size to the whole call", async () => {
    const small = { inputUsd: 1.25, outputUsd: 10, cacheReadUsd: 0.125 };
    const large = { inputUsd: 2.5, outputUsd: 15, cacheReadUsd: 0.25 };
    expect(await find("google/gemini-2.5-pro", { inputTokens: 200_000 })).toEqual(small);
    expect(await find("google/gemini-2.5-pro", { inputTokens: 200_001 })).toEqual(large);
  });

  it("priceCatalog() with the bundled list applies prices by date", async () => {
    const before = await find("openai/o3", { at: Date.UTC(2025, 5, 1) });
    const after = await find("openai/o3", { at: Date.UTC(2025, 6, 1) });
    expect([before?.["inputUsd"], after?.["inputUsd"]]).toEqual([10, 2]);
  });

  it("priceCatalog() with the bundled list includes the price per request", async () => {
    expect(await find("perplexity/sonar")).toMatchObject({ requestUsd: 0.012 });
  });

  it.each(["anthropic/claude-from-the-future", "my-proxy/gpt-5", "ollama/llama3", "openai/", "/gpt-5"])(
    "B4: priceCatalog() with the bundled list has no price for %s, rather than a price of zero",
    async (name) => {
      expect(await find(name)).toBeNull();
    },
  );
});

describe("priceCatalog() overrides", () => {
  const price = (input: number): PriceOverride["usdPerMillion"] => ({ input, output: input * 5 });
  const find = (overrides: readonly PriceOverride[], name: string, more?: Partial<PriceQuery>) =>
    read(priceCatalog({ overrides, bundled: false }).find(query(name, more)))?.["inputUsd"];

  it("price overrides take precedence over the list, even for a model that the list contains", async () => {
    const override = {
      provider: "openai",
      model: "gpt-5",
      usdPerMillion: { input: 1, output: 2, cacheRead: 0 },
    };
    const catalog = priceCatalog({ overrides: [override] });
    await catalog.load?.();
    expect(read(catalog.find(query("openai/gpt-5")))).toEqual({ inputUsd: 1, outputUsd: 2, cacheReadUsd: 0 });
    expect(read(catalog.find(query("openai/gpt-5-mini")))).toMatchObject({ inputUsd: 0.25 });
  });

  it("price overrides match by exact name or by prefix; a closer match wins, then the later entry", () => {
    const overrides = [
      { provider: "*", model: "*", usdPerMillion: price(1) },
      { provider: "acme", model: "large-2", usdPerMillion: price(4) },
      { provider: "acme", model: "large*", usdPerMillion: price(3) },
      { provider: "acme", model: "*", usdPerMillion: price(2) },
      { provider: "acme", model: "large-2", usdPerMillion: price(5) },
    ];
    const names = ["other/any", "acme/small", "acme/large-1", "acme/large-2"];
    expect(names.map((name) => find(overrides, name))).toEqual([1, 2, 3, 5]);
    expect(find(overrides.slice(1), "other/any")).toBeUndefined();
  });

  it("price overrides apply tiers by input size and change by date", () => {
    const tiers = [
      { aboveInputTokens: 2_000, usdPerMillion: price(9) },
      { aboveInputTokens: 1_000, usdPerMillion: price(7) },
    ];
    const overrides = [
      { provider: "acme", model: "m", usdPerMillion: price(4), from: may + 10 },
      { provider: "acme", model: "m", usdPerMillion: price(3), tiers },
    ];
    const sizes = [1_000, 1_001, 2_001].map((inputTokens) => find(overrides, "acme/m", { inputTokens }));
    expect(sizes).toEqual([3, 7, 9]);
    expect(find(overrides, "acme/m", { at: may + 10 })).toBe(4);
  });

  it.each([
    [{ usdPerMillion: { input: -1, output: 1 } }, "invalid usdPerMillion.input -1"],
    [{ usdPerMillion: { input: 1, output: Number.NaN } }, "invalid usdPerMillion.output NaN"],
    [
      { usdPerMillion: { input: 1 } as PriceOverride["usdPerMillion"] },
      "invalid usdPerMillion.output undefined",
    ],
    [{ tiers: [{ aboveInputTokens: -1, usdPerMillion: price(1) }] }, "invalid tiers[0].aboveInputTokens -1"],
    [{ provider: "" }, "invalid provider"],
  ])("priceCatalog() refuses the invalid override %j", (bad, message) => {
    const override = { provider: "acme", model: "m", usdPerMillion: price(1), ...bad };
    expect(() => priceCatalog({ overrides: [override] })).toThrow(message);
  });
});
