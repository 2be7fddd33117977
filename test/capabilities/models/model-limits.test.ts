import { describe, expect, test } from "vitest";
import { fallback, namedModel, route, toModel, withSettings } from "../../../src/capabilities/index.ts";
import type { ChatMessage } from "../../../src/kernel/index.ts";
import { modelBudget } from "../../../src/agents/context/compaction/token-budget.ts";

describe("limits of a named model", () => {
  test.each([
    ["anthropic/claude-sonnet-4-5", 64_000],
    ["anthropic/claude-opus-4-1", 32_000],
    ["anthropic/claude-3-5-haiku-20241022", 8_192],
    ["openai/gpt-5", 128_000],
    ["openai/gpt-4o", 16_384],
    ["openai/gpt-4.1-mini", 32_768],
    ["openai/o3", 100_000],
    ["google/gemini-2.5-flash-lite", 65_536],
    ["google/gemini-2.0-flash", 8_192],
  ] as const)("the model %s has a known context window and output limit", (name, maxOutputTokens) => {
    const model = namedModel(name);
    expect(model.contextWindow).toBeGreaterThanOrEqual(100_000);
    expect(model.maxOutputTokens).toBe(maxOutputTokens);
    expect(toModel(name)).toMatchObject({ contextWindow: model.contextWindow });
  });

  test.each(["ollama/qwen3:8b", "openai/no-such-model", "vllm/gpt-5"] as const)(
    "the model %s is not in the price list, so its limits are unknown",
    (name) => {
      const { contextWindow, maxOutputTokens } = namedModel(name);
      expect({ contextWindow, maxOutputTokens }).toEqual({});
    },
  );

  test.each(["google/gemini-2.5-pro", "google/gemini-3-pro-preview"] as const)(
    "the model %s has a known context window, although the price list has none for it",
    (name) => {
      const { contextWindow, maxOutputTokens } = namedModel(name);
      expect({ contextWindow, maxOutputTokens }).toEqual({
        contextWindow: 1_048_576,
        maxOutputTokens: 65_536,
      });
    },
  );

  test("modelBudget() accepts a model by its name", () => {
    const model = namedModel("openai/gpt-5");
    const strategies = [{ compact: async (history: readonly ChatMessage[]) => history }];
    expect(() => modelBudget({ model, strategies })).not.toThrow();
  });

  test("withSettings() replaces a known limit of a model", () => {
    const model = withSettings("openai/gpt-5", { maxOutputTokens: 500, contextWindow: 9_000 });
    expect(model).toMatchObject({ maxOutputTokens: 500, contextWindow: 9_000 });
  });

  test("fallback() and route() have the lowest limits of their models, and no limit if one is unknown", () => {
    const names = ["openai/gpt-5", "anthropic/claude-3-5-haiku-20241022"] as const;
    const [large, small] = names.map((name) => namedModel(name));
    expect(fallback(names)).toMatchObject({
      contextWindow: Math.min(large?.contextWindow ?? 0, small?.contextWindow ?? 0),
      maxOutputTokens: 8_192,
    });
    const mixed = route({ models: { a: "openai/gpt-5", b: "ollama/qwen3:8b" }, choose: () => "a" });
    expect(mixed.maxOutputTokens).toBe(undefined);
  });
});
