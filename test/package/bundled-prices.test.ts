import { readFile } from "node:fs/promises";
import {
  calcPrice,
  type MatchLogic,
  type Provider,
  type TieredPrices,
  waitForUpdate,
} from "@pydantic/genai-prices";
import { expect, it } from "vitest";
import { priceList, windowList } from "../../build/price-list.ts";
import { BundledPrices } from "../../src/capabilities/prices/bundled-prices.ts";
import { isFull } from "../effort.ts";
import type { ModelPrice, PriceQuery } from "../../src/kernel/index.ts";

const providers = (await waitForUpdate()) ?? [];
const prices = new BundledPrices();

it("the bundled price list equals the one generated from the installed package; if it differs, run build/price-list.ts", async () => {
  const file = new URL("../../src/capabilities/prices/price-list.ts", import.meta.url);
  expect(await readFile(file, "utf8")).toBe(await priceList());
  const windows = new URL("../../src/capabilities/prices/context-windows.ts", import.meta.url);
  expect(await readFile(windows, "utf8")).toBe(await windowList());
});

it.each(providers.map((provider) => [provider.id, provider] as const))(
  "BundledPrices returns the package's prices for each model of %s at any time and input size",
  (_id, provider) => {
    const queries = questions(provider);
    expect(queries.map((query) => prices.find(query))).toEqual(queries.map(expected));
  },
);

const sdkNames =
  "anthropic.messages openai.responses amazon-bedrock google.generative-ai google.vertex azure.chat xai.chat";
const strangers = "my-proxy ollama litellm LiteLLM huggingface/groq mistralx mymistral";

it.each([...sdkNames.split(" "), ...strangers.split(" "), " OpenAI ", "litellm "])(
  "BundledPrices finds the same prices as the package for the provider name %s",
  (provider) => {
    const names = providers.flatMap(({ id, models }) => models.slice(0, 8).map((model) => [id, model.id]));
    const queries = names.flatMap(([id, model]) =>
      [`${model}`, `${id}/${model}`].map((modelId) => ({
        provider,
        modelId,
        inputTokens: 1,
        at: moments[0],
      })),
    );
    expect(queries.map((query) => prices.find(query))).toEqual(queries.map(expected));
  },
);

const moments = [
  Date.UTC(2026, 4, 1, 12),
  Date.UTC(2025, 0, 1, 0, 30),
  Date.UTC(2026, 8, 30, 2, 0, 0, 1),
  Date.UTC(2027, 6, 1, 16, 30),
  Date.UTC(2026, 10, 15, 9, 59, 59, 999),
] as const;

/**
 * Queries with all listed names of a model and some similar names, at several times if the price depends on the time. `npm test`
 * asks for every fifth model.
 */
function questions({ id: provider, models }: Provider): PriceQuery[] {
  const some = models.filter((_model, index) => isFull || index % 5 === 0);
  return some.flatMap(({ id, match, prices: listed }) => {
    const names = [id, id.toUpperCase(), `${id}-20250514`, `${id}-20250230`, ...namesIn(match)];
    const undashed = names.map((name) => name.replace(/-(20\d\d)-(\d\d)-(\d\d)/, "-$1$2$3"));
    const times = Array.isArray(listed) ? moments : moments.slice(0, 1);
    return [...new Set([...names, ...undashed])].flatMap((modelId) =>
      times.flatMap((at) => [1_000, 300_000].map((inputTokens) => ({ provider, modelId, inputTokens, at }))),
    );
  });
}

function namesIn(match: MatchLogic): readonly string[] {
  return Object.values(match).flatMap((inside: string | readonly MatchLogic[]) =>
    typeof inside === "string" ? [inside, `${inside}-x`, `x-${inside}`] : inside.flatMap(namesIn),
  );
}

function expected({ provider, modelId, inputTokens, at }: PriceQuery): ModelPrice | null {
  const found =
    modelId === "" ? null : calcPrice({}, modelId, { providerId: provider, timestamp: new Date(at) });
  const usd = Object.entries(parts).flatMap(([part, [key, per]]) => {
    const amount = amountOf(found?.model_price[key], inputTokens);
    return amount === undefined ? [] : [[part, amount / per] as const];
  });
  const price: Partial<ModelPrice> = Object.fromEntries(usd);
  return price.inputUsd === undefined || price.outputUsd === undefined ? null : (price as ModelPrice);
}

const parts = {
  inputUsd: ["input_mtok", 1e6],
  outputUsd: ["output_mtok", 1e6],
  cacheReadUsd: ["cache_read_mtok", 1e6],
  cacheWriteUsd: ["cache_write_mtok", 1e6],
  reasoningUsd: ["output_reasoning_mtok", 1e6],
  requestUsd: ["requests_kcount", 1e3],
} as const satisfies Record<keyof ModelPrice, readonly [string, number]>;

function amountOf(price: number | TieredPrices | undefined, inputTokens: number): number | undefined {
  if (typeof price !== "object") return price;
  return price.tiers
    .toSorted((one, other) => one.start - other.start)
    .reduce((amount, tier) => (inputTokens > tier.start ? tier.price : amount), price.base);
}
