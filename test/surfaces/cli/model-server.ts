import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { JsonObject } from "../../../src/kernel/index.ts";
import { reeve } from "./reeve-process.ts";

type Answer =
  | { readonly text: string; readonly cut?: boolean }
  | { readonly tool: string; readonly input: JsonObject }
  | { readonly error: number };

/** Returns the answer to the n-th request, at once or later. `undefined` leaves the request unanswered. */
export type Script = (request: number, body: JsonObject) => Answer | undefined | Promise<Answer | undefined>;

interface Setup {
  readonly folder: string;
  readonly url: string;
  readonly requests: JsonObject[];
  /** Resolves once this number of requests has arrived. */
  readonly asked: (count: number) => Promise<void>;
  readonly run: (...args: string[]) => ReturnType<typeof reeve>;
}

/** Starts an HTTP server that speaks the chat protocol, and creates a working folder. */
export async function setUp(script: Script, inputTokens = 1_000): Promise<Setup> {
  const folder = await mkdtemp(join(tmpdir(), "reeve-run-"));
  const requests: JsonObject[] = [];
  const waiting: { readonly count: number; readonly resolve: () => void }[] = [];
  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => response.destroy(error as Error));
  });
  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let text = "";
    for await (const piece of request) text += String(piece);
    const body = JSON.parse(text) as JsonObject;
    requests.push(body);
    for (const { count, resolve } of waiting) if (requests.length >= count) resolve();
    const said = await script(requests.length, body);
    if (said === undefined) return;
    if ("error" in said) response.writeHead(said.error, { "content-type": "application/json" }).end("{}");
    else stream(response, said, { inputTokens, isWhole: body["stream"] !== true });
  }
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(async () => {
    server.closeAllConnections();
    server.close();
    await rm(folder, { recursive: true, force: true, maxRetries: 10 });
  });
  await writeFile(join(folder, "notes.txt"), "The lamp is green.\n");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  const asked = (count: number): Promise<void> =>
    new Promise((resolve) => {
      if (requests.length >= count) resolve();
      else waiting.push({ count, resolve });
    });
  const run = (...args: string[]): ReturnType<typeof reeve> =>
    reeve(["run", ...args], { cwd: folder, env: env(url) });
  return { folder, url, requests, asked, run };
}

export function env(url: string): Record<string, string> {
  return {
    REEVE_MODEL: "openai-compatible/gpt-4o",
    OPENAI_COMPATIBLE_BASE_URL: url,
    OPENAI_COMPATIBLE_API_KEY: "k",
  };
}

/** Sends the answer in chunks, or whole to a caller that does not stream. */
function stream(
  response: ServerResponse,
  said: Exclude<Answer, { error: number }>,
  { inputTokens, isWhole }: { readonly inputTokens: number; readonly isWhole: boolean },
): void {
  const usage = { prompt_tokens: inputTokens, completion_tokens: 100, total_tokens: inputTokens + 100 };
  const message =
    "text" in said
      ? { role: "assistant", content: said.text }
      : {
          role: "assistant",
          tool_calls: [
            {
              index: 0,
              id: "c1",
              type: "function",
              function: { name: said.tool, arguments: JSON.stringify(said.input) },
            },
          ],
        };
  const common = { id: "x", created: 1, model: "gpt-4o" };
  const reason = "tool" in said ? "tool_calls" : said.cut === true ? "length" : "stop";
  if (isWhole) {
    const choices = [{ index: 0, message, finish_reason: reason }];
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify({ ...common, object: "chat.completion", choices, usage }));
    return;
  }
  const chunk = { ...common, object: "chat.completion.chunk" };
  const chunks = [
    { ...chunk, choices: [{ index: 0, delta: message, finish_reason: null }] },
    { ...chunk, choices: [{ index: 0, delta: {}, finish_reason: reason }] },
    { ...chunk, choices: [], usage },
  ];
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const each of chunks) response.write(`data: ${JSON.stringify(each)}\n\n`);
  response.end("data: [DONE]\n\n");
}
