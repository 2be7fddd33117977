import type { FollowAnswerOptions } from "../../../agents/index.ts";
import { Fault, HistoryRetention, parseSessionId, type RunHandle } from "../../../kernel/index.ts";
import { callerSession } from "../../http/caller-session.ts";
import { reply, route, type Route, type RouteRequest, type RouteResult } from "../../http/route.ts";
import { startRun, type StartedRun } from "../../http/start-run.ts";
import { choice, integer, list, named, object, text, type ValueOf } from "../../http/schema/schema.ts";
import { answerResponse, followStarted } from "../answer-response.ts";
import { findAnswers, sendAnswers, type CallAnswers, type GivenOutputs } from "./client-calls.ts";
import { functionsOf } from "./client-functions.ts";
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
import { readConversation, readNewMessages, readOutputs } from "./openai-messages.ts";
import {
  checkCompletion,
  completionBody,
  completionSettings,
  includesUsage,
  outputSchemaOf,
  type CompletionBody,
} from "./openai-parameters.ts";
import { agentOf, failedRun, headersOf, stoppedWaiting, withOutput } from "./openai-requests.ts";

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
    const { body, server, access } = request;
    checkCompletion(body);
    agentOf(body.model, server);
    const given = readOutputs(body.messages);
    const answers = given.outputs.length === 0 ? undefined : await findAnswers(request, given);
    const begin = answers === undefined ? await beginning(request) : () => continued(request, answers, given);
    // After the run has started, a refusal would make the client send the request again.
    server.streams.requireRoom(access);
    const started = await begin();
    try {
      return await (request.body.stream === true ? streamAnswer : waitForAnswer)(request, started);
    } catch (error) {
      return failedRun(request, started.run, Fault.from(error));
    }
  },
});

/** A run that answers a request. */
interface AnsweringRun extends StartedRun {
  /** Ids of questions whose answers are on their way to the run. */
  readonly answered: ReadonlySet<string>;
}

/** Delivers outputs to the run that waits for them. */
async function continued(
  request: CompletionRequest,
  answers: CallAnswers,
  given: GivenOutputs,
): Promise<AnsweringRun> {
  const { run, fromSeq, answered, isNew } = await sendAnswers(request, request.body.model, answers, given);
  return { run, fromSeq, answered, isSteered: false, isRepeated: !isNew };
}

/** Returns what starts the run of a request. Throws before anything has started if the request cannot be honoured. */
async function beginning(received: CompletionRequest): Promise<() => Promise<AnsweringRun>> {
  const { body, request, server } = received;
  const output = outputSchemaOf(body);
  const settings = completionSettings(body);
  const changes = functionsOf(body, body.model, server);
  const sessionId = sessionOf(request);
  const conversation =
    sessionId === undefined
      ? { ...readConversation(body.messages), retention: HistoryRetention.RUN }
      : {
          input: readNewMessages(body.messages),
          sessionId: await callerSession(received, sessionId),
        };
  const options = {
    ...conversation,
    agent: body.model,
    input: withOutput(conversation.input, output),
    channel: "openai",
    metadata: body.metadata ?? {},
    ...(settings !== undefined && { settings }),
    ...(changes !== undefined && { changes }),
  };
  return async () => ({ ...(await startRun(received, options)), answered: new Set<string>() });
}

function sessionOf({ headers }: Request): string | undefined {
  const id = headers.get("x-reeve-session");
  return id === null ? undefined : parseSessionId(id);
}

function headOf({ runtime, body }: CompletionRequest, { runId }: RunHandle): CompletionHead {
  const created = Math.floor(runtime.clock.now() / 1000);
  return { id: `chatcmpl-${runId}`, created, model: body.model };
}

async function streamAnswer(request: CompletionRequest, started: AnsweringRun): Promise<Response> {
  const { run, isSteered, fromSeq } = started;
  const { body } = request;
  const encoder = new CompletionEncoder(run, headOf(request, run), {
    includesUsage: includesUsage(body),
    isStructured: outputSchemaOf(body) !== undefined,
  });
  const options = { fromSeq, isSteered, endsWith: endOf(started), headers: headersOf(run) };
  return answerResponse(request, run, encoder, options);
}

/** Whether an answer ends when its run waits for these questions: not while the run has not read the outputs of the request. */
function endOf({ answered }: AnsweringRun): NonNullable<FollowAnswerOptions["endsWith"]> {
  return (questions) => !questions.some(({ questionId }) => answered.has(questionId));
}

/** C3: a caller that leaves does not affect the run. */
async function waitForAnswer(request: CompletionRequest, started: AnsweringRun): Promise<RouteResult> {
  const { run, fromSeq } = started;
  const { access, body, server } = request;
  const held = server.streams.hold(access);
  try {
    const signal = AbortSignal.any([request.request.signal, held.signal]);
    const said = new CompletionText(outputSchemaOf(body) !== undefined);
    let last: LastPart | undefined;
    const options = { fromSeq, endsWith: endOf(started), signal };
    for await (const part of followStarted(request.runtime, started, options)) {
      said.add(part);
      if (part.type === "end" || part.type === "waiting") last = part;
    }
    if (last === undefined) throw stoppedWaiting(run);
    const closing = await closingOf(run, last);
    return reply(whole, completionOf(headOf(request, run), said.toString(), closing), headersOf(run));
  } finally {
    held.release();
  }
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
