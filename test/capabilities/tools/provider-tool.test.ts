import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogle } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import { describe, expect, test } from "vitest";
import { Agent, openRuntime, priceCatalog, type RuntimeOptions } from "../../../src/entries/index.ts";
import { providerTool, type ProviderToolOptions } from "../../../src/entries/tools.ts";
import { withUseLimit } from "../../../src/capabilities/models/sent-tools.ts";
import type { ExecutionBudget, JsonObject } from "../../../src/kernel/index.ts";

/** A provider of models without a network: keeps the requests and gives the answers in turn. */
function offline(...answers: readonly JsonObject[]) {
  const sent: JsonObject[] = [];
  const fetch = async (_url: unknown, init?: { readonly body?: unknown }): Promise<Response> => {
    sent.push(JSON.parse(String(init?.body)) as JsonObject);
    return Response.json(answers[sent.length - 1] ?? answers.at(-1));
  };
  return { sent, options: { apiKey: "k", fetch: fetch as typeof globalThis.fetch } };
}

const usage = { input_tokens: 1_000, output_tokens: 100 };
const searches = (count: number): JsonObject => ({
  id: "m",
  type: "message",
  role: "assistant",
  model: "claude-sonnet-5",
  stop_reason: "end_turn",
  stop_sequence: null,
  usage: { ...usage, server_tool_use: { web_search_requests: count } },
  content: [
    ...Array.from({ length: count }, (_each, at) => [
      { type: "server_tool_use", id: `s${at}`, name: "web_search", input: { query: "lamp" } },
      {
        type: "web_search_tool_result",
        tool_use_id: `s${at}`,
        content: [
          {
            type: "web_search_result",
            url: "https://l.example",
            title: "Lamp",
            encrypted_content: "e",
            page_age: null,
          },
        ],
      },
    ]).flat(),
    { type: "text", text: "Green." },
  ],
});

/** One dollar for a million input tokens, ten for a million output tokens. */
const prices = priceCatalog({
  overrides: [
    { provider: "anthropic", model: "claude-sonnet-5", usdPerMillion: { input: 1, output: 10 } },
    { provider: "openai", model: "gpt-5", usdPerMillion: { input: 1, output: 10 } },
  ],
});

/** Runs an agent with the web search of Anthropic. */
async function searching(
  count: number,
  tool: ProviderToolOptions,
  budget: Partial<ExecutionBudget> = {},
  runtimeOptions: Partial<RuntimeOptions> = {},
) {
  const { sent, options } = offline(searches(count));
  const anthropic = createAnthropic(options);
  const search = providerTool(anthropic.tools.webSearch_20250305({ maxUses: 3 }), tool);
  await using runtime = await openRuntime({ prices, ...runtimeOptions });
  const agent = new Agent({ name: "scout", model: anthropic("claude-sonnet-5"), tools: [search] });
  const settings = { maxOutputTokens: 1_000 };
  const result = await agent.invoke("Search.", { runtime, budget, settings });
  const types: string[] = [];
  for await (const { type } of (await runtime.find(result.runId))?.events({ follow: false }) ?? [])
    types.push(type);
  return { sent, result, types };
}

describe("providerTool()", () => {
  test("the web search of Anthropic is sent with its limit, and its calls and results are part of the message", async () => {
    const { sent, result } = await searching(2, { usdPerUse: 0.01, maxUses: 2 });
    expect(sent).toMatchObject([
      { tools: [{ type: "web_search_20250305", name: "web_search", max_uses: 2 }] },
    ]);
    expect(result).toMatchObject({ status: "completed", output: "Green.", toolCalls: [] });
    const parts = result.messages.flatMap((message) => (message.role === "assistant" ? message.content : []));
    const isSource = (part: (typeof parts)[number]): boolean =>
      part.type === "opaque" && part.value["type"] === "source";
    expect(parts.filter((part) => !isSource(part))).toMatchObject([
      { type: "opaque", value: { type: "tool-call", toolName: "web_search", providerExecuted: true } },
      { type: "opaque", value: { type: "tool-result", toolName: "web_search" } },
      { type: "opaque", value: { type: "tool-call" } },
      { type: "opaque", value: { type: "tool-result" } },
      { type: "text", text: "Green." },
    ]);
  });

  test("B3: the cost of a call is that of its tokens and of the uses that the provider made", async () => {
    const { result } = await searching(2, { usdPerUse: 0.01 });
    expect(result.costUsd).toBeCloseTo(0.001 + 0.001 + 2 * 0.01);
  });

  test("B1: a reservation contains all uses, and the input of each result at most once for each use", async () => {
    // Three uses cost 0.03; the request and three more readings of it with results of 10,000 tokens are below 0.09.
    const tool = { usdPerUse: 0.01, maxTokensPerUse: 10_000 };
    expect((await searching(1, tool, { maxCostUsd: 0.13 })).result.status).toBe("completed");
    const small = await searching(1, tool, { maxCostUsd: 0.1 });
    expect(small.result).toMatchObject({ status: "budget_exhausted" });
    expect(small.sent).toEqual([]);
    // Without a bound of the results, each use may fill the context window of a million tokens.
    const wide = await searching(1, { usdPerUse: 0.01 }, { maxCostUsd: 3 });
    expect(wide.result.status).toBe("budget_exhausted");
    expect((await searching(1, { usdPerUse: 0.01 }, { maxCostUsd: 3.1 })).result.status).toBe("completed");
  });

  test("B1: more uses than the limit are an overrun, which is recorded and charged", async () => {
    const tool = { usdPerUse: 0.05, maxTokensPerUse: 1_000 };
    const { result, types } = await searching(9, tool, { maxCostUsd: 0.2 });
    expect(types).toContain("budget_overrun");
    expect(result.costUsd).toBeCloseTo(0.002 + 9 * 0.05);
  });

  test("B1: a tool without a limit is refused under a budget and a cap, and allowed without", async () => {
    const run = async (budget: Partial<ExecutionBudget>, caps?: RuntimeOptions["caps"]) => {
      const { sent, options } = offline(searches(0));
      const anthropic = createAnthropic(options);
      const code = providerTool(anthropic.tools.codeExecution_20250825({}), { usdPerUse: 0 });
      await using runtime = await openRuntime({ prices, ...(caps !== undefined && { caps }) });
      const agent = new Agent({ name: "coder", model: anthropic("claude-sonnet-5"), tools: [code] });
      const { status, error } = await agent.invoke("Compute.", { runtime, budget });
      return { status, message: error?.message, requests: sent.length };
    };
    expect(await run({})).toMatchObject({ status: "completed", requests: 1 });
    for (const budget of [{ maxCostUsd: 100 }, { maxTokens: 10_000_000 }])
      expect(await run(budget)).toMatchObject({
        status: "failed",
        requests: 0,
        message: expect.stringMatching(
          /^tool code_execution has no limit of uses in a call of anthropic\/claude-sonnet-5/u,
        ),
      });
    expect(await run({}, { perDayUsd: 100 })).toMatchObject({ status: "failed", requests: 0 });
  });

  test("OpenAI receives the limit of all its tools together, or the lower one of the caller", async () => {
    const answer = {
      id: "r",
      created_at: 1,
      model: "gpt-5",
      output: [
        { type: "web_search_call", id: "w", status: "completed", action: { type: "search", query: "lamp" } },
        {
          type: "message",
          role: "assistant",
          id: "m",
          content: [{ type: "output_text", text: "Green.", annotations: [] }],
        },
      ],
      usage: { input_tokens: 1_000, output_tokens: 100 },
    };
    const run = async () => {
      const { sent, options } = offline(answer);
      const openai = createOpenAI(options);
      const tools = [
        providerTool(openai.tools.webSearch({}), { usdPerUse: 0.01, maxUses: 2, maxTokensPerUse: 1_000 }),
        providerTool(openai.tools.fileSearch({ vectorStoreIds: ["v"] }), {
          usdPerUse: 0.0025,
          maxUses: 3,
          maxTokensPerUse: 1_000,
        }),
      ];
      await using runtime = await openRuntime({ prices });
      const model = openai("gpt-5");
      const agent = new Agent({ name: "scout", model, tools });
      const settings = { maxOutputTokens: 1_000 };
      const result = await agent.invoke("Search.", { runtime, budget: { maxCostUsd: 0.2 }, settings });
      return { sent, result };
    };
    const { sent, result } = await run();
    expect(result.error?.message).toBeUndefined();
    expect(sent).toMatchObject([
      { max_tool_calls: 5, tools: [{ type: "web_search" }, { type: "file_search" }] },
    ]);
    expect(result.costUsd).toBeCloseTo(0.001 + 0.001 + 0.01);
    const web = { id: "openai.web_search", args: {}, maxUses: 2, usdPerUse: 0.01, maxTokensPerUse: null };
    const specs = [{ name: "web_search", description: "", inputSchema: {}, provider: web }];
    expect(withUseLimit({ openai: { maxToolCalls: 1, store: false } }, specs)).toEqual({
      openai: { maxToolCalls: 1, store: false },
    });
    expect(withUseLimit({ openai: { maxToolCalls: 9 } }, specs)).toEqual({ openai: { maxToolCalls: 2 } });
  });

  test("a model of another provider refuses the tool and names its provider", async () => {
    const search = providerTool(createOpenAI({ apiKey: "k" }).tools.webSearch({}), { usdPerUse: 0.01 });
    const { sent, options } = offline(searches(0));
    await using runtime = await openRuntime({ prices });
    const model = createAnthropic(options)("claude-sonnet-5");
    const { error } = await new Agent({ name: "scout", model, tools: [search] }).invoke("Go.", { runtime });
    expect(error?.message).toContain(
      "tool web_search is executed by openai, and anthropic/claude-sonnet-5 is a model of another",
    );
    expect(sent).toEqual([]);
  });

  test("a tool without a limit of its provider cannot have maxUses, and has a limit of uses only if it states one", () => {
    const { tools } = createAnthropic({ apiKey: "k" });
    expect(providerTool(tools.webSearch_20250305({}), { usdPerUse: 0.01 }).provider?.maxUses).toBeNull();
    expect(providerTool(tools.webFetch_20250910({ maxUses: 2 }), { usdPerUse: 0 })).toMatchObject({
      name: "web_fetch",
      provider: { id: "anthropic.web_fetch_20250910", maxUses: 2, args: { maxUses: 2 } },
    });
    const google = createGoogle({ apiKey: "k" });
    expect(() => providerTool(google.tools.googleSearch({}), { usdPerUse: 0.014, maxUses: 3 })).toThrow(
      "invalid maxUses of providerTool() for google.google_search: the provider cannot limit the uses of this tool",
    );
  });

  test.for([
    [{ name: "search", execute: () => 1 }, { usdPerUse: 0 }, /expected a tool of a provider of the AI SDK/u],
    [
      { type: "provider", id: "x.y", args: {}, isProviderExecuted: false },
      { usdPerUse: 0 },
      /is executed by your program/u,
    ],
    [{ type: "provider", id: "x.y", args: {} }, {}, /missing usdPerUse/u],
    [{ type: "provider", id: "x.y", args: {} }, { usdPerUse: -1 }, /usdPerUse -1/u],
    [{ type: "provider", id: "x.y", args: { f: () => 1 } }, { usdPerUse: 0 }, /the arguments of x\.y/u],
    [
      { type: "provider", id: "anthropic.web_search_20250305", args: {} },
      { usdPerUse: 0, maxUses: 0 },
      /maxUses 0/u,
    ],
    [{ type: "provider", id: "x.y", args: {} }, { usdPerUse: 0, price: 1 }, /price/u],
  ])("%j with %j is refused", ([source, options, expected]) => {
    expect(() => providerTool(source as never, options as never)).toThrow(expected);
  });
});
