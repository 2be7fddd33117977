import {
  Fault,
  HistoryRetention,
  type JsonObject,
  type JsonValue,
  type Runtime,
  type RunHandle,
  type SessionEntry,
} from "../../../kernel/index.ts";
import { reply, route, type Route, type RouteRequest, type RouteResult } from "../../http/route.ts";
import { choice, integer, object, optional, text } from "../../http/schema/schema.ts";
import { newRunIdOf, runIdOfKey, startRun } from "../../http/start-run.ts";
import { BatchWriter } from "../../http/streams/batch-writer.ts";
import { sseFrame } from "../../http/streams/sse-stream.ts";
import { problemOf } from "../../http/problem.ts";
import { unfinishedRun } from "../session-turn.ts";
import { findAnswers, missingOutput, readAnswers, sendAnswers } from "./client-calls.ts";
import { functionsOf } from "./client-functions.ts";
import { callIdOf, readCallId } from "./openai-ids.ts";
import { agentOf, failedRun, headersOf, stoppedWaiting, withOutput } from "./openai-requests.ts";
import { openAiError, openAiErrors } from "./openai-errors.ts";
import { invalidParameter } from "./openai-parameters.ts";
import { withReferences } from "./item-references.ts";
import { readInput, type ResponseInput } from "./response-input.ts";
import {
  checkResponse,
  metadataOf,
  responseBody,
  responseSchemaOf,
  responseSettings,
  type ResponseBody,
} from "./response-parameters.ts";
import { responseSchema } from "./response-resource.ts";
import {
  currentResponse,
  endedResponse,
  findResponse,
  readResponse,
  ResponseReading,
  unknownResponse,
  type StoredResponse,
} from "./response-run.ts";

type ResponseRequest = RouteRequest<unknown, unknown, ResponseBody>;

/** The part of a run with which the answer to a request begins. */
interface Begun {
  readonly run: RunHandle;
  readonly fromSeq: number;
}

const whole = { status: 200, description: "The answer of the agent.", schema: responseSchema };
const streamed = {
  status: 200,
  description: "With `stream`: events of the answer as server-sent events.",
  schema: text(),
  contentType: "text/event-stream",
};

const create = route({
  id: "openai.respond",
  method: "POST",
  path: "/v1/responses",
  summary:
    "Answer as the Responses API of OpenAI does (Open Responses). `model` is an agent. `previous_response_id` continues a conversation of the store; without it, the input is the history. `Idempotency-Key` makes a request repeatable.",
  scope: "run",
  body: responseBody,
  carriesInput: true,
  responses: [whole, streamed],
  errors: openAiErrors,
  handle: async (request) => {
    const { body, server, access } = request;
    checkResponse(body);
    agentOf(body.model, server);
    const input = readInput(await withReferences(request, body.input));
    const isStream = body.stream === true;
    // After the run has started, a refusal would make the client send the request again.
    if (isStream || body.background !== true) server.streams.requireRoom(access);
    const { run, fromSeq } = await begin(request, input);
    try {
      const response = await readResponse(run, fromSeq);
      if (response === undefined) throw otherRequest(run);
      if (isStream) return streamOf(request, response, -1);
      if (body.background === true)
        return reply(whole, (await currentResponse(response)).resource, headersOf(run));
      return await waitFor(request, response);
    } catch (error) {
      return failedRun(request, run, Fault.from(error));
    }
  },
});

/** Starts a run, or continues one that waits for outputs. Throws before anything has started if the request cannot be honoured. */
async function begin(request: ResponseRequest, input: ResponseInput): Promise<Begun> {
  const { previous_response_id: previous } = request.body;
  if (previous !== undefined && previous !== null) return continueAfter(request, input, previous);
  if (input.outputs.length > 0) {
    const answers = await findAnswers(request, input);
    if (answers !== undefined) return sendAnswers(request, request.body.model, answers, input);
  }
  return start(request, input, { input: input.conversation() });
}

/** Continues the conversation after an answer. An answer that is no longer the last one of its session is continued in a copy. */
async function continueAfter(
  request: ResponseRequest,
  input: ResponseInput,
  previous: string,
): Promise<Begun> {
  const param = "previous_response_id";
  const response = await findResponse(request, previous);
  if (response === undefined) throw unknownResponse(previous, param);
  if (input.hasAnswer)
    throw invalidParameter(
      "input",
      `invalid input: with ${param}, it has only new messages and outputs; remove the items of earlier answers, or ${param}`,
    );
  const { resource, calls, isWaiting } = await currentResponse(response);
  const { runId } = response.run;
  if (resource.status === "queued" || resource.status === "in_progress")
    throw invalidParameter(
      param,
      `response ${previous} is in progress; wait until it is completed, or cancel it`,
    );
  if (calls.length > 0) return continueCalls(request, input, calls, previous);
  const [output] = input.outputs;
  if (output !== undefined)
    throw invalidParameter(
      output.place,
      `invalid ${output.place}: response ${previous} has no calls; remove the output`,
    );
  if (isWaiting)
    throw invalidParameter(
      param,
      `response ${previous} waits for a person: answer with POST /api/runs/${runId}/decide, and then retrieve it`,
    );
  if (input.said === undefined)
    throw invalidParameter("input", "invalid input: it has no message of the user");
  return startAfter(request, input, response, input.said);
}

/** Continues an answer that has ended with calls. Other outputs than those of an earlier request continue a fork of the run. */
async function continueCalls(
  request: ResponseRequest,
  input: ResponseInput,
  calls: readonly string[],
  previous: string,
): Promise<Begun> {
  const { outputs } = input;
  const { model } = request.body;
  const missing = calls.find((callId) => !outputs.some((output) => output.callId === callId));
  if (missing !== undefined) throw missingOutput(missing);
  const answers = await readAnswers(request, outputs);
  if (answers.changed === undefined) return sendAnswers(request, model, answers, input);
  const values: JsonValue = outputs.map(({ callId, value }) => [callId, value]);
  const fork = await answers.run.fork({
    at: answers.fromSeq - 1,
    keepsCommit: true,
    runId: runIdOfKey(request.access, "other outputs", previous, values),
  });
  const own = outputs.map((output) => ({ ...output, callId: callIn(fork, output.callId) }));
  return sendAnswers(request, model, await readAnswers(request, own), { ...input, outputs: own });
}

/** The call of a fork that a call of its origin has become. */
function callIn({ runId }: RunHandle, callId: string): string {
  return callIdOf({ runId, index: readCallId(callId)?.index ?? 0 });
}

async function startAfter(
  request: ResponseRequest,
  input: ResponseInput,
  { run }: StoredResponse,
  said: JsonValue,
): Promise<Begun> {
  const runId = newRunIdOf(request);
  const known = await request.runtime.find(runId);
  const continued = async (sessionId: string): Promise<Begun> =>
    start(request, input, { input: said, runId, sessionId });
  if (known !== undefined) return continued(known.sessionId);
  const { sessionId } = run;
  if (!(await isLast(request, run))) return continued(await copyAfter(request.runtime, run));
  try {
    return await continued(sessionId);
  } catch (error) {
    if (!Fault.is(error) || error.code !== "agent_busy") throw error;
    // Another request has continued the same answer at the same time.
    return continued(await copyAfter(request.runtime, run));
  }
}

/** Whether the conversation of a session ends with a run, and no other run is in progress. */
async function isLast(request: ResponseRequest, { runId, sessionId }: RunHandle): Promise<boolean> {
  const path = await request.runtime.sessions.path(sessionId, { limit: 20 });
  const last = path.findLast(({ type }) => type === "message");
  return last?.runId === runId && (await unfinishedRun(request, sessionId)) === undefined;
}

/** Copies the conversation up to the end of a run to a new session. */
async function copyAfter({ sessions }: Runtime, { runId, sessionId }: RunHandle): Promise<string> {
  let last: SessionEntry | undefined;
  let after: string | null = null;
  do {
    const page: Awaited<ReturnType<typeof sessions.entries>> = await sessions.entries(
      sessionId,
      after === null ? {} : { after },
    );
    last = page.entries.findLast((entry) => entry.type === "message" && entry.runId === runId) ?? last;
    after = page.next;
  } while (after !== null);
  if (last !== undefined) return sessions.fork(sessionId, { entryId: last.id });
  throw invalidParameter(
    "previous_response_id",
    "the response has left nothing in its conversation, because it failed or was not stored; continue an earlier one",
  );
}

async function start(
  request: ResponseRequest,
  { instructions: said }: ResponseInput,
  { input, ...place }: { readonly input: JsonValue; readonly runId?: string; readonly sessionId?: string },
): Promise<Begun> {
  const { body, server } = request;
  const { model, instructions, store, background } = body;
  const settings = responseSettings(body);
  const changes = functionsOf(body, model, server);
  const added = [instructions ?? "", said].filter((each) => each.trim() !== "").join("\n\n");
  const started = await startRun(request, {
    ...place,
    agent: model,
    input: withOutput(input, responseSchemaOf(body)),
    channel: "openai",
    metadata: metadataOf(body),
    // A client that reconnects must receive the same events, and only those of the log are the same for all readers.
    streaming: background !== true,
    ...(store === false && { retention: HistoryRetention.RUN }),
    ...(settings !== undefined && { settings }),
    ...(changes !== undefined && { changes }),
    ...(added !== "" && { addedInstructions: added }),
  });
  return { run: started.run, fromSeq: started.fromSeq };
}

function otherRequest({ runId }: RunHandle): Fault {
  return new Fault(
    "invalid_argument",
    `run ${runId} answers another kind of request with the same Idempotency-Key; use a new key`,
    { details: { runId } },
  );
}

/** C3: a caller that leaves does not affect the run. */
async function waitFor(
  { request, access, server }: Pick<RouteRequest, "request" | "access" | "server">,
  response: StoredResponse,
): Promise<RouteResult> {
  const held = server.streams.hold(access);
  try {
    const ended = await endedResponse(response, AbortSignal.any([request.signal, held.signal]));
    if (ended === undefined) throw stoppedWaiting(response.run);
    return reply(whole, ended.resource, headersOf(response.run));
  } finally {
    held.release();
  }
}

/** Streams a response from the event after a number on. The run continues without the client (C3). */
function streamOf(
  { access, server, disconnect }: Pick<RouteRequest, "access" | "server" | "disconnect">,
  response: StoredResponse,
  after: number,
): Response {
  const { run } = response;
  return server.streams.open(
    access,
    disconnect,
    async (stream) => {
      const writer = new BatchWriter(stream);
      const reading = new ResponseReading(response);
      let next = 0;
      const write = async (event: JsonObject & { readonly type: string }): Promise<void> => {
        const number = next++;
        const { type, ...data } = event;
        if (number <= after) return;
        await writer.add(sseFrame({ type, sequence_number: number, ...data }, { event: type }));
      };
      try {
        for await (const event of reading.events(run.events({ signal: stream.signal }))) await write(event);
        if (!reading.hasEnded) return;
        await write(await reading.last());
        await writer.add("data: [DONE]\n\n");
      } catch (error) {
        await write({ type: "error", ...openAiError(problemOf(Fault.from(error))) });
        throw error;
      } finally {
        await writer.flush();
      }
    },
    { headers: headersOf(run), isCut: true },
  );
}

const params = object({ responseId: text({ minLength: 1, maxLength: 200 }) });

const retrieve = route({
  id: "openai.response",
  method: "GET",
  path: "/v1/responses/{responseId}",
  summary:
    "Read a response as it is now, or stream it. `starting_after` leaves out the events up to that number, for a response in the background.",
  scope: "read",
  params,
  query: object(
    {
      stream: optional(choice(["true", "false"])),
      starting_after: optional(integer({ minimum: 0 })),
    },
    { additionalProperties: true },
  ),
  responses: [whole, streamed],
  errors: openAiErrors,
  handle: async (request) => {
    const { responseId } = request.params;
    const { stream, starting_after: after } = request.query;
    const response = await findResponse(request, responseId);
    if (response === undefined) throw unknownResponse(responseId, "response_id");
    if (stream !== "true") {
      if (after !== undefined)
        throw invalidParameter("starting_after", "starting_after has no effect without stream=true; add it");
      return reply(whole, (await currentResponse(response)).resource, headersOf(response.run));
    }
    if (after !== undefined && response.head.echo.background !== true)
      throw invalidParameter(
        "starting_after",
        `response ${responseId} is not in the background, so that its events have no fixed numbers; omit starting_after`,
      );
    request.server.streams.requireRoom(request.access);
    return streamOf(request, response, after ?? -1);
  },
});

const cancel = route({
  id: "openai.cancel-response",
  method: "POST",
  path: "/v1/responses/{responseId}/cancel",
  summary:
    "Cancel a response that is in progress, or that waits for outputs. A response that has ended stays as it is.",
  scope: "run",
  params,
  responses: [whole],
  errors: openAiErrors,
  handle: async (request) => {
    const { responseId } = request.params;
    const response = await findResponse(request, responseId);
    if (response === undefined) throw unknownResponse(responseId, "response_id");
    const { resource, isWaiting } = await currentResponse(response);
    const hasEnded = resource.status !== "queued" && resource.status !== "in_progress";
    if (hasEnded && !isWaiting) return reply(whole, resource, headersOf(response.run));
    request.server.streams.requireRoom(request.access);
    await response.run.cancel("the client has cancelled the response");
    await endOf(request, response.run);
    return reply(whole, (await currentResponse(response)).resource, headersOf(response.run));
  },
});

/** Waits until a run has ended. Throws `closed` if the server or the client stops waiting; the run ends nevertheless. */
async function endOf({ request, access, server }: RouteRequest, run: RunHandle): Promise<void> {
  const held = server.streams.hold(access);
  try {
    const signal = AbortSignal.any([request.signal, held.signal]);
    for await (const event of run.events({ types: ["run_end"], signal }))
      if (event.type === "run_end") return;
    if (signal.aborted) throw stoppedWaiting(run);
  } finally {
    held.release();
  }
}

/** The routes of Open Responses. */
export const responseRoutes: readonly Route[] = [create, retrieve, cancel];
