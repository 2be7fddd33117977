import { anyObject, object, text } from "../../http/schema/schema.ts";
import { Fault } from "../../../kernel/index.ts";
import { type Route, reply, route } from "../../http/route.ts";
import { openAiRoutes } from "../../protocols/openai/openai-routes.ts";
import { agUiRoutes } from "../../protocols/ag-ui/ag-ui-routes.ts";
import { chatRoutes } from "../../protocols/ui-message/chat-routes.ts";
import { factRoutes } from "./facts.ts";
import { operationRoutes } from "./operations.ts";
import { runCommandRoutes } from "./run-commands.ts";
import { runRoutes } from "./runs.ts";
import { scheduleRoutes } from "./schedules.ts";
import { sessionRoutes } from "./sessions.ts";
import { streamRoutes } from "./streams.ts";

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
  handle: async ({ server, query, request }) => {
    if (server.login === undefined)
      throw new Fault("not_found", "this server needs no token, so there is nothing to log in to");
    try {
      const cookie = await server.login.redeem(query.code);
      return { status: 303, headers: { location: "/", "set-cookie": cookie } };
    } catch (error) {
      const isUsed = Fault.is(error) && error.code === "unauthenticated";
      if (isUsed && request.headers.get("accept")?.includes("text/html") === true) return usedLink();
      throw error;
    }
  },
});

/** What a person sees who opens a link that was used before. */
function usedLink(): Response {
  const html = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Reeve</title>
<h1>This link works only once</h1>
<p>It was used before, or it belongs to an earlier start of the server.</p>
<p>If you opened it in this browser, <a href="/">go to the page</a>. In another browser, stop <code>reeve serve</code>
with Ctrl-C and start it again: it prints a new link.</p>
</html>
`;
  return new Response(html, { status: 401, headers: { "content-type": "text/html; charset=utf-8" } });
}

const publicRoutes = [getDocument, login] as const;

const typedRoutes = [
  ...runRoutes,
  ...runCommandRoutes,
  ...sessionRoutes,
  ...operationRoutes,
  ...scheduleRoutes,
  ...factRoutes,
  ...streamRoutes,
  ...publicRoutes,
] as const;

/** The routes that declare the types of their values. The page uses them. */
export type ServerRoute = (typeof typedRoutes)[number];

/** Routes of protocols, whose clients have types of their own. */
const protocolRoutes: readonly Route[] = [...chatRoutes, ...agUiRoutes, ...openAiRoutes];

/** The table of all routes of a server. Throws `already_exists` if two have the same id, or the same method and path. */
export function routeTable(others: readonly Route[]): readonly Route[] {
  const table: readonly Route[] = [...typedRoutes, ...protocolRoutes, ...others];
  const taken = new Set<string>();
  for (const { id, method, path } of table)
    for (const name of [id, `${method} ${path.replaceAll(/\{\w+\}/gu, "{}")}`]) {
      if (taken.has(name))
        throw new Fault("already_exists", `two routes of the server are ${name}; change one of them`);
      taken.add(name);
    }
  return table;
}
