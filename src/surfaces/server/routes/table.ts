import { anyObject } from "../../http/schema/schema.ts";
import { Fault } from "../../../kernel/index.ts";
import { type Route, reply, route } from "../../http/route.ts";
import { openAiRoutes } from "../../protocols/openai/openai-routes.ts";
import { responseRoutes } from "../../protocols/openai/response-routes.ts";
import { a2aRoutes } from "../../protocols/a2a/a2a-routes.ts";
import { agUiRoutes } from "../../protocols/ag-ui/ag-ui-routes.ts";
import { chatRoutes } from "../../protocols/ui-message/chat-routes.ts";
import { agentCommandRoutes } from "./agent-commands.ts";
import { agentRoutes } from "./agents.ts";
import { experimentRoutes } from "./experiments.ts";
import { factRoutes } from "./facts.ts";
import { gatewayRoutes } from "./gateway.ts";
import { inboxRoutes } from "./inbox.ts";
import { operationRoutes } from "./operations.ts";
import { runCommandRoutes } from "./run-commands.ts";
import { runInputRoutes } from "./run-input.ts";
import { runMessageRoutes } from "./run-messages.ts";
import { requestRoutes } from "./requests.ts";
import { runOrderRoutes } from "./run-orders.ts";
import { runRoutes } from "./runs.ts";
import { scheduleRoutes } from "./schedules.ts";
import { scoreRoutes } from "./scores.ts";
import { sessionRoutes } from "./sessions.ts";
import { signInRoutes } from "./sign-in.ts";
import { streamRoutes } from "./streams.ts";
import { usageRoutes } from "./usage.ts";

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

const publicRoutes = [getDocument, ...signInRoutes] as const;

const typedRoutes = [
  ...runRoutes,
  ...requestRoutes,
  ...runCommandRoutes,
  ...runInputRoutes,
  ...runMessageRoutes,
  ...runOrderRoutes,
  ...sessionRoutes,
  ...agentRoutes,
  ...agentCommandRoutes,
  ...operationRoutes,
  ...inboxRoutes,
  ...usageRoutes,
  ...scheduleRoutes,
  ...scoreRoutes,
  ...experimentRoutes,
  ...factRoutes,
  ...gatewayRoutes,
  ...streamRoutes,
  ...publicRoutes,
] as const;

/** The routes that declare the types of their values. The page derives its requests from them. */
export type ServerRoute = (typeof typedRoutes)[number];

/** Routes of protocols, whose clients have types of their own. */
const protocolRoutes: readonly Route[] = [
  ...chatRoutes,
  ...agUiRoutes,
  ...openAiRoutes,
  ...responseRoutes,
  ...a2aRoutes,
];

/**
 * Returns the table of all routes of a server. Throws `already_exists` if two routes have the same id, or the same
 * method and path.
 */
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
