import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import type { JsonValue } from "../../../src/kernel/index.ts";
import { Agent, openRuntime } from "../../../src/entries/index.ts";
import { webSearchTool, type WebSearchToolOptions } from "../../../src/entries/tools.ts";
import { scriptedModel } from "../../../src/testing/index.ts";

interface Asked {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly headers: IncomingMessage["headers"];
  readonly body: JsonValue;
}

interface Answer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: unknown;
}

/** Starts a search service. `null` leaves requests unanswered. */
async function service(answer: Answer | null) {
  const asked: Asked[] = [];
  const server = createServer((request, response) => {
    void (async () => {
      let text = "";
      for await (const piece of request) text += String(piece);
      const { method, url, headers } = request;
      asked.push({ method, url, headers, body: text === "" ? null : (JSON.parse(text) as JsonValue) });
      if (answer === null) return;
      const { status = 200, body } = answer;
      response.writeHead(status, answer.headers).end(typeof body === "string" ? body : JSON.stringify(body));
    })();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { asked, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

/** Lets an agent search once, and returns the result that the model saw. */
async function search(options: WebSearchToolOptions, query = "lamps & colours") {
  const tool = webSearchTool(options);
  const model = scriptedModel([{ toolCalls: [{ name: "web_search", input: { query } }] }, "Done."]);
  await using runtime = await openRuntime();
  const agent = new Agent({ name: "scout", model, tools: [tool] });
  const { toolCalls, status } = await agent.invoke("Search.", { runtime });
  expect(status).toBe("completed");
  return { output: toolCalls[0]?.output, isError: toolCalls[0]?.status === "error" };
}

const list = [
  { title: "Green lamps", url: "https://lamps.example/green", content: "A lamp\n is  green." },
  { title: "", url: "https://lamps.example/blue", content: null },
  { title: "no address" },
];
const shown =
  "1. Green lamps\nhttps://lamps.example/green\nA lamp is green.\n\n2. https://lamps.example/blue\nhttps://lamps.example/blue";

describe("webSearchTool()", () => {
  test.for([
    [
      "brave",
      { web: { results: list.map(({ content, ...each }) => ({ ...each, description: content })) } },
      { method: "GET", url: "/res/v1/web/search?q=lamps%20%26%20colours&count=4", body: null },
      { "x-subscription-token": "k-1" },
    ],
    [
      "tavily",
      { results: list },
      { method: "POST", url: "/search", body: { query: "lamps & colours", max_results: 4 } },
      { authorization: "Bearer k-1" },
    ],
    [
      "exa",
      { results: list.map(({ content, ...each }) => ({ ...each, text: content })) },
      {
        method: "POST",
        url: "/search",
        body: { query: "lamps & colours", numResults: 4, contents: { text: { maxCharacters: 2_000 } } },
      },
      { "x-api-key": "k-1" },
    ],
    [
      "searxng",
      { results: list },
      { method: "GET", url: "/search?q=lamps%20%26%20colours&format=json", body: null },
      {},
    ],
  ] as const)(
    "the provider %s is asked in its form and its results are a list",
    async ([provider, body, request, headers]) => {
      const { asked, url } = await service({ body });
      const result = await search({ provider, url, key: "k-1", maxResults: 4 });
      expect(result).toMatchObject({ output: { type: "text", text: shown }, isError: false });
      expect(asked).toMatchObject([{ ...request, headers }]);
    },
  );

  test("a template asks another service with its own paths and fields", async () => {
    const { asked, url } = await service({
      body: { data: { hits: [{ name: "Lamp", link: "https://l.example", parts: ["one", "two"] }] } },
    });
    const provider = {
      url: `${url}/find?text={query}&token={key}`,
      results: "data.hits",
      fields: { title: "name", url: "link", text: "parts" },
    };
    expect(await search({ provider, key: "a b", maxText: 5 })).toMatchObject({
      output: { text: "1. Lamp\nhttps://l.example\none t" },
    });
    expect(asked[0]?.url).toBe("/find?text=lamps%20%26%20colours&token=a%20b");
  });

  test.for([
    ["a refusal", { status: 401, body: "bad key k-secret" }, /answered with status 401: bad key \[secret\]/u],
    ["an answer that is no JSON", { body: "<html>" }, /cannot be searched: the answer is no JSON/u],
    [
      "an answer without a list",
      { body: { web: { results: "none" } } },
      /the answer has no list web\.results/u,
    ],
    [
      "a redirect",
      { status: 302, headers: { location: "http://127.0.0.1:1/" }, body: "" },
      /cannot be searched: fetch failed: unexpected redirect/u,
    ],
    ["an answer of 3 MB", { body: " ".repeat(3_000_000) }, /the answer has more than 2000000 bytes/u],
  ] as const)("%s is an error that the model sees without the key", async ([, answer, expected]) => {
    const { url } = await service(answer);
    const result = await search({ provider: "brave", url, key: "k-secret" });
    expect(result).toMatchObject({ isError: true, output: { text: expect.stringMatching(expected) } });
    expect(JSON.stringify(result)).not.toContain("k-secret");
  });

  test("a search without results says so, and a service that does not answer times out", async () => {
    const { url } = await service({ body: {} });
    expect(await search({ provider: "searxng", url })).toMatchObject({ output: { text: "No results." } });
    const silent = await service(null);
    const result = await search({ provider: "searxng", url: silent.url, timeoutMs: 50 });
    expect(result).toMatchObject({
      isError: true,
      output: { text: expect.stringContaining("took longer than 50 ms") },
    });
  });

  test.for([
    [
      { provider: "google" },
      /invalid provider "google" of webSearchTool\(\): expected brave, exa, searxng, tavily/u,
    ],
    [{ provider: "searxng" }, /missing url of webSearchTool\(\): the provider searxng needs the address/u],
    [{ provider: "searxng", url: "localhost:8080" }, /invalid url "localhost:8080"/u],
    [{ provider: { url: "https://s.example/find" } }, /has no \{query\}/u],
    [
      { provider: { url: "https://s.example/{query}" }, url: "https://t.example" },
      /a template has an address of its own/u,
    ],
    [
      { provider: { url: "https://s.example/{query}/{key}" } },
      /missing key of webSearchTool\(\): set the option key/u,
    ],
    [{ provider: "brave", key: "", url: "https://b.example" }, /missing key .* BRAVE_API_KEY/u],
    [{ provider: "searxng", url: "http://s.example", count: 3 }, /count/u],
  ])("%j is refused", ([options, expected]) => {
    expect(() => webSearchTool(options as never)).toThrow(expected);
  });
});
