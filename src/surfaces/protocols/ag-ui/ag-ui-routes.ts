import { failureText, type AnswerPart } from "../../../agents/index.ts";
import { Fault, type JsonValue, type RunHandle } from "../../../kernel/index.ts";
import { callerSession } from "../../http/caller-session.ts";
import { route, type Route, type RouteRequest } from "../../http/route.ts";
import { object, text } from "../../http/schema/schema.ts";
import { sseFrame } from "../../http/streams/sse-stream.ts";
import { answerResponse, type AnswerEncoder, type AnswerResponseOptions } from "../answer-response.ts";
import { answerQuestions, readQuestions, seenUntil } from "../client-answers.ts";
import { newMessages, sendMessage, unfinishedRun } from "../session-turn.ts";
import { AgUiEncoder, type AgUiEvent } from "./ag-ui-encoder.ts";
import { AgUiAnswers, contentOf, runInput, type AgUiMessage, type RunInput } from "./ag-ui-input.ts";

type AgUiRequest = RouteRequest<{ readonly agent: string }, unknown, RunInput>;

const stream = {
  status: 200,
  description: "Events of AG-UI 1.0.",
  schema: text(),
  contentType: "text/event-stream",
};

const subAgents = true;

const runAgent = route({
  id: "ag-ui.run",
  method: "POST",
  path: "/api/ag-ui/{agent}",
  summary:
    "Run an agent for a client of AG-UI: send a message of the user, results of the client's tools or answers to interrupts, and stream the answer. The thread is the session; its history is that of the store.",
  scope: "run",
  isStream: true,
  params: object({
    agent: text({ minLength: 1, maxLength: 256, description: "Name of an agent of this server." }),
  }),
  body: runInput,
  carriesInput: true,
  responses: [stream],
  handle: async (request) => {
    request.server.streams.requireRoom(request.access);
    checkTools(request);
    const sessionId = await callerSession(request, request.body.threadId);
    const waiting = await unfinishedRun(request, sessionId);
    const { resume = [], messages } = request.body;
    const last = messages.at(-1);
    const isAnswer = resume.length > 0 || last?.role === "tool";
    const answers = new AgUiAnswers(request.body);
    if (waiting !== undefined && (isAnswer || last?.role === "user")) {
      const response = await answer(request, waiting, answers, isAnswer);
      if (response !== undefined) return response;
    }
    return send(request, sessionId, answers);
  },
});

/**
 * Throws for AG-UI tools that are not tools of the agent with `clientSide: true`, because the server must know the
 * tools even after a restart.
 */
function checkTools({ body: { tools = [] }, params: { agent }, server }: AgUiRequest): void {
  const known = new Set(server.agents.find(agent).tools);
  const unknown = tools.find(({ name }) => !known.has(name));
  if (unknown !== undefined)
    throw new Fault(
      "invalid_argument",
      `agent ${agent} has no tool ${JSON.stringify(unknown.name)}; add tool({ name, clientSide: true }) to the agent, or leave the tool out of the request`,
      { details: { agent, tool: unknown.name } },
    );
}

/** Delivers the answers of the client. If the request contains nothing else, the run continues. */
async function answer(
  request: AgUiRequest,
  run: RunHandle,
  answers: AgUiAnswers,
  isAnswer: boolean,
): Promise<Response | undefined> {
  const questions = await readQuestions(run, { subAgents });
  const count = await answerQuestions(run, questions, (each) => answers.answerOf(each));
  if (!isAnswer) return undefined;
  return respond(request, run, answers, {
    fromSeq: seenUntil(questions, (each) => answers.knows(each)),
    waitsFromSeq: count > 0 ? questions.next : 0,
  });
}

/**
 * Sends the new messages of the user as one message. If the message is already known, it is not sent again, but its
 * answer is returned.
 */
async function send(request: AgUiRequest, sessionId: string, answers: AgUiAnswers): Promise<Response> {
  const { params, body } = request;
  const { messages } = body;
  const at = messages.findLastIndex(({ role }) => role === "user");
  const message = messages[at];
  if (message === undefined) throw new Fault("invalid_argument", "the request has no message of the user");
  const unsent = await newMessages(request, sessionId, messages.slice(0, at + 1));
  const input = unsent.flatMap((each) => contentOf(each)) as unknown as JsonValue;
  const isNewest = at === messages.length - 1;
  const sent = {
    agent: params.agent,
    sessionId,
    messageId: message.id,
    input,
    mustBeKnown: !isNewest,
  };
  const { run, isSteered, isRepeated, fromSeq } = await sendMessage(request, sent);
  const hasAnswer = isRepeated || (isSteered && !isNewest);
  return respond(request, run, answers, {
    fromSeq,
    isSteered,
    ...(hasAnswer && { snapshot: snapshotOf(messages, at) }),
  });
}

/**
 * Returns the messages that the client keeps when it receives an answer again: all messages up to the question.
 * Reasoning is sent with empty text, because a client would keep reasoning that is missing in the snapshot, and
 * append to it.
 */
function snapshotOf(messages: readonly AgUiMessage[], at: number): readonly AgUiMessage[] {
  const reasoning = messages.slice(at + 1).filter(({ role }) => role === "reasoning");
  return [...messages.slice(0, at + 1), ...reasoning.map((message) => ({ ...message, content: "" }))];
}

interface RespondOptions extends AnswerResponseOptions {
  readonly snapshot?: readonly AgUiMessage[];
}

function respond(
  request: AgUiRequest,
  run: RunHandle,
  answers: AgUiAnswers,
  { snapshot, ...options }: RespondOptions = {},
): Response {
  const { threadId, runId } = request.body;
  // A snapshot removes the client's results, so that they are sent as well.
  const answeredCalls = snapshot === undefined ? answers.answeredCalls : new Set<string>();
  const metadata = { reeve: { runId: run.runId, sessionId: run.sessionId } };
  const encoder = new AgUiEncoder({ threadId, runId, metadata, snapshot, answeredCalls });
  return answerResponse(request, run, framesOf(encoder), { subAgents, ...options });
}

function frames(events: readonly AgUiEvent[]): string {
  return events.map((event) => sseFrame(event)).join("");
}

function framesOf(encoder: AgUiEncoder): AnswerEncoder {
  return {
    opening: () => frames(encoder.opening()),
    encode: (part: AnswerPart) => frames(encoder.encode(part)),
    failure: (fault) => frames(encoder.failure(failureText(fault), fault.code)),
  };
}

/** The routes of AG-UI. */
export const agUiRoutes: readonly Route[] = [runAgent];
