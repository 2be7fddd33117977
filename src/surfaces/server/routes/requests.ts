import type { RecordedRequest } from "../../../kernel/index.ts";
import { reply, route } from "../../http/route.ts";
import { limit, runId, runParams, taskId, time, usage } from "../../http/schema/run-schemas.ts";
import {
  integer,
  list,
  named,
  nullable,
  object,
  optional,
  schemaOf,
  text,
} from "../../http/schema/schema.ts";
import { CallList, callEvents } from "../../view/model-calls.ts";
import { findRun } from "./find-run.ts";

const seq = integer({ minimum: 0, description: "Seq of the `message_start` event of the call." });

const modelCall = named(
  "ModelCall",
  object({
    seq,
    taskId: text(),
    agentId: text(),
    role: text({ description: "Role whose model was called. `main` for the agent's own turns." }),
    model: nullable(text({ description: "`provider/id`" })),
    at: time,
    durationMs: nullable(integer({ description: "null if the call has no answer." })),
    usage: nullable(usage),
    retries: integer({
      description: "How often the request was sent again after a failure, or to another model.",
    }),
  }),
);

const listed = {
  status: 200,
  description: "The calls, in the order in which they started.",
  schema: object({
    calls: list(modelCall),
    next: nullable(
      integer({ description: "Pass it as `before` to read earlier calls. null if there are none." }),
    ),
  }),
};
const defaultCalls = 200;

const listRequests = route({
  id: "runs.requests",
  method: "GET",
  path: "/api/runs/{runId}/requests",
  summary:
    "List the model calls of a run or of one of its tasks, with their usage. Costs O(events of the run).",
  scope: "read",
  params: runParams,
  query: object({
    taskId: optional(taskId),
    before: optional(integer({ minimum: 0, description: "Only calls before this event." })),
    limit,
  }),
  responses: [listed],
  handle: async (request) => {
    const { taskId: wanted, before, limit: most = defaultCalls } = request.query;
    const fold = new CallList(most, before);
    const run = await findRun(request);
    for await (const event of run.events({ follow: false, types: callEvents }))
      if ("seq" in event && (wanted === undefined || event.taskId === wanted)) fold.add(event);
    const { calls, hasEarlier } = fold;
    return reply(listed, { calls, next: hasEarlier ? (calls[0]?.seq ?? null) : null });
  },
});

const part = {
  type: "object",
  description:
    "`recorded` has a `value`. `erased` has a `reason`: `retention` or `session`. `unrecorded`: an earlier version made the call.",
  properties: {
    state: { type: "string", enum: ["recorded", "erased", "unrecorded"] },
    value: {},
    reason: { type: "string" },
  },
  required: ["state"],
} as const;

const recordedRequest = named(
  "RecordedRequest",
  schemaOf<RecordedRequest>({
    type: "object",
    description: "What one model call was sent, as the journal of its run holds it.",
    properties: {
      seq: { type: "integer" },
      taskId: { type: "string" },
      agentId: { type: "string" },
      address: { type: "string" },
      role: { type: "string" },
      model: { type: ["string", "null"] },
      at: { type: "integer" },
      instructions: part,
      instructionsHash: { type: ["string", "null"] },
      tools: part,
      toolsHash: { type: ["string", "null"] },
      messages: part,
      isProven: {
        type: "boolean",
        description: "Whether the digest that was recorded with the answer proves the messages.",
      },
      ephemeralMessages: {
        type: ["integer", "null"],
        description: "Number of further messages at the end whose text is never stored.",
      },
      changedByMiddleware: {
        type: ["array", "null"],
        items: { type: "string", enum: ["instructions", "tools", "messages", "settings"] },
      },
      settings: { type: "object" },
      contextWindow: { type: ["integer", "null"] },
      reply: {
        type: ["object", "null"],
        description: "The answer with `message`, `stopReason` and `usage`.",
      },
    },
    required: [
      "seq",
      "taskId",
      "agentId",
      "instructions",
      "tools",
      "messages",
      "isProven",
      "settings",
      "reply",
    ],
  }),
);
const found = { status: 200, description: "The request.", schema: recordedRequest };

const getRequest = route({
  id: "runs.request",
  method: "GET",
  path: "/api/runs/{runId}/requests/{seq}",
  summary:
    "Read what one model call was sent: instructions, tools, messages, settings. What was erased or never recorded is named. Costs O(commits of the run).",
  scope: "read",
  params: object({
    runId,
    seq: text({ pattern: "^\\d{1,15}$", description: "Seq of a `message_start` event." }),
  }),
  responses: [found],
  handle: async (request) =>
    reply(found, await (await findRun(request)).modelRequest(Number(request.params.seq))),
});

export const requestRoutes = [listRequests, getRequest] as const;
