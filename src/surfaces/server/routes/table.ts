import { Fault } from "../../../kernel/index.ts";
import type { Route } from "../route.ts";
import { openAiRoutes } from "../../protocols/openai/openai-routes.ts";
import { chatRoutes } from "../../protocols/ui-message/chat-routes.ts";
import { getFacts } from "./facts.ts";
import { operationRoutes } from "./operations.ts";
import { publicRoutes } from "./public.ts";
import { runCommandRoutes } from "./run-commands.ts";
import { runRoutes } from "./runs.ts";
import { scheduleRoutes } from "./schedules.ts";
import { sessionRoutes } from "./sessions.ts";
import { streamRoutes } from "./streams.ts";

const ownRoutes: readonly Route[] = [
  ...runRoutes,
  ...runCommandRoutes,
  ...sessionRoutes,
  ...operationRoutes,
  ...scheduleRoutes,
  getFacts,
  ...streamRoutes,
  ...chatRoutes,
  ...openAiRoutes,
  ...publicRoutes,
];

/** The table of all routes of a server. Throws `already_exists` if two have the same id, or the same method and path. */
export function routeTable(others: readonly Route[]): readonly Route[] {
  const table = [...ownRoutes, ...others];
  const taken = new Set<string>();
  for (const { id, method, path } of table)
    for (const name of [id, `${method} ${path.replaceAll(/\{\w+\}/gu, "{}")}`]) {
      if (taken.has(name))
        throw new Fault("already_exists", `two routes of the server are ${name}; change one of them`);
      taken.add(name);
    }
  return table;
}
