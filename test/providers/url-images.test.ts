import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { AiSdkAdapter } from "../../src/capabilities/models/ai-sdk-adapter.ts";
import { assistantMessage, toolMessage, userMessage, type JsonObject } from "../../src/kernel/index.ts";

const red =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
let server: Server;
let url = "";
let host = "";
let sent: JsonObject[] = [];
let downloads: string[] = [];

beforeAll(async () => {
  server = createServer((request, response) => {
    const path = request.url ?? "";
    if (path === "/v1/chat/completions") {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        sent.push(JSON.parse(Buffer.concat(chunks).toString()) as JsonObject);
        const message = { role: "assistant", content: "A red dot." };
        const usage = { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 };
        const choices = [{ index: 0, message, finish_reason: "stop" }];
        response.setHeader("content-type", "application/json");
        response.end(JSON.stringify({ id: "1", created: 1, model: "m", choices, usage }));
      });
      return;
    }
    downloads.push(path);
    if (path === "/moved.png") response.writeHead(302, { location: "/dot.png" }).end();
    else if (path === "/away.png")
      response.writeHead(302, { location: "https://elsewhere.example/a.png" }).end();
    else if (path === "/page.png") response.writeHead(200, { "content-type": "text/html" }).end("<p>no</p>");
    else if (path === "/gone.png") response.writeHead(404).end();
    else response.writeHead(200, { "content-type": "image/png" }).end(Buffer.from(red, "base64"));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  url = `http://${host}`;
});
beforeEach(() => {
  sent = [];
  downloads = [];
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

function model(allowPrivate: readonly string[] = [host]): AiSdkAdapter {
  const provider = createOpenAICompatible({ name: "local", apiKey: "not-a-key", baseURL: `${url}/v1` });
  return new AiSdkAdapter(provider("some-model"), { allowPrivate });
}

function image(path: string) {
  return { type: "image", mediaType: "image/png", source: { kind: "url", url: `${url}${path}` } } as const;
}

const look = { type: "text", text: "Look." } as const;

test("an openai-compatible server receives the bytes of an image that is given by its URL", async () => {
  const messages = [userMessage([look, image("/dot.png"), image("/moved.png")])];
  await model().generate({ messages });
  expect(JSON.stringify(sent[0]).split(`data:image/png;base64,${red}`)).toHaveLength(3);
  expect(downloads).toEqual(["/dot.png", "/moved.png", "/dot.png"]);
});

test("an image in a tool's result that is given by its URL is downloaded for a server that needs the bytes", async () => {
  const call = { type: "tool_call", callId: "c1", toolName: "camera", input: {} } as const;
  const output = { type: "content", parts: [image("/dot.png")] } as const;
  const result = { type: "tool_result", callId: "c1", toolName: "camera", output, isError: false } as const;
  await model().generate({ messages: [userMessage("Go."), assistantMessage([call]), toolMessage([result])] });
  expect(JSON.stringify(sent[0])).toContain(red);
});

test("an image that is given by its URL is downloaded once for all turns of a conversation", async () => {
  const one = model();
  const question = userMessage([look, image("/dot.png")]);
  await one.generate({ messages: [question] });
  await one.generate({ messages: [question, assistantMessage("A dot."), userMessage("Sure?")] });
  expect(downloads).toEqual(["/dot.png"]);
  expect(JSON.stringify(sent[1])).toContain(red);
});

test.each([
  ["at a private address", "/dot.png", [], /is not a public address/u],
  ["that redirects to another host", "/away.png", undefined, /redirects to another host/u],
  ["that is no image", "/page.png", undefined, /its type is text\/html/u],
  ["that is missing", "/gone.png", undefined, /status 404/u],
] as const)(
  "an image that is given by a URL %s is refused, and nothing is sent",
  async (_name, path, allowPrivate, reason) => {
    const messages = [userMessage([look, image(path)])];
    await expect(model(allowPrivate).generate({ messages })).rejects.toMatchObject({
      code: "unsupported",
      message: expect.stringMatching(reason) as string,
    });
    expect(sent).toEqual([]);
  },
);
