import { Fault, type JsonObject, type JsonValue, type RunHandle } from "../../../kernel/index.ts";
import { errorResponse } from "../../http/problem.ts";
import type { RouteRequest } from "../../http/route.ts";
import type { ServerParts } from "../../http/server-parts.ts";
import { openAiErrors } from "./openai-errors.ts";

/** An input whose answer must match a JSON Schema. */
export function withOutput(input: JsonValue, output: JsonObject | undefined): JsonValue {
  return output === undefined ? input : { prompt: input, output };
}

/** The agent that a request names as its model. */
export function agentOf(model: string, { agents }: Pick<ServerParts, "agents">): string {
  const names = agents.list.map(({ name }) => name);
  if (names.includes(model)) return model;
  const advice = names.length === 0 ? "this server hosts no agents" : `use one of ${names.join(", ")}`;
  throw new Fault("not_found", `model ${JSON.stringify(model)} does not exist: ${advice}`, {
    details: { param: "model" },
  });
}

/** Headers of every answer. Clients of OpenAI show the id of the request. */
export function headersOf({ runId, sessionId }: RunHandle): Readonly<Record<string, string>> {
  return { "x-reeve-run": runId, "x-reeve-session": sessionId, "x-request-id": runId };
}

/**
 * The error of a request whose run has started. A client must not send it again, because that would start another run,
 * unless its idempotency key leads to the same one and the run may still answer.
 */
export function failedRun(
  { request, server }: Pick<RouteRequest, "request" | "server">,
  run: RunHandle,
  fault: Fault,
): Response {
  const isRepeatable = fault.code === "closed" && request.headers.has("idempotency-key");
  if (fault.code === "internal") server.report(fault);
  return errorResponse(fault, openAiErrors, {
    headers: { ...headersOf(run), "x-should-retry": String(isRepeatable) },
  });
}

/** The fault of a request whose run continues without it. */
export function stoppedWaiting({ runId }: RunHandle): Fault {
  return new Fault(
    "closed",
    `the server stopped waiting for run ${runId}, which continues: GET /api/runs/${runId}/result returns its result`,
    { details: { runId } },
  );
}
