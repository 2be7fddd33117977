import { Fault } from "../../../kernel/index.ts";
import { reply, route } from "../../http/route.ts";
import { anyObject, object, text } from "../../http/schema/schema.ts";

const document = { status: 200, description: "This document.", schema: anyObject() };
const getDocument = route({
  id: "openapi.get",
  method: "GET",
  path: "/openapi.json",
  summary: "Read the OpenAPI document of this server.",
  scope: null,
  responses: [document],
  handle: ({ server }) => reply(document, server.document()),
});

const redirected = { status: 303, description: "The cookie is set; the page follows." };
const login = route({
  id: "access.login",
  method: "GET",
  path: "/login",
  summary: "Use a link of `reeve serve` once: sets the cookie of the page.",
  scope: null,
  query: object({ code: text({ minLength: 1, maxLength: 200 }) }),
  responses: [redirected],
  handle: async ({ server, query }) => {
    if (server.login === undefined)
      throw new Fault("not_found", "this server needs no token, so there is nothing to log in to");
    const cookie = await server.login.redeem(query.code);
    return { status: 303, headers: { location: "/", "set-cookie": cookie } };
  },
});

export const publicRoutes = [getDocument, login] as const;
