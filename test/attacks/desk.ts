import { once } from "node:events";
import { createServer } from "node:http";
import { connect, type AddressInfo, type Socket } from "node:net";
import { openRuntime, tool } from "../../src/entries/index.ts";
import type { Runtime } from "../../src/kernel/index.ts";
import { mcpServer, type McpExport } from "../../src/assembly/mcp.ts";

/** A server with a tool that counts its calls. `ada` and `eve` may use it; everyone else is refused. */
let server: McpExport;
let runtime: Runtime;
let port = 0;
/** Arguments of the calls that were executed. */
export const calls: unknown[] = [];
const http = createServer((request, response) => server.handle(request, response));

/** Starts the server. */
export async function openDesk(): Promise<void> {
  runtime = await openRuntime();
  const count = tool({
    name: "count",
    description: "Counts",
    inputSchema: {
      type: "object",
      properties: { by: { type: "integer" } },
      additionalProperties: false,
    } as const,
    execute: (input) => {
      calls.push(input);
      return `call ${calls.length}`;
    },
  });
  const pay = tool({
    name: "pay",
    description: "Pays",
    inputSchema: { type: "object", properties: {} } as const,
    needsApproval: true,
    execute: (input) => {
      calls.push(input);
      return "paid";
    },
  });
  server = await mcpServer({
    name: "desk",
    runtime,
    tools: [count, pay],
    http: {
      maxSessionsPerCaller: 20,
      authenticate: async (request) => {
        const token = request.headers.get("authorization")?.replace("Bearer ", "");
        if (token !== "ada" && token !== "eve") return new Response("who?", { status: 401 });
        return { token, clientId: token, scopes: [] };
      },
    },
  });
  http.listen(0, "127.0.0.1");
  await once(http, "listening");
  ({ port } = http.address() as AddressInfo);
}

/** Stops the server. */
export async function closeDesk(): Promise<void> {
  http.closeAllConnections();
  http.close();
  await server.close();
  await runtime.close();
}

/** Opens a connection to the server. */
export function connection(): Socket {
  return connect(port, "127.0.0.1").on("error", () => undefined);
}

export interface Raw {
  readonly line?: string;
  readonly host?: string | null;
  readonly headers?: readonly string[];
  readonly body?: string;
}

/** Sends a request byte by byte exactly as it is given here, and returns status and body. */
export async function raw({
  line = "POST /mcp HTTP/1.1",
  host = `127.0.0.1:${port}`,
  headers = [],
  body = "",
}: Raw) {
  const socket = connection();
  // A request that is not answered has the status 0.
  socket.setTimeout(5_000, () => socket.destroy());
  const length = headers.some((header) => /^(?:content-length|transfer-encoding)/iu.test(header))
    ? []
    : [`content-length: ${Buffer.byteLength(body)}`];
  const given = [...(host === null ? [] : [`host: ${host}`]), ...headers, ...length, "connection: close"];
  socket.write([line, ...given, "", body].join("\r\n"));
  const answer = await wholeAnswer(socket);
  const [, status = "0"] = /^HTTP\/1\.1 (\d{3})/u.exec(answer) ?? [];
  const [, session = ""] = /^mcp-session-id: (\S+)/imu.exec(answer) ?? [];
  return { status: Number(status), answer, session };
}

/** Reads one response. The connection stays open after it if the server keeps it open. */
async function wholeAnswer(socket: Socket): Promise<string> {
  let answer = "";
  try {
    for await (const chunk of socket as AsyncIterable<Buffer>) {
      answer += chunk.toString("latin1");
      if (isWhole(answer)) break;
    }
  } catch {
    // A connection that breaks ends the answer as well.
  }
  socket.destroy();
  return answer;
}

function isWhole(answer: string): boolean {
  const end = answer.indexOf("\r\n\r\n");
  if (end === -1) return false;
  const [, length] = /^content-length: (\d+)/imu.exec(answer.slice(0, end)) ?? [];
  return length === undefined ? answer.endsWith("0\r\n\r\n") : answer.length >= end + 4 + Number(length);
}

export const json = ["content-type: application/json", "accept: application/json, text/event-stream"];
export const ada = "authorization: Bearer ada";
export const eve = "authorization: Bearer eve";

export function rpc(method: string, params: unknown = {}, id: unknown = 1): string {
  return JSON.stringify({ jsonrpc: "2.0", id, method, params });
}

export const hello = rpc("initialize", {
  protocolVersion: "2025-11-25",
  capabilities: {},
  clientInfo: { name: "host", version: "1" },
});

export async function begin(who = ada): Promise<string> {
  const { session, status } = await raw({ headers: [...json, who], body: hello });
  if (status !== 200) throw new Error(`the server answered initialize with ${status}`);
  return session;
}

export async function callIn(session: string, who: string, params: unknown) {
  return raw({
    headers: [...json, who, `mcp-session-id: ${session}`],
    body: rpc("tools/call", params),
  });
}

/** Whether the server still serves a well-behaved client. */
export async function isServing(): Promise<boolean> {
  const { answer } = await callIn(await begin(), ada, { name: "count", arguments: {} });
  return answer.includes("call ");
}

/** Sends an attack. Returns its status, the calls that it executed, and whether the server still serves others. */
export async function attacked(attack: Raw) {
  calls.length = 0;
  const { status } = await raw(attack);
  const executed = calls.length;
  return { status, executed, isServing: await isServing() };
}
