import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { lackOfModel, namedModel, toModel } from "../../../src/capabilities/index.ts";
import { repository, runNode } from "../../gates/run-node.ts";
import { classifyError, userMessage, type JsonObject } from "../../../src/kernel/index.ts";

const hello = { messages: [userMessage("hello")] };
const seen: { path: string; key: string; body: JsonObject }[] = [];
let server: Server;
let url = "";

beforeAll(async () => {
  server = createServer((request, response) => void answer(request, response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  let text = "";
  for await (const piece of request) text += String(piece);
  const { authorization, "x-api-key": key } = request.headers;
  seen.push({
    path: request.url ?? "",
    key: String(authorization ?? key ?? ""),
    body: JSON.parse(text) as JsonObject,
  });
  const choices = [{ index: 0, message: { role: "assistant", content: "Hello." }, finish_reason: "stop" }];
  const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5, cost: 0.5 };
  response.writeHead(200, { "content-type": "application/json" });
  response.end(JSON.stringify({ id: "1", created: 1, model: "m", choices, usage }));
}

describe("namedModel()", () => {
  test("namedModel() knows the provider and the model id before the package is loaded", () => {
    expect(toModel("anthropic/claude-sonnet-5")).toMatchObject({
      provider: "anthropic",
      modelId: "claude-sonnet-5",
    });
    expect(toModel("openrouter/anthropic/claude-sonnet-5")).toMatchObject({
      provider: "openrouter",
      modelId: "anthropic/claude-sonnet-5",
    });
  });

  test("namedModel() names the missing variable in a fault of kind auth, which is not retried", async () => {
    const fault: unknown = await namedModel("anthropic/claude-sonnet-5", { env: {} })
      .generate(hello)
      .catch((error: unknown) => error);
    expect(fault).toMatchObject({
      code: "model_auth",
      message: "ANTHROPIC_API_KEY is not set: set it to use anthropic/claude-sonnet-5",
    });
    expect(classifyError(fault)).toMatchObject({ kind: "auth", retryable: false });
    await expect(namedModel("google/gemini-3-pro", { env: {} }).generate(hello)).rejects.toThrow(
      "GOOGLE_GENERATIVE_AI_API_KEY or GEMINI_API_KEY is not set",
    );
  });

  test("namedModel() names the package that is missing", async () => {
    const model = namedModel("groq/llama-4", { env: { GROQ_API_KEY: "k" } });
    await expect(model.generate(hello)).rejects.toMatchObject({
      code: "dependency_missing",
      message:
        "groq/llama-4 needs the package @ai-sdk/groq: npm install @ai-sdk/groq where Reeve is installed",
    });
    await expect(model.stream(hello)[Symbol.asyncIterator]().next()).rejects.toMatchObject({
      code: "dependency_missing",
    });
  });

  test("a named model reports what is missing for a call without making the call", () => {
    const lack = (name: string, env = {}): unknown => lackOfModel(namedModel(name, { env }))?.code;
    expect([
      lack("anthropic/claude-sonnet-5"),
      lack("anthropic/claude-sonnet-5", { ANTHROPIC_API_KEY: "k" }),
      lack("groq/llama-4", { GROQ_API_KEY: "k" }),
      lack("ollama/llama-4"),
    ]).toEqual(["model_auth", undefined, "dependency_missing", undefined]);
  });

  test("namedModel() does not load a package of the working folder that NODE_PATH names", async () => {
    const folder = await mkdtemp(join(tmpdir(), "reeve-node-path-"));
    onTestFinished(() => rm(folder, { recursive: true }));
    const evil = join(folder, "node_modules/@ai-sdk/groq");
    await mkdir(evil, { recursive: true });
    await writeFile(join(evil, "index.js"), 'console.log("evil");');
    const program = `
      import Module from "node:module";
      import { namedModel } from ${JSON.stringify(join(repository, "src/capabilities/index.ts"))};
      process.env.NODE_PATH = "./node_modules";
      Module._initPaths();
      const model = namedModel("groq/x", { env: { GROQ_API_KEY: "k" } });
      try { for await (const part of model.stream({ messages: [] })) console.log(part); }
      catch (error) { console.log(error.code); }`;
    const { stdout, stderr } = await runNode(["--input-type=module", "-e", program], folder);
    expect([stdout, stderr]).toEqual(["dependency_missing\n", ""]);
  });

  test("namedModel() finds an OpenAI-compatible server by its variable, and needs no key", async () => {
    const { message, usage } = await namedModel("ollama/qwen3:8b", {
      env: { OLLAMA_BASE_URL: url },
    }).generate(hello);
    expect(message.content).toEqual([{ type: "text", text: "Hello." }]);
    expect(usage).toMatchObject({ inputTokens: 3, outputTokens: 2 });
    expect(seen.at(-1)).toMatchObject({ path: "/v1/chat/completions", key: "", body: { model: "qwen3:8b" } });
  });

  test("namedModel() accepts any base URL under any provider name", async () => {
    const model = namedModel("home/model", {
      baseUrl: url,
      apiKey: "k",
      headers: { "x-home": "1" },
      env: {},
    });
    expect(model.provider).toBe("home");
    await model.generate(hello);
    expect(seen.at(-1)).toMatchObject({ key: "Bearer k", body: { model: "model" } });
  });

  test("namedModel() reports the cost that OpenRouter charged", async () => {
    const env = { OPENROUTER_API_KEY: "k", OPENROUTER_BASE_URL: url };
    const { usage } = await namedModel("openrouter/acme/model", { env }).generate(hello);
    expect(usage.costUsd).toBe(0.5);
    expect(seen.at(-1)).toMatchObject({ key: "Bearer k", body: { model: "acme/model" } });
  });

  test("namedModel() names the base URL that is missing", async () => {
    await expect(namedModel("openai-compatible/m", { env: {} }).generate(hello)).rejects.toThrow(
      "set OPENAI_COMPATIBLE_BASE_URL",
    );
  });

  test("namedModel() tries again after a failure, because the missing variable may have been set", async () => {
    const env: Record<string, string> = {};
    const model = namedModel("openai-compatible/m", { env });
    await expect(model.generate(hello)).rejects.toThrow("OPENAI_COMPATIBLE_BASE_URL");
    env["OPENAI_COMPATIBLE_BASE_URL"] = url;
    expect((await model.generate(hello)).stopReason).toBe("stop");
  });

  test("namedModel() sends requests of a native provider to the given base URL", async () => {
    const model = namedModel("openai/gpt-5", { baseUrl: url, apiKey: "k", env: {} });
    await expect(model.generate(hello)).rejects.toThrow("Invalid JSON response");
    expect(seen.at(-1)).toMatchObject({ path: "/v1/responses", key: "Bearer k" });
  });
});
