import { Validator as OpenApiValidator } from "@seriousme/openapi-schema-validator";
import { Ajv2020 } from "ajv/dist/2020.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { JsonObject } from "../../../src/kernel/index.ts";
import { object, route, type Route } from "../../../src/surfaces/server/index.ts";
import { agentsOfExamples, examples, exampleWorld, pathOf, type Example } from "./example-calls.ts";
import { openSse } from "./sse-client.ts";
import { startServer, type TestServer } from "./test-server.ts";

let server: TestServer;
let calls: Readonly<Record<string, Example>>;

beforeAll(async () => {
  server = await startServer(agentsOfExamples);
  calls = examples(await exampleWorld(server));
});
afterAll(() => server.close());

/** Checks values with the schemas of the document, which refuse fields that they do not name. */
function documentValidator(document: JsonObject): Ajv2020 {
  const ajv = new Ajv2020({ strict: false, validateFormats: false });
  ajv.addSchema(document, "doc");
  return ajv;
}

/** Returns what is wrong with the response of a route to its example. `undefined` if the response is right. */
async function problemOf(each: Route, example: Example, ajv: Ajv2020): Promise<string | undefined> {
  const path = pathOf(each.path, example);
  if (each.isStream === true && each.method === "GET") return problemOfStream(path, example);
  const answer = await server.call(each.method, path, example);
  if (answer.status !== example.status) return `${answer.status} ${answer.text}`;
  if (answer.status >= 400) {
    const type = each.errors?.contentType ?? "application/problem+json";
    if (answer.headers.get("content-type") !== type) return `the type is not ${type}`;
    const { $ref = "#/components/schemas/Problem" } = each.errors?.schema.json ?? {};
    const isProblem = ajv.validate({ $ref: `doc${$ref as string}` }, answer.json);
    return isProblem ? undefined : ajv.errorsText();
  }
  const documented = each.responses.find(({ status }) => status === answer.status);
  if (documented === undefined) return `status ${answer.status} is not documented`;
  if (documented.schema === undefined) return answer.text === "" ? undefined : `body ${answer.text}`;
  if (answer.headers.get("content-type")?.startsWith("text/event-stream"))
    return answer.text.includes("data: ") ? undefined : "the stream is empty";
  const place = each.path.replaceAll("/", "~1").replaceAll("{", "%7B").replaceAll("}", "%7D");
  const pointer = `doc#/paths/${place}/${each.method.toLowerCase()}/responses/${answer.status}/content/application~1json/schema`;
  return ajv.validate({ $ref: pointer }, answer.json) ? undefined : ajv.errorsText();
}

async function problemOfStream(path: string, { status, headers }: Example): Promise<string | undefined> {
  const stream = await openSse(server.url + path, {
    token: server.admin,
    ...(headers !== undefined && { headers }),
  });
  const first = await stream.next();
  stream.leave();
  if (stream.status !== status) return `status ${stream.status}`;
  return first === undefined ? "the stream is empty" : undefined;
}

describe("the OpenAPI document", () => {
  it("the OpenAPI document is valid OpenAPI 3.1 and contains every route of the table", async () => {
    const { json } = await server.call("GET", "/openapi.json", { token: null });
    const { valid, errors } = await new OpenApiValidator().validate(structuredClone(json));
    expect(errors ?? []).toEqual([]);
    expect(valid).toBe(true);
    const paths = json["paths"] as Readonly<
      Record<string, Readonly<Record<string, { operationId: string }>>>
    >;
    const documented = Object.values(paths).flatMap((path) =>
      Object.values(path).map(({ operationId }) => operationId),
    );
    expect(documented.toSorted()).toEqual(server.server.routes.map(({ id }) => id).toSorted());
  });

  it("the OpenAPI document contains the routes that the caller of createServer adds, and the server checks and answers them", async () => {
    const echo: Route = route({
      id: "test.echo",
      method: "POST",
      path: "/test/{name}",
      summary: "Answers with the name of the token.",
      scope: "run",
      params: object({ name: { json: { type: "string", maxLength: 3 }, definitions: {} } }),
      responses: [{ status: 200, description: "The name." }],
      handle: ({ access, params }) => ({ status: 200, value: { ...params, by: access.name } }),
    });
    const own = await startServer([], { routes: [echo] });
    expect((await own.call("GET", "/openapi.json")).text).toContain("test.echo");
    expect((await own.call("POST", "/test/abc")).json).toEqual({ name: "abc", by: "test" });
    expect((await own.call("POST", "/test/abcd")).status).toBe(400);
    expect((await own.call("POST", "/test/abc", { token: null })).status).toBe(401);
    expect((await own.call("POST", "/test/abc", { token: await own.tokenOf("acme", "read") })).status).toBe(
      403,
    );
    await own.close();
    await expect(startServer([], { routes: [{ ...echo, id: "runs.list" }] })).rejects.toMatchObject({
      code: "already_exists",
    });
  });
});

describe("every route of the table", () => {
  it("every route of the table has an example", () => {
    expect(server.server.routes.map(({ id }) => id).toSorted()).toEqual(Object.keys(calls).toSorted());
  });

  it("every route of the table answers its example with a documented status and a body that matches its schema", async () => {
    const ajv = documentValidator((await server.call("GET", "/openapi.json")).json);
    const byId = new Map(server.server.routes.map((each) => [each.id, each]));
    const problems: string[] = [];
    for (const [id, example] of Object.entries(calls)) {
      const each = byId.get(id);
      const problem = each === undefined ? "it is not in the table" : await problemOf(each, example, ajv);
      if (problem !== undefined) problems.push(`${id}: ${problem}`);
    }
    expect(problems).toEqual([]);
    expect(server.errors).toEqual([]);
  });

  it("a session is created over HTTP with a setting, for an agent of the server, under an id that is free", async () => {
    const create = async (body: JsonObject) => (await server.call("POST", "/api/sessions", { body })).json;
    expect(await create({ agent: "clerk", sessionId: "new", model: "openai/gpt-5" })).toMatchObject({
      sessionId: "new",
      agentId: "clerk",
      entries: 1,
    });
    expect(await create({ agent: "clerk", sessionId: "new", name: "Again" })).toMatchObject({ status: 409 });
    expect(await create({ agent: "clerk" })).toMatchObject({
      status: 400,
      detail: expect.stringContaining("expected a name, a model or a thinkingLevel") as unknown,
    });
    expect(await create({ agent: "absent", name: "x" })).toMatchObject({ status: 404 });
    const path = (await server.call("GET", "/api/sessions/new/path")).json;
    expect(path).toMatchObject({ entries: [{ type: "model_change", provider: "openai", modelId: "gpt-5" }] });
  });

  it("every route of the table refuses unknown fields of query and body, and names the nearest one", async () => {
    const query = await server.call("GET", "/api/runs?statu=failed");
    expect(query.json).toMatchObject({
      status: 400,
      code: "invalid_argument",
      detail: 'unknown field "statu" of the query: use status',
    });
    const body = await server.call("POST", "/api/runs", {
      body: { agent: "clerk", inputs: "x", input: "x" },
    });
    expect(body.json).toMatchObject({ detail: 'unknown field "inputs" of the body: use input' });
  });
});
