// Generates the price list of Reeve from @pydantic/genai-prices. Run it when that package has a new version.
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import {
  type ConditionalPrice,
  type MatchLogic,
  type ModelInfo,
  type ModelPrice,
  type Provider,
  waitForUpdate,
} from "@pydantic/genai-prices";

const parts = {
  input: "input_mtok",
  output: "output_mtok",
  cacheRead: "cache_read_mtok",
  cacheWrite: "cache_write_mtok",
  reasoning: "output_reasoning_mtok",
  request: "requests_kcount",
};

/** Returns the source text of `src/capabilities/prices/price-list.ts`. */
export function priceList(): Promise<string> {
  return source("ListedModel", "priceList", listedModel);
}

/** Returns the source text of `src/capabilities/prices/context-windows.ts`. */
export function windowList(): Promise<string> {
  return source("ModelWindow", "contextWindows", modelWindow);
}

async function source(
  type: string,
  name: string,
  entry: (model: ModelInfo) => object | undefined,
): Promise<string> {
  const home = new URL("../node_modules/@pydantic/genai-prices/", import.meta.url);
  const { version } = JSON.parse(await readFile(new URL("package.json", home), "utf8")) as {
    readonly version: string;
  };
  const licence = (await readFile(new URL("LICENSE", home), "utf8")).trim();
  const providers = (await waitForUpdate()) ?? [];
  return [
    `/*! Made by build/price-list.ts of the prices in @pydantic/genai-prices ${version}, which come with this licence:`,
    ...licence.split("\n").map((line) => ` * ${line}`.trimEnd()),
    " */",
    "",
    `import type { ${type === "ListedModel" ? "" : `${type}, `}ListedProvider } from "./listed-models.ts";`,
    "",
    `export const ${name}: readonly ListedProvider${type === "ListedModel" ? "" : `<${type}>`}[] = [`,
    ...providers.map((provider) => `  ${literal(listed(provider, entry))},`),
    "];",
    "",
  ].join("\n");
}

function listed(
  { id, provider_match, model_match, fallback_model_providers, models }: Provider,
  entry: (model: ModelInfo) => object | undefined,
): object {
  return {
    id,
    match: provider_match && lowered(provider_match),
    modelMatch: model_match && lowered(model_match),
    fallbacks: fallback_model_providers,
    models: JSON.stringify(models.flatMap((model) => entry(model) ?? [])),
  };
}

function listedModel({ match, prices }: ModelInfo): object {
  return {
    match: lowered(match),
    prices: Array.isArray(prices) ? prices.map(timed) : [{ price: lean(prices) }],
  };
}

function modelWindow({ match, context_window: contextWindow }: ModelInfo): object | undefined {
  return contextWindow === undefined ? undefined : { match: lowered(match), contextWindow };
}

/** Lowers the case of all texts except regular expressions, which are case-sensitive by themselves. */
function lowered(match: MatchLogic): MatchLogic {
  return JSON.parse(JSON.stringify(match), (key, value: unknown) =>
    typeof value === "string" && key !== "regex" ? value.toLowerCase() : value,
  ) as MatchLogic;
}

function timed({ constraint, prices }: ConditionalPrice): object {
  const price = lean(prices);
  if (constraint === undefined) return { price };
  if (constraint.type === "start_date") return { since: Date.parse(constraint.start_date), price };
  return { hours: [secondOf(constraint.start_time), secondOf(constraint.end_time)], price };
}

/** Returns the second of the day in UTC. */
function secondOf(time: string): number {
  return (Date.parse(`1970-01-02T${time}`) / 1_000) % 86_400;
}

function lean(price: ModelPrice): object {
  return Object.fromEntries(Object.entries(parts).map(([part, key]) => [part, price[key]]));
}

/**
 * Returns a value as source text. Members that are `undefined` are omitted. A text with double quotes is a template, because the
 * bundler would write another kind of text with a backslash before each double quote. Other texts have single quotes.
 */
function literal(value: unknown): string {
  if (typeof value === "string") {
    const quote = value.includes('"') ? "`" : "'";
    return (
      quote +
      value.replaceAll(/[\\`']|\$(?=\{)/gu, (found) =>
        /['`]/u.test(found) && found !== quote ? found : `\\${found}`,
      ) +
      quote
    );
  }
  if (Array.isArray(value)) return `[${value.map(literal).join(", ")}]`;
  if (typeof value !== "object" || value === null) return String(value);
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  return `{ ${members.map(([key, member]) => `${key}: ${literal(member)}`).join(", ")} }`;
}

if (import.meta.main) {
  const folder = new URL("../src/capabilities/prices/", import.meta.url);
  await writeFile(fileURLToPath(new URL("price-list.ts", folder)), await priceList());
  await writeFile(fileURLToPath(new URL("context-windows.ts", folder)), await windowList());
}
