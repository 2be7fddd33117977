import {
  Fault,
  HistoryRetention,
  parseSessionId,
  type JsonObject,
  type JsonValue,
  type RunHandle,
} from "../../../kernel/index.ts";
import { callerSession } from "../../http/caller-session.ts";
import { errorResponse } from "../../http/problem.ts";
import { reply, route, type Route, type RouteRequest, type RouteResult } from "../../http/route.ts";
import { startRun, type NewRunOptions, type StartedRun } from "../../http/start-run.ts";
import { choice, integer, list, named, object, text, type ValueOf } from "../../http/schema/schema.ts";
import { answerResponse, followStarted } from "../answer-response.ts";
import { CompletionEncoder } from "./completion-encoder.ts";
import {
  closingOf,
  completionOf,
  completionSchema,
  CompletionText,
  type CompletionHead,
  type LastPart,
} from "./completion.ts";
import { openAiErrors } from "./openai-errors.ts";
import { readConversation, readNewMessages } from "./openai-messages.ts";
import {
  checkParameters,
  completionBody,
  includesUsage,
  outputSchemaOf,
  settingsOf,
  type CompletionBody,
} from "./openai-parameters.ts";

type CompletionRequest = RouteRequest<unknown, unknown, CompletionBody>;

const whole = { status: 200, description: "The answer of the agent.", schema: completionSchema };
const streamed = {
  status: 200,
  description: "With `stream`: chunks of the answer as server-sent events.",
  schema: text(),
  contentType: "text/event-stream",
};

const complete = route({
  id: "openai.complete",
  method: "POST",
  path: "/v1/chat/completions",
  summary:
    "Answer messages as the API of OpenAI does. `model` is an agent. The header `X-Reeve-Session` names a session, whose history is that of the store; without it, the messages are the history. `Idempotency-Key` makes a request repeatable.",
  scope: "run",
  body: completionBody,
  carriesInput: true,
  responses: [whole, streamed],
  errors: openAiErrors,
  handle: async (request) => {
    const options = await optionsOf(request);
    // After the run has started, a refusal would make the client send the request again.
    request.server.streams.requireRoom(request.access);
    const started = await startRun(request, options);
    try {
      return await (request.body.stream === true ? streamAnswer : waitForAnswer)(request, started);
    } catch (error) {
      return failedRun(request, started.run, Fault.from(error));
    }
  },
});

/** What the request starts. Throws before anything has started if the request cannot be honoured. */
async function optionsOf(received: CompletionRequest): Promise<NewRunOptions> {
  const { body, request, server } = received;
  checkParameters(body);
  const output = outputSchemaOf(body);
  const settings = settingsOf(body);
  const sessionId = sessionOf(request);
  const conversation =
    sessionId === undefined
      ? { ...readConversation(body.messages), retention: HistoryRetention.RUN }
      : {
          input: readNewMessages(body.messages),
          sessionId: await callerSession(received, sessionId),
        };
  return {
    ...conversation,
    agent: agentOf(body.model, server),
    input: withOutput(conversation.input, output),
    channel: "openai",
    metadata: body.metadata ?? {},
    ...(settings !== undefined && { settings }),
  };
}

function withOutput(input: JsonValue, output: JsonObject | undefined): JsonValue {
  return output === undefined ? input : { prompt: input, output };
}

function sessionOf({ headers }: Request): string | undefined {
  const id = headers.get("x-reeve-session");
  return id === null ? undefined : parseSessionId(id);
}

function agentOf(model: string, { agents }: CompletionRequest["server"]): string {
  const names = agents.list.map(({ name }) => name);
  if (names.includes(model)) return model;
  const advice = names.length === 0 ? "this server hosts no agents" : `use one of ${names.join(", ")}`;
  throw new Fault("not_found", `model ${JSON.stringify(model)} does not exist: ${advice}`, {
    details: { param: "model" },
  });
}

/** Headers of every answer. Clients of OpenAI show the id of the request. */
function headersOf({ runId, sessionId }: RunHandle): Readonly<Record<string, string>> {
  return { "x-reeve-run": runId, "x-reeve-session": sessionId, "x-request-id": runId };
}

function headOf({ runtime, body }: CompletionRequest, { runId }: RunHandle): CompletionHead {
  const created = Math.floor(runtime.clock.now() / 1000);
  return { id: `chatcmpl-${runId}`, created, model: body.model };
}

async function streamAnswer(request: CompletionRequest, started: StartedRun): Promise<Response> {
  const { run, isSteered, fromSeq } = started;
  const { body } = request;
  const encoder = new CompletionEncoder(run, headOf(request, run), {
    includesUsage: includesUsage(body),
    isStructured: outputSchemaOf(body) !== undefined,
  });
  const options = { fromSeq, isSteered, headers: headersOf(run) };
  return answerResponse(request, run, encoder, options);
}

/** C3: a caller that leaves does not affect the run. */
async function waitForAnswer(request: CompletionRequest, started: StartedRun): Promise<RouteResult> {
  const { run, fromSeq } = started;
  const { access, body, server } = request;
  const held = server.streams.hold(access);
  try {
    const signal = AbortSignal.any([request.request.signal, held.signal]);
    const said = new CompletionText(outputSchemaOf(body) !== undefined);
    let last: LastPart | undefined;
    const options = { fromSeq, signal };
    for await (const part of followStarted(request.runtime, started, options)) {
      said.add(part);
      if (part.type === "end" || part.type === "waiting") last = part;
    }
    if (last === undefined)
      throw new Fault(
        "closed",
        `the server stopped waiting for run ${run.runId}, which continues: GET /api/runs/${run.runId}/result returns its result`,
        { details: { runId: run.runId } },
      );
    const closing = await closingOf(run, last);
    return reply(whole, completionOf(headOf(request, run), said.toString(), closing), headersOf(run));
  } finally {
    held.release();
  }
}

/**
 * The error of a request whose run has started. A client must not send it again, because that would start another run,
 * unless its idempotency key leads to the same one and the run may still answer.
 */
function failedRun({ request, server }: CompletionRequest, run: RunHandle, fault: Fault): Response {
  const isRepeatable = fault.code === "closed" && request.headers.has("idempotency-key");
  if (fault.code === "internal") server.report(fault);
  return errorResponse(fault, openAiErrors, {
    headers: { ...headersOf(run), "x-should-retry": String(isRepeatable) },
  });
}

const modelSchema = named(
  "OpenAiModel",
  object({
    id: text({ description: "Name of the agent." }),
    object: choice(["model"]),
    created: integer(),
    owned_by: text(),
  }),
);

function modelOf(name: string): ValueOf<typeof modelSchema> {
  return { id: name, object: "model", created: 0, owned_by: "reeve" };
}

const all = {
  status: 200,
  description: "The agents.",
  schema: object({ object: choice(["list"]), data: list(modelSchema) }),
};

const listModels = route({
  id: "openai.models",
  method: "GET",
  path: "/v1/models",
  summary: "List the agents that callers may start here, as models of OpenAI.",
  scope: "read",
  responses: [all],
  errors: openAiErrors,
  handle: ({ server }) =>
    reply(all, { object: "list", data: server.agents.list.map(({ name }) => modelOf(name)) }),
});

const one = { status: 200, description: "The agent.", schema: modelSchema };

const getModel = route({
  id: "openai.model",
  method: "GET",
  path: "/v1/models/{model}",
  summary: "Read an agent, as a model of OpenAI.",
  scope: "read",
  params: object({ model: text({ minLength: 1, maxLength: 257 }) }),
  responses: [one],
  errors: openAiErrors,
  handle: ({ server, params }) => reply(one, modelOf(agentOf(params.model, server))),
});

/** The routes of OpenAI's chat completions protocol. */
export const openAiRoutes: readonly Route[] = [complete, listModels, getModel];
