import { expect, test } from "vitest";
import { outputLimit } from "../../../src/capabilities/models/ai-sdk-adapter.ts";
import { thinkingFor } from "../../../src/capabilities/models/thinking.ts";
import { thinkingLevels, type ModelRequest } from "../../../src/kernel/index.ts";

const messages: ModelRequest["messages"] = [];
const target = { maxOutputTokens: 64_000 } as const;

test("a request without a thinking level is sent unchanged", () => {
  const anthropic = { ...target, provider: "anthropic", version: "v4" } as const;
  expect(thinkingFor({ messages }, anthropic)).toEqual({});
  const providerOptions = { anthropic: { effort: "low" } };
  expect(thinkingFor({ messages, providerOptions }, anthropic)).toEqual({ providerOptions });
});

test("a V4 model receives the thinking level as its reasoning setting, and the level off as none", () => {
  const google = { ...target, provider: "google", version: "v4" } as const;
  expect(thinkingLevels.map((thinkingLevel) => thinkingFor({ messages, thinkingLevel }, google))).toEqual(
    ["none", "minimal", "low", "medium", "high"].map((reasoning) => ({ reasoning })),
  );
});

test.each([
  ["openai", { reasoningEffort: "high" }, { reasoningEffort: "none" }],
  ["google", { thinkingConfig: { thinkingBudget: 24_576 } }, { thinkingConfig: { thinkingBudget: 0 } }],
] as const)(
  "a V3 model of %s receives the thinking level in the options of its provider",
  (provider, high, off) => {
    const model = { ...target, provider, version: "v3" } as const;
    expect(thinkingFor({ messages, thinkingLevel: "high" }, model)).toEqual({
      providerOptions: { [provider]: high },
    });
    expect(thinkingFor({ messages, thinkingLevel: "off" }, model)).toEqual({
      providerOptions: { [provider]: off },
    });
  },
);

test("a V3 model of a provider without thinking levels ignores the level", () => {
  const model = { ...target, provider: "mistral", version: "v3" } as const;
  expect(thinkingFor({ messages, thinkingLevel: "high" }, model)).toEqual({});
});

test("B1: the thinking budget of Anthropic is a part of the output limit, for every level and limit", () => {
  for (const version of ["v3", "v4"] as const)
    for (const thinkingLevel of thinkingLevels)
      for (const maxOutputTokens of [1, 1_024, 2_047, 2_048, 4_000, 8_192, 64_000]) {
        const request = { messages, thinkingLevel, maxOutputTokens };
        const thinking = thinkingFor(request, { ...target, provider: "anthropic", version });
        const sent = outputLimit({ ...request, ...thinking }) as number;
        const { anthropic } = thinking.providerOptions as Record<
          string,
          { thinking: { budgetTokens?: number } }
        >;
        const budgetTokens = anthropic?.thinking.budgetTokens ?? 0;
        expect(sent).toBeGreaterThan(0);
        expect(sent + budgetTokens).toBe(maxOutputTokens);
        expect(budgetTokens === 0).toBe(thinkingLevel === "off" || maxOutputTokens < 2_048);
      }
});

test("options of the request take precedence over those of the thinking level", () => {
  const request = {
    messages,
    thinkingLevel: "high",
    providerOptions: { anthropic: { thinking: { type: "disabled" } }, other: { x: 1 } },
  } as const;
  const { providerOptions } = thinkingFor(request, { ...target, provider: "anthropic", version: "v4" });
  expect(providerOptions).toEqual(request.providerOptions);
});
