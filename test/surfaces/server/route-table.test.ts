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

describe("the OpenAPI document", () => {
  it("is valid OpenAPI 3.1 and contains every route of the table", async () => {
    const { json } = await server.call("GET", "/openapi.json", { token: null });
    const { valid, errors } = await new OpenApiValidator().validate(structuredClone(json) as never);
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

  it("contains the routes that the caller of createServer adds, and the server checks and answers them", async () => {
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
  it("has an example", () => {
    expect(server.server.routes.map(({ id }) => id).toSorted()).toEqual(Object.keys(calls).toSorted());
  });

  it("answers its example with a documented status and a body that matches the schema of the document", async () => {
    const document = (await server.call("GET", "/openapi.json")).json as JsonObject;
    const ajv = documentValidator(document);
    const byId = new Map(server.server.routes.map((each) => [each.id, each]));
    for (const [id, example] of Object.entries(calls)) {
      const each = byId.get(id);
      if (each === undefined) throw new Error(id);
      const path = pathOf(each.path, example);
      if (each.isStream === true) {
        const stream = await openSse(server.url + path, {
          token: server.admin,
          ...(example.headers !== undefined && { headers: example.headers }),
        });
        expect([id, stream.status]).toEqual([id, example.status]);
        expect(await stream.next()).toBeDefined();
        stream.leave();
        continue;
      }
      const answer = await server.call(each.method, path, example);
      expect([id, answer.status, answer.status < 400 ? "" : answer.text]).toEqual([
        id,
        example.status,
        answer.status < 400 ? "" : answer.text,
      ]);
      const documented = each.responses.find(({ status }) => status === answer.status);
      if (answer.status >= 400) {
        expect(answer.headers.get("content-type")).toBe("application/problem+json");
        expect(
          ajv.validate({ $ref: "doc#/components/schemas/Problem" }, answer.json) || ajv.errorsText(),
        ).toBe(true);
        continue;
      }
      expect([id, documented?.status]).toEqual([id, answer.status]);
      if (documented?.schema === undefined) {
        expect(answer.text).toBe("");
        continue;
      }
      const pointer = `doc#/paths/${each.path.replaceAll("~", "~0").replaceAll("/", "~1").replaceAll("{", "%7B").replaceAll("}", "%7D")}/${each.method.toLowerCase()}/responses/${answer.status}/content/application~1json/schema`;
      expect([id, ajv.validate({ $ref: pointer }, answer.json) || ajv.errorsText()]).toEqual([id, true]);
    }
    expect(server.errors).toEqual([]);
  });

  it("refuses unknown fields of query and body, and names the nearest one", async () => {
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
