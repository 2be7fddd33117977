import { Fault, parseAgentId, type RunHandle } from "../../../kernel/index.ts";
import { gatewayAgentName } from "../../../capabilities/gateway/gateway-runs.ts";
import type { GatewayDesk } from "../../../capabilities/gateway/gateway-desk.ts";
import { reply, route } from "../../http/route.ts";
import { runParams } from "../../http/schema/run-schemas.ts";
import { integer, list, nullable, number, object, text } from "../../http/schema/schema.ts";
import type { ServerParts } from "../../http/server-parts.ts";
import { findRun } from "./find-run.ts";

/**
 * The figures of a gateway run. `null` if this server does not execute the run, and therefore answers its requests
 * with 503.
 */
const figures = nullable(
  object({
    open: integer({ description: "Number of open requests." }),
    held: integer({ description: "Number of open requests that wait for a top-up." }),
    refused: integer({ description: "Number of refused requests since this server executes the run." }),
    addedDelayMs: nullable(
      number({
        description: "How long the last 100 requests were with the gateway before they left, on average.",
      }),
    ),
  }),
);

const described = {
  status: 200,
  description: "What the log of a gateway run does not contain. null: this server knows no gateway.",
  schema: nullable(
    object({
      url: nullable(text({ description: "Address of the gateway of this server. null: it has none." })),
      figures,
      tokens: list(
        object({
          ending: text({ description: "The last characters of the token. It is not stored itself." }),
          createdAt: integer(),
          expiresAt: nullable(integer()),
        }),
      ),
      others: list(text(), { description: "Addresses of other gateways on the store." }),
    }),
  ),
};

const describe = route({
  id: "gateway.run",
  method: "GET",
  path: "/api/gateway/runs/{runId}",
  summary: "Read the tokens of a gateway run, and its open requests if this server executes it.",
  scope: "read",
  params: runParams,
  responses: [described],
  handle: async (request) => {
    const { gateway } = request.server;
    const { runId } = gatewayRun(await findRun(request));
    const state = await gateway?.describe(runId);
    return reply(described, state === undefined ? null : { url: gateway?.url ?? null, ...state });
  },
});

const allFigures = {
  status: 200,
  description: "The runs that this server executes. null: this server knows no gateway.",
  schema: nullable(
    object({
      url: nullable(text({ description: "Address of the gateway of this server. null: it has none." })),
      runs: list(object({ runId: text(), figures })),
    }),
  ),
};

const overview = route({
  id: "gateway.runs",
  method: "GET",
  path: "/api/gateway/runs",
  summary: "Read the open requests of the gateway runs that this server executes.",
  scope: "read",
  responses: [allFigures],
  handle: async ({ runtime, server: { gateway: desk } }) => {
    if (desk === undefined) return reply(allFigures, null);
    const runs = [];
    // Only runs that the caller may see.
    for (const runId of desk.driven)
      if ((await runtime.find(runId)) !== undefined) runs.push({ runId, figures: desk.figures(runId) });
    return reply(allFigures, { url: desk.url, runs });
  },
});

const revoked = {
  status: 202,
  description: "The tokens are deleted, and the run will be cancelled. Its open requests are cut.",
  schema: object({ tokens: integer({ description: "Number of deleted tokens." }) }),
};

const revoke = route({
  id: "gateway.revoke",
  method: "POST",
  path: "/api/gateway/runs/{runId}/revoke",
  summary: "Delete the tokens of a gateway run, which every server then refuses, and cancel the run.",
  scope: "run",
  params: runParams,
  responses: [revoked],
  handle: async (request) => {
    const desk = deskOf(request.server);
    const run = gatewayRun(await findRun(request));
    const { tokens } = await desk.describe(run.runId);
    await desk.revoke(run.runId);
    if ((await run.summary()).endedAt === null) await run.cancel("the token was revoked");
    return reply(revoked, { tokens: tokens.length });
  },
});

export const gatewayRoutes = [overview, describe, revoke] as const;

function deskOf({ gateway }: ServerParts): GatewayDesk {
  if (gateway !== undefined) return gateway;
  throw new Fault("unsupported", "this server knows no gateway; use that of reeve serve");
}

function gatewayRun(run: RunHandle): RunHandle {
  if (parseAgentId(run.agentId).name === gatewayAgentName) return run;
  throw new Fault("not_found", `run ${run.runId} is no gateway run`, { details: { runId: run.runId } });
}
