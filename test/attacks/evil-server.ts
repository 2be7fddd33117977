import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { openRuntime } from "../../src/entries/index.ts";
import type { JsonObject, Runtime, Tool } from "../../src/kernel/index.ts";
import { mcpServers, type HttpServerConfig, type McpServersOptions } from "../../src/assembly/mcp.ts";

const open: { close(): Promise<void> | void }[] = [];

/** Closes what a test has opened. */
export async function closeAll(): Promise<void> {
  for (const each of open.splice(0).toReversed()) await each.close();
}

/** Opens a runtime that `closeAll()` closes. */
export async function runtimeHere(): Promise<Runtime> {
  const runtime = await openRuntime();
  open.push(runtime);
  return runtime;
}

export type Listed = JsonObject;
/** Answers a call: with a JSON-RPC result or error, or by writing to the response itself. */
export type Reply = (
  id: number,
  response: ServerResponse,
  request: IncomingMessage,
  body: JsonObject,
) => JsonObject | void;

export const schema = { type: "object", properties: {} };
export const good: Listed = { name: "good", description: "Works", inputSchema: schema };
export const fine = (id: number): JsonObject => ({
  jsonrpc: "2.0",
  id,
  result: { content: [{ type: "text", text: "fine" }] },
});

/** How the server answers. Default: as the protocol says. */
export interface Evil {
  tools?: readonly Listed[];
  call?: Reply;
  list?: Reply;
  initialize?: Reply;
}

/** A server that speaks the protocol by hand, so that it can break each rule of it. */
async function evilServer(evil: Evil): Promise<string> {
  const server = createServer((request, response) => void answer(evil, request, response)).listen(
    0,
    "127.0.0.1",
  );
  await once(server, "listening");
  open.push({ close: () => end(server) });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
}

function end(server: Server): void {
  server.closeAllConnections();
  server.close();
}

async function answer(evil: Evil, request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.method !== "POST") return void response.writeHead(405).end();
  const body = (await json(request)) as JsonObject;
  const { id, method, params } = body as { id?: number; method?: string; params?: { name?: string } };
  if (id === undefined || method === undefined) return void response.writeHead(202).end();
  const result = (value: JsonObject): JsonObject => ({ jsonrpc: "2.0", id, result: value });
  const serverInfo = { name: "evil", version: "1" };
  const replies: Readonly<Record<string, Reply>> = {
    initialize:
      evil.initialize ??
      (() =>
        result({
          protocolVersion: "2025-11-25",
          capabilities: { tools: { listChanged: true } },
          serverInfo,
        })),
    "tools/list": evil.list ?? (() => result({ tools: [good, ...(evil.tools ?? [])] })),
    "tools/call": params?.name === "good" ? () => fine(id) : (evil.call ?? (() => fine(id))),
  };
  const reply = replies[method]?.(id, response, request, body);
  if (reply !== undefined)
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(reply));
}

/** Returns the tools of such a server. */
export async function toolsOf(
  evil: Evil,
  config: Partial<HttpServerConfig> = {},
  options: McpServersOptions = {},
): Promise<readonly Tool<JsonObject>[]> {
  const url = await evilServer(evil);
  const servers = mcpServers({ evil: { url, ...config } }, { backoff: { attempts: 1 }, ...options });
  open.push(servers);
  return servers.tools();
}
