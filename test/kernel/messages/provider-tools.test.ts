import fc from "fast-check";
import { expect, test } from "vitest";
import { boundProviderTools, type ToolSpec } from "../../../src/kernel/index.ts";

const model = { modelId: "m", contextWindow: 50_000 };

function spec(name: string, provider: Partial<NonNullable<ToolSpec["provider"]>>): ToolSpec {
  const known = { id: `anthropic.${name}`, args: {}, maxUses: 2, usdPerUse: 0.01, maxTokensPerUse: null };
  return { name, description: "", inputSchema: {}, provider: { ...known, ...provider } };
}

test("B1: no way in which a provider uses its tools costs more than the bound", () => {
  const tools = fc.array(
    fc.record({
      maxUses: fc.integer({ min: 1, max: 4 }),
      usdPerUse: fc.constantFrom(0, 0.0025, 0.01),
      maxTokensPerUse: fc.option(fc.integer({ min: 1, max: 20_000 })),
    }),
    { minLength: 1, maxLength: 3 },
  );
  const amounts = fc.record({ input: fc.nat(50_000), output: fc.nat(8_000), seed: fc.nat() });
  fc.assert(
    fc.property(tools, amounts, (list, { input, output, seed }) => {
      const bound = boundProviderTools(
        list.map((each, at) => spec(`t${at}`, each)),
        model,
      );
      // The provider makes every use it may, in some order, and reads the conversation with all results again after each one.
      const uses = list.flatMap((each) => Array.from({ length: each.maxUses }, () => each));
      const order = uses.toSorted((one, other) => ((one.maxUses * seed) % 7) - ((other.maxUses * seed) % 7));
      let [read, tokens, usd] = [input, Math.min(input, model.contextWindow), 0];
      for (const { maxTokensPerUse, usdPerUse } of order) {
        read = Math.min(model.contextWindow, read + (maxTokensPerUse ?? model.contextWindow));
        tokens += Math.min(model.contextWindow, read + output);
        usd += usdPerUse;
      }
      expect(bound?.inputTokens(input, output)).toBeGreaterThanOrEqual(tokens);
      expect(bound?.costUsd).toBeGreaterThanOrEqual(usd - 1e-9);
    }),
  );
});

test("B3: uses of unknown number cost as much as all that are possible, and reported uses their price", () => {
  const bound = boundProviderTools([spec("search", {}), spec("fetch", { usdPerUse: 0 })], model);
  expect(bound?.costOf(undefined)).toBeCloseTo(0.04);
  expect(bound?.costOf({ search: 1, fetch: 2 })).toBeCloseTo(0.01);
  expect(bound?.costOf({})).toBe(0);
});

test("a request without tools of a provider has no bound of them, and a tool without a limit is named", () => {
  expect(boundProviderTools(undefined, model)).toBeUndefined();
  expect(boundProviderTools([{ name: "add", description: "", inputSchema: {} }], model)).toBeUndefined();
  expect(boundProviderTools([spec("code", { maxUses: null }), spec("search", {})], model)?.unlimited).toEqual(
    ["code"],
  );
});
