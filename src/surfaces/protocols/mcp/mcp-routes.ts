import type { Runtime } from "../../../kernel/index.ts";
import type { ErrorFormat } from "../../http/problem.ts";
import { route, type Route } from "../../http/route.ts";
import { choice, integer, named, object, optional, schemaOf, text } from "../../http/schema/schema.ts";
import { McpMount, type McpMountOptions } from "./mcp-mount.ts";

const errorSchema = named(
  "McpError",
  object({
    jsonrpc: choice(["2.0"]),
    error: object({
      code: integer(),
      message: text(),
      data: optional(object({ code: text({ description: "The fault code." }) })),
    }),
    id: schemaOf<string | number | null>({ type: ["string", "integer", "null"] }),
  }),
);

/** The error code that the MCP package uses for transport errors. */
const transportError = -32_001;

/** Writes errors as JSON-RPC does. */
const mcpErrors: ErrorFormat = Object.freeze({
  contentType: "application/json",
  schema: errorSchema,
  body: ({ detail, code }) => ({
    jsonrpc: "2.0",
    error: { code: transportError, message: detail, data: { code } },
    id: null,
  }),
} satisfies ErrorFormat);

const stream = {
  status: 200,
  description: "Messages of the server as server-sent events.",
  schema: text(),
  contentType: "text/event-stream",
};
const message = schemaOf<unknown>({
  anyOf: [
    { type: "object", properties: { jsonrpc: { const: "2.0" } }, required: ["jsonrpc"] },
    { type: "array", items: { type: "object" } },
  ],
});
const answer = { status: 200, description: "The answer.", schema: message };
const accepted = { status: 202, description: "A notification or an answer of the client was accepted." };
const closed = { status: 200, description: "The MCP session is closed." };

/**
 * Returns the routes of the MCP server at `/mcp`, which offers agents and tools as MCP tools, over streamable HTTP.
 */
export function mcpRoutes(runtime: Runtime, options: McpMountOptions): readonly Route[] {
  const mount = new McpMount(runtime, options);
  const of = { path: "/mcp", scope: "run", errors: mcpErrors, handle: mount.answer } as const;
  return [
    route({
      ...of,
      id: "mcp.send",
      method: "POST",
      summary: "Send a message of MCP to the server. A call of a tool is a run of the caller.",
      carriesInput: true,
      responses: [answer, stream, accepted],
    }),
    route({
      ...of,
      id: "mcp.listen",
      method: "GET",
      summary: "Receive messages of the server in an MCP session, or resume a stream with `Last-Event-ID`.",
      responses: [stream],
    }),
    route({
      ...of,
      id: "mcp.close",
      method: "DELETE",
      summary: "Close an MCP session. Runs are not affected.",
      responses: [closed],
    }),
  ];
}
