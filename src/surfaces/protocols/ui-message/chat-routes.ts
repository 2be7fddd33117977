import {
  failureText,
  uiMessageDone,
  UiMessageEncoder,
  uiMessageFrames,
  uiMessageHeaders,
} from "../../../agents/index.ts";
import { Fault, type JsonValue, type RunHandle } from "../../../kernel/index.ts";
import { callerSession } from "../../http/caller-session.ts";
import { reply, route, type Route, type RouteRequest } from "../../http/route.ts";
import { sessionId } from "../../http/schema/run-schemas.ts";
import { choice, integer, list, object, optional, text, type ValueOf } from "../../http/schema/schema.ts";
import { sessionParams } from "../../http/schema/session-schemas.ts";
import { type AnswerEncoder, answerResponse, type AnswerResponseOptions } from "../answer-response.ts";
import { answerQuestions, readQuestions, seenUntil } from "../client-answers.ts";
import { answerAgain, newMessages, sendMessage, unfinishedRun } from "../session-turn.ts";
import { uiHistory } from "./ui-history.ts";
import { contentOf, UiAnswers, uiMessage, type UiMessage } from "./ui-message.ts";

/**
 * Returns the agent of a request: the agent that it names, otherwise the agent of the session, otherwise the only
 * agent of the server. Throws `invalid_argument` if there are several.
 */
async function chooseAgent(
  { runtime, server }: Pick<RouteRequest, "runtime" | "server">,
  named: string | undefined,
  chat: string | undefined,
): Promise<string> {
  if (named !== undefined) return server.agents.find(named).name;
  const names = server.agents.list.map(({ name }) => name);
  const session = chat === undefined ? undefined : await runtime.sessions.get(chat);
  const [first, ...others] = names;
  const own = names.find((name) => name === session?.agentId);
  if (own !== undefined) return own;
  if (first !== undefined && others.length === 0) return first;
  throw new Fault(
    "invalid_argument",
    first === undefined
      ? "this server hosts no agents"
      : `the request names no agent; set agent to one of ${names.join(", ")}`,
  );
}

const chatBody = object({
  id: sessionId,
  messages: list(uiMessage, { minItems: 1, maxItems: 10_000 }),
  trigger: optional(choice(["submit-message", "regenerate-message"])),
  messageId: optional(text({ maxLength: 200 })),
  agent: optional(
    text({
      minLength: 1,
      maxLength: 256,
      description: "Name of an agent. Default: that of the session, or the only one.",
    }),
  ),
});

type ChatRequest = RouteRequest<unknown, unknown, ValueOf<typeof chatBody>>;

const stream = {
  status: 200,
  description: "A UI message stream of the AI SDK, version 1.",
  schema: text(),
  contentType: "text/event-stream",
};

const sendChat = route({
  id: "chat.send",
  method: "POST",
  path: "/api/chat",
  summary:
    "Send a message of the AI SDK's `useChat`, or the answers to its tool calls and approvals, and stream the answer. The id of the chat is the session; its history is that of the store.",
  scope: "run",
  isStream: true,
  body: chatBody,
  carriesInput: true,
  responses: [stream],
  handle: async (received) => {
    received.server.streams.requireRoom(received.access);
    const { messages, trigger } = received.body;
    const id = await callerSession(received, received.body.id);
    const request: ChatRequest = { ...received, body: { ...received.body, id } };
    if (trigger === "regenerate-message") return regenerate(request);
    return messages.at(-1)?.role === "user" ? send(request) : answer(request);
  },
});

/**
 * Sends the new messages of the user as one message. Before that, answers to open questions in earlier messages are
 * delivered.
 */
async function send(request: ChatRequest): Promise<Response> {
  const { id, messages, agent, messageId } = request.body;
  const message = messages.at(-1) as UiMessage;
  const unsent = await newMessages(request, id, messages);
  const input = unsent.flatMap((each) => contentOf(each));
  const unfinished = await unfinishedRun(request, id);
  if (unfinished !== undefined) {
    const answers = new UiAnswers(messages);
    await answerQuestions(unfinished, await readQuestions(unfinished), (each) => answers.answerOf(each));
  }
  const chosen = await chooseAgent(request, agent, id);
  const started = await sendMessage(request, {
    agent: chosen,
    sessionId: id,
    messageId: message.id,
    input: input as unknown as JsonValue,
    isEdited: messageId === message.id,
  });
  const { run, isSteered, fromSeq } = started;
  if (!isSteered) return respond(request, run, run.runId);
  return respond(request, run, `${run.runId}:${fromSeq}`, { fromSeq, isSteered });
}

async function regenerate(request: ChatRequest): Promise<Response> {
  const { id, messages, agent } = request.body;
  const message = messages.findLast(({ role }) => role === "user");
  if (message === undefined)
    throw new Fault("invalid_argument", "the request has no message of the user to answer again");
  const chosen = await chooseAgent(request, agent, id);
  const { run } = await answerAgain(request, { agent: chosen, sessionId: id, messageId: message.id });
  return respond(request, run, run.runId);
}

/**
 * Delivers the answers of the client to the run that waits for them, and continues the message that the client
 * shows.
 */
async function answer(request: ChatRequest): Promise<Response> {
  const { id, messages, messageId } = request.body;
  const shown =
    messages.findLast((each) => each.role === "assistant" && each.id === messageId) ?? messages.at(-1);
  const run = (await unfinishedRun(request, id)) ?? (await runOf(request, shown?.id ?? ""));
  if (run === undefined || shown === undefined)
    throw new Fault(
      "invalid_argument",
      `session ${id} waits for no answer; send a message with the role user`,
      { details: { sessionId: id } },
    );
  const answers = new UiAnswers(messages);
  const questions = await readQuestions(run);
  const count = await answerQuestions(run, questions, (each) => answers.answerOf(each));
  return respond(request, run, shown.id, {
    fromSeq: seenUntil(questions, (each) => answers.knows(each)),
    waitsFromSeq: count > 0 ? questions.next : 0,
    knownCalls: answers.callIds,
  });
}

/** Returns the run whose answer has this message id, in the session of the request. */
async function runOf({ runtime, body }: ChatRequest, messageId: string): Promise<RunHandle | undefined> {
  const [runId = ""] = messageId.split(":", 1);
  const run = await runtime.find(runId);
  return run?.sessionId === body.id ? run : undefined;
}

const nothing = { status: 204, description: "No answer is in progress." };

const resumeChat = route({
  id: "chat.resume",
  method: "GET",
  path: "/api/chat/{sessionId}/stream",
  summary: "Resume the answer that is in progress in a chat, from its beginning. 204 if there is none.",
  scope: "read",
  isStream: true,
  params: sessionParams,
  responses: [stream, nothing],
  handle: async (request) => {
    const run = await unfinishedRun(request, request.params.sessionId);
    return run === undefined ? { status: 204 } : respond(request, run, run.runId);
  },
});

interface RespondOptions extends AnswerResponseOptions {
  readonly knownCalls?: Iterable<string>;
}

function respond(
  request: Pick<RouteRequest, "access" | "server" | "disconnect" | "runtime">,
  run: RunHandle,
  messageId: string,
  { knownCalls = [], ...options }: RespondOptions = {},
): Response {
  const { runId, sessionId: of } = run;
  const metadata = { runId, sessionId: of };
  const encoder = framesOf(new UiMessageEncoder({ messageId, metadata, knownCalls }));
  return answerResponse(request, run, encoder, { ...options, headers: uiMessageHeaders });
}

function framesOf(encoder: UiMessageEncoder): AnswerEncoder {
  return {
    opening: () => uiMessageFrames(encoder.opening()),
    encode: (part) => {
      const isLast = part.type === "end" || part.type === "waiting";
      return uiMessageFrames(encoder.encode(part)) + (isLast ? uiMessageDone : "");
    },
    failure: (fault) => uiMessageFrames(encoder.failure(failureText(fault))) + uiMessageDone,
  };
}

const history = {
  status: 200,
  description: "The conversation, oldest message first.",
  schema: object({ messages: list(uiMessage) }),
};

const readHistory = route({
  id: "chat.history",
  method: "GET",
  path: "/api/sessions/{sessionId}/ui-messages",
  summary:
    "Read the conversation of a session as messages of the AI SDK, with which `useChat` starts after a reload.",
  scope: "read",
  params: sessionParams,
  query: object({
    limit: optional(
      integer({ minimum: 1, description: "The most entries of the session, of which the newest are read." }),
    ),
  }),
  responses: [history],
  handle: async (request) => {
    const id = await callerSession(request, request.params.sessionId);
    return reply(history, { messages: await uiHistory(request.runtime, id, request.query) });
  },
});

/** The routes of the AI SDK's UI message stream protocol. */
export const chatRoutes: readonly Route[] = [sendChat, resumeChat, readHistory];
