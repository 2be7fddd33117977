import { Fault } from "../../../kernel/index.ts";
import { hasScope } from "../../http/access/access.ts";
import { giveOrder, previewOrder, runOrders, type OrderDesk } from "../../http/many-runs.ts";
import { reply, route, type RouteRequest } from "../../http/route.ts";
import { runFilter, runId as runIdSchema } from "../../http/schema/run-schemas.ts";
import { choice, integer, list, nullable, number, object, optional, text } from "../../http/schema/schema.ts";
import { wantedRuns } from "./find-run.ts";

const order = choice(runOrders, { description: "`delete` needs the scope admin." });
const filter = object(runFilter);
const refusals = list(
  object({
    reason: text({ description: "A sentence that holds for each of these runs." }),
    runIds: list(text()),
  }),
);

const previewed = {
  status: 200,
  description: "What the order would do now. Nothing was changed.",
  schema: object({
    runIds: list(text(), { description: "The runs that the order would change." }),
    refused: refusals,
    atMostUsd: nullable(
      number({
        description:
          "What resumed runs may still spend in all. null: one of them has no limit, or none would be resumed.",
      }),
    ),
  }),
};

const preview = route({
  id: "runs.orders.preview",
  method: "POST",
  path: "/api/run-orders/preview",
  summary:
    "Say what an order would do to each of up to 200 runs: the given ones, or those that fit a filter at this moment.",
  scope: "read",
  body: object({
    order,
    runIds: optional(list(runIdSchema)),
    filter: optional(filter),
  }),
  responses: [previewed],
  handle: async ({ runtime, access, body, server }) => {
    const { runIds, filter: wantedBy } = body;
    if ((runIds === undefined) === (wantedBy === undefined))
      throw new Fault("invalid_argument", "invalid order: expected either runIds or filter; use one of them");
    const chosen = wantedBy === undefined ? { runIds: runIds ?? [] } : { query: wantedRuns(wantedBy) };
    return reply(previewed, await previewOrder(body.order, chosen, deskOf({ runtime, access, server })));
  },
});

const ordered = {
  status: 200,
  description: "What was ordered. The events of the runs show the effect.",
  schema: object({ runIds: list(text()), refused: refusals, count: integer() }),
};

const give = route({
  id: "runs.orders",
  method: "POST",
  path: "/api/run-orders",
  summary:
    "Cancel, resume or delete up to 200 runs, such as those of a preview. Each run is judged again; runs that do not fit any more are refused one by one. Repeating the request is harmless.",
  scope: "run",
  body: object({
    order,
    runIds: list(runIdSchema, { minItems: 1 }),
    reason: optional(text({ maxLength: 1_000, description: "With cancel." })),
  }),
  responses: [ordered],
  handle: async ({ runtime, access, body, server }) => {
    const done = await giveOrder(body, body.runIds, deskOf({ runtime, access, server }));
    return reply(ordered, { ...done, count: done.runIds.length });
  },
});

function deskOf({ runtime, access, server }: Pick<RouteRequest, "runtime" | "access" | "server">): OrderDesk {
  return {
    runtime,
    figures: server.figures,
    by: access.userId ?? access.name,
    mayGive: (wanted) => hasScope(access, wanted === "delete" ? "admin" : "run"),
  };
}

export const runOrderRoutes = [preview, give] as const;
