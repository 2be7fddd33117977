import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { toModel, type AiSdkModel } from "../../../src/capabilities/index.ts";
import {
  userMessage,
  type JsonObject,
  type JsonSchema,
  type ModelRequest,
} from "../../../src/kernel/index.ts";

const reply = {
  id: "1",
  created: 1,
  model: "gpt-4o",
  choices: [{ index: 0, message: { role: "assistant", content: "{}" }, finish_reason: "stop" }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
};

interface Settings {
  readonly apiKey: string;
  readonly fetch: typeof fetch;
}

/** A model of a server that is compatible with OpenAI, such as OpenRouter. */
function compatibleModel(settings: Settings): AiSdkModel {
  const address = { name: "house", baseURL: "http://127.0.0.1:1/v1", supportsStructuredOutputs: true };
  return createOpenAICompatible({ ...settings, ...address })("some-model");
}

/** The `json_schema` of the request that OpenAI receives for an output schema. */
async function sent(
  schema: JsonSchema,
  more: Partial<ModelRequest> = {},
  create: (settings: Settings) => AiSdkModel = (settings) => createOpenAI(settings).chat("gpt-4o"),
): Promise<JsonObject> {
  let body = "";
  const model = create({
    apiKey: "key",
    fetch: async (_url, init) => {
      body = init?.body as string;
      return Response.json(reply);
    },
  });
  await toModel(model).generate({
    messages: [userMessage("hello")],
    responseFormat: { type: "json", schema },
    ...more,
  });
  const { response_format } = JSON.parse(body) as { response_format: { json_schema: JsonObject } };
  return response_format.json_schema;
}

const text = { type: "string" };

describe("the output schema of a request to OpenAI", () => {
  test("an output schema for OpenAI has every object of a zod schema closed, because OpenAI refuses open objects in strict mode", async () => {
    const inner = z.object({ town: z.string(), days: z.number().nullable() });
    const schema = z.toJSONSchema(z.object({ stops: z.array(inner) }), { io: "input" }) as JsonSchema;
    expect(await sent(schema)).toMatchObject({
      strict: true,
      schema: {
        additionalProperties: false,
        properties: { stops: { items: { additionalProperties: false, required: ["town", "days"] } } },
      },
    });
  });

  test.each<[string, JsonSchema]>([
    ["an optional property", { type: "object", properties: { a: text, b: text }, required: ["a"] }],
    [
      "a map",
      { type: "object", properties: { a: { type: "object", additionalProperties: text } }, required: ["a"] },
    ],
    ["an object without properties", { type: "object" }],
    ["oneOf", { type: "object", properties: { a: { oneOf: [text] } }, required: ["a"] }],
    [
      "an optional property inside anyOf",
      {
        type: "object",
        properties: { a: { anyOf: [{ type: "object", properties: { b: text } }] } },
        required: ["a"],
      },
    ],
    ["a root that is an array", { type: "array", items: text }],
  ])(
    "an output schema for OpenAI is sent unchanged and without strictness if it has %s",
    async (_case, schema) => {
      expect(await sent(schema)).toMatchObject({ strict: false, schema });
    },
  );

  test("an output schema for OpenAI keeps the strictness that the caller chose", async () => {
    const schema = { type: "object", properties: { a: text } };
    const chosen = { providerOptions: { openai: { strictJsonSchema: true } } };
    expect(await sent(schema, chosen)).toMatchObject({ strict: true, schema });
  });
});

describe("the output schema of a request to a server that is compatible with OpenAI", () => {
  const open = { type: "object", properties: { a: text }, required: ["a"] };
  const optional = { type: "object", properties: { a: text } };

  test("an output schema for an OpenAI-compatible server is closed, because the model behind it may be one of OpenAI", async () => {
    expect(await sent(open, {}, compatibleModel)).toMatchObject({
      strict: true,
      schema: { ...open, additionalProperties: false },
    });
  });

  test("an output schema for an OpenAI-compatible server is sent unchanged and not strict if it has an optional property", async () => {
    expect(await sent(optional, {}, compatibleModel)).toMatchObject({ strict: false, schema: optional });
  });

  test.each(["house", "openaiCompatible"])(
    "an output schema for an OpenAI-compatible server keeps the strictness that the caller chose for %s",
    async (name) => {
      const chosen = { providerOptions: { [name]: { strictJsonSchema: true } } };
      expect(await sent(optional, chosen, compatibleModel)).toMatchObject({ strict: true, schema: optional });
    },
  );
});
