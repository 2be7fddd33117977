import type { JsonObject } from "../../kernel/index.ts";
import { problemFormat, type ErrorFormat } from "../http/problem.ts";
import type { Route, RouteResponse } from "../http/route.ts";
import { definitionsOf, type Schema } from "../http/schema/schema.ts";

/** Creates the OpenAPI 3.1 document for a table of routes. */
export function openApi(routes: readonly Route[], version: string): JsonObject {
  const paths: Record<string, Record<string, JsonObject>> = {};
  for (const each of routes) (paths[each.path] ??= {})[each.method.toLowerCase()] = operation(each);
  const schemas = routes.flatMap(({ params, query, body, responses, errors }) =>
    [params, query, body, errors?.schema, ...responses.map(({ schema }) => schema)].filter(
      (each) => each !== undefined,
    ),
  );
  return {
    openapi: "3.1.0",
    info: {
      title: "Reeve",
      version,
      description: "Runs, sessions and approvals of a Reeve runtime.",
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: "/" }],
    security: [{ token: [] }, { page: [] }],
    paths,
    components: {
      schemas: definitionsOf([...schemas, problemFormat.schema]),
      responses: {
        Problem: errorOf("The request was refused or failed (RFC 9457).", problemFormat),
      },
      securitySchemes: {
        token: { type: "http", scheme: "bearer", description: "A token of `reeve token create`." },
        page: { type: "apiKey", in: "cookie", name: "reeve", description: "The cookie of the page." },
      },
    },
  };
}

function operation({
  id,
  summary,
  scope,
  params,
  query,
  body,
  isBodyOptional = false,
  responses,
  errors,
}: Route): JsonObject {
  const parameters = [...parametersOf(params, "path"), ...parametersOf(query, "query")];
  return {
    operationId: id,
    summary,
    tags: [id.split(".", 1)[0] ?? id],
    ...(scope === null ? { security: [] } : { description: `Needs a token with the scope \`${scope}\`.` }),
    ...(parameters.length > 0 && { parameters }),
    ...(body !== undefined && {
      requestBody: { required: !isBodyOptional, content: { "application/json": { schema: body.json } } },
    }),
    responses: {
      ...responsesOf(responses),
      default:
        errors === undefined
          ? { $ref: "#/components/responses/Problem" }
          : errorOf("The request was refused or failed.", errors),
    },
  };
}

function parametersOf(schema: Schema | undefined, place: "path" | "query"): readonly JsonObject[] {
  const { properties = {}, required = [] } = (schema?.json ?? {}) as {
    readonly properties?: Readonly<Record<string, JsonObject>>;
    readonly required?: readonly string[];
  };
  return Object.entries(properties).map(([name, { description, ...json }]) => ({
    name,
    in: place,
    required: required.includes(name),
    ...(description !== undefined && { description }),
    schema: json,
  }));
}

function errorOf(description: string, { contentType, schema }: ErrorFormat): JsonObject {
  return { description, content: { [contentType]: { schema: schema.json } } };
}

/** Returns the responses by status. A status may have several content types. */
function responsesOf(responses: readonly RouteResponse[]): JsonObject {
  const byStatus = Map.groupBy(responses, ({ status }) => String(status));
  return Object.fromEntries([...byStatus].map(([status, all]) => [status, responseOf(all)]));
}

function responseOf(all: readonly RouteResponse[]): JsonObject {
  const content = Object.fromEntries(
    all.flatMap(({ schema, contentType = "application/json" }) =>
      schema === undefined ? [] : [[contentType, { schema: schema.json }]],
    ),
  );
  return {
    description: all.map(({ description }) => description).join(" "),
    ...(Object.keys(content).length > 0 && { content }),
  };
}
