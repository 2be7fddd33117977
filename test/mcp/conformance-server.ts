import { ResourceTemplate, type McpServer } from "@modelcontextprotocol/server";
import { z } from "zod";
import { tool } from "../../src/entries/index.ts";
import type {
  FilePart,
  ImagePart,
  JsonObject,
  Tool,
  ToolContext,
  ToolResult,
} from "../../src/kernel/index.ts";
import { mcpServer, type McpExport } from "../../src/assembly/mcp.ts";

/** A PNG of one red pixel. */
const pixel =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/** A WAV file without samples. */
const silence = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";

const nothing = { type: "object", properties: {} } as const;

const image: ImagePart = { type: "image", mediaType: "image/png", source: { kind: "base64", data: pixel } };

function file(filename: string, mediaType: string, content: string): FilePart {
  const data = Buffer.from(content).toString("base64");
  return { type: "file", mediaType, filename, source: { kind: "base64", data } };
}

function parts(...list: (ToolResult["output"] & { type: "content" })["parts"]): ToolResult {
  return { output: { type: "content", parts: list }, isError: false };
}

/** The tools that the suite calls by name, created with `tool()`. */
const tools: readonly Tool[] = [
  tool({
    name: "test_simple_text",
    description: "Returns one sentence",
    inputSchema: nothing,
    execute: () => "The requested sentence.",
  }),
  tool({
    name: "test_image_content",
    description: "Returns an image of one pixel",
    inputSchema: nothing,
    execute: () => parts(image),
  }),
  tool({
    name: "test_audio_content",
    description: "Plays nothing",
    inputSchema: nothing,
    execute: () => parts({ type: "file", mediaType: "audio/wav", source: { kind: "base64", data: silence } }),
  }),
  tool({
    name: "test_embedded_resource",
    description: "Returns a text with its address",
    inputSchema: nothing,
    execute: () => parts(file("test://embedded-resource", "text/plain", "What is at that address.")),
  }),
  tool({
    name: "test_multiple_content_types",
    description: "Returns one part of each kind",
    inputSchema: nothing,
    execute: () =>
      parts(
        { type: "text", text: "One of each:" },
        image,
        file("test://mixed-content-resource", "application/json", JSON.stringify({ kind: "mixed" })),
      ),
  }),
  tool({
    name: "test_tool_with_logging",
    description: "Reports progress as texts",
    inputSchema: nothing,
    execute: async (_input, context) => {
      await showing(context, ["started", "running", "finished"]);
      return "done";
    },
  }),
  tool({
    name: "test_tool_with_progress",
    description: "Reports progress as numbers",
    inputSchema: nothing,
    execute: async (_input, context) => {
      const steps = [0, 50, 100].map((progress) => ({ progress, total: 100, message: `${progress} of 100` }));
      await showing(context, steps);
      return "done";
    },
  }),
  tool({
    name: "test_error_handling",
    description: "Fails",
    inputSchema: nothing,
    execute: () => {
      throw new Error("the requested failure");
    },
  }),
  tool({
    name: "test_elicitation",
    description: "Asks the user a question",
    inputSchema: {
      type: "object",
      properties: { message: { type: "string" } },
      required: ["message"],
    } as const,
    execute: ({ message }, context) =>
      ask(context, message, {
        properties: { response: { type: "string", description: "The answer of the user" } },
        required: ["response"],
      }),
  }),
  tool({
    name: "test_elicitation_sep1034_defaults",
    description: "Asks the user with default values",
    inputSchema: nothing,
    execute: (_input, context) =>
      ask(context, "Is this right?", {
        properties: {
          name: { type: "string", default: "John Doe" },
          age: { type: "integer", default: 30 },
          score: { type: "number", default: 95.5 },
          status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
          verified: { type: "boolean", default: true },
        },
      }),
  }),
  tool({
    name: "test_elicitation_sep1330_enums",
    description: "Asks the user for choices of every kind",
    inputSchema: nothing,
    execute: (_input, context) => ask(context, "Choose.", { properties: choices }),
  }),
  tool({
    name: "json_schema_2020_12_tool",
    description: "Accepts arguments of a JSON Schema 2020-12",
    inputSchema: {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      type: "object",
      $defs: {
        address: { type: "object", properties: { street: { type: "string" }, city: { type: "string" } } },
      },
      properties: { name: { type: "string" }, address: { $ref: "#/$defs/address" } },
      additionalProperties: false,
    } as const,
    execute: (input) => JSON.stringify(input),
  }),
];

const titles = [1, 2, 3].map((at) => ({ const: `value${at}`, title: `The ${at}. choice` }));
const plain = ["option1", "option2", "option3"];
const choices: JsonObject = {
  untitledSingle: { type: "string", enum: plain },
  titledSingle: { type: "string", oneOf: titles },
  legacyEnum: { type: "string", enum: ["opt1", "opt2", "opt3"], enumNames: ["One", "Two", "Three"] },
  untitledMulti: { type: "array", minItems: 1, maxItems: 3, items: { type: "string", enum: plain } },
  titledMulti: { type: "array", minItems: 1, maxItems: 3, items: { anyOf: titles } },
};

/** Sends updates one after the other. Waits for each to be delivered, because updates are not stored. */
async function showing(
  { progress, ctx }: ToolContext,
  updates: readonly (string | JsonObject)[],
): Promise<void> {
  for (const update of updates) {
    progress(update);
    await ctx.sleepUntil((await ctx.now()) + 20);
  }
}

async function ask({ ctx, callId }: ToolContext, message: string, schema: JsonObject): Promise<string> {
  const input = { message, requestedSchema: { type: "object", ...schema } };
  const decision = await ctx.approval({
    kind: "elicitation",
    toolName: "ask",
    callId,
    input,
    reason: "the tool asks",
  });
  return JSON.stringify(decision);
}

/** Adds the features that the suite needs beyond tools, with the API of the MCP package. */
function extend(server: McpServer): void {
  const resources = { subscribe: true, listChanged: true };
  server.server.registerCapabilities({ resources, prompts: { listChanged: true }, completions: {} });
  text(server, "static-text", "Text that does not change.");
  text(server, "watched-resource", "Text that may change.");
  server.registerResource("static-binary", "test://static-binary", { mimeType: "image/png" }, ({ href }) => ({
    contents: [{ uri: href, mimeType: "image/png", blob: pixel }],
  }));
  const template = new ResourceTemplate("test://template/{id}/data", { list: undefined });
  server.registerResource("template", template, { mimeType: "application/json" }, ({ href }, { id }) => ({
    contents: [
      { uri: href, mimeType: "application/json", text: JSON.stringify({ id, data: `of ${String(id)}` }) },
    ],
  }));
  server.server.setRequestHandler("resources/subscribe", () => ({}));
  server.server.setRequestHandler("resources/unsubscribe", () => ({}));
  server.server.setRequestHandler("completion/complete", () => ({
    completion: { values: [], hasMore: false },
  }));
  prompts(server);
  server.registerTool(
    "test_sampling",
    { description: "Asks the model of the host", inputSchema: z.object({ prompt: z.string() }) },
    async ({ prompt }, { mcpReq }) => {
      const said = { role: "user", content: { type: "text", text: prompt } } as const;
      // Without the id, the request is lost if the host has not opened its listening stream yet.
      const { content } = await mcpReq.requestSampling(
        { messages: [said], maxTokens: 100 },
        { relatedRequestId: mcpReq.id },
      );
      return { content: [{ type: "text", text: JSON.stringify(content) }] };
    },
  );
  server.registerTool(
    "test_reconnection",
    { description: "Closes its stream before it answers", inputSchema: z.object({}) },
    async (_input, { http }) => {
      http?.closeSSE?.();
      return { content: [{ type: "text", text: "answered on the next stream" }] };
    },
  );
}

function text(server: McpServer, name: string, content: string): void {
  server.registerResource(name, `test://${name}`, { mimeType: "text/plain" }, ({ href }) => ({
    contents: [{ uri: href, mimeType: "text/plain", text: content }],
  }));
}

function prompts(server: McpServer): void {
  const said = (value: string) => ({ role: "user", content: { type: "text", text: value } }) as const;
  server.registerPrompt("test_simple_prompt", { description: "Plain" }, () => ({
    messages: [said("Begin.")],
  }));
  server.registerPrompt(
    "test_prompt_with_arguments",
    { description: "Filled in", argsSchema: z.object({ arg1: z.string(), arg2: z.string() }) },
    ({ arg1, arg2 }) => ({ messages: [said(`Between ${arg1} and ${arg2}.`)] }),
  );
  server.registerPrompt(
    "test_prompt_with_embedded_resource",
    { description: "With a text at an address", argsSchema: z.object({ resourceUri: z.string() }) },
    ({ resourceUri: uri }) => ({
      messages: [
        {
          role: "user",
          content: { type: "resource", resource: { uri, mimeType: "text/plain", text: "Inside." } },
        },
        said("Read it."),
      ],
    }),
  );
  server.registerPrompt("test_prompt_with_image", { description: "With a picture" }, () => ({
    messages: [
      { role: "user", content: { type: "image", mimeType: "image/png", data: pixel } },
      said("Look at it."),
    ],
  }));
}

/** Options of a server with everything that the conformance suite calls by name. */
export const conformanceOptions = { name: "conformance", tools, extend, http: { retryMs: 200 } };

/** Creates a server with everything that the conformance suite calls by name. */
export function conformanceServer(onWarning: (warning: Error) => void): Promise<McpExport> {
  return mcpServer({ ...conformanceOptions, version: "1.0.0", onWarning });
}
