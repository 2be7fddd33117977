import { Fault, type JsonObject, type JsonValue } from "../../../kernel/index.ts";
import { reply, route, type Route, type RouteRequest } from "../../http/route.ts";
import { anyJson, anyObject, object, text, type Schema, type ValueOf } from "../../http/schema/schema.ts";
import { Validator } from "../../http/schema/validator.ts";
import { sseFrame } from "../../http/streams/sse-stream.ts";
import { a2aErrors, a2aFault, rpcError, rpcFailure, type RpcId } from "./a2a-errors.ts";
import {
  a2aVersion,
  listParams,
  noParams,
  sendParams,
  taskParams,
  type SendParams,
  type TaskParams,
} from "./a2a-schema.ts";
import { addressOf, agentCard } from "./agent-card.ts";
import { listTasks } from "./list-tasks.ts";
import { receiveMessage, requireTask, viewOf, type CalledAgent, type ReceivedMessage } from "./tasks.ts";
import type { TaskView } from "./task-view.ts";

type AgentParams = { readonly agent: string };
type A2aRequest = RouteRequest<AgentParams, unknown, JsonValue>;

/** A request of JSON-RPC whose form was checked. */
interface RpcCall {
  readonly id: RpcId;
  readonly method: string;
  readonly params: JsonValue;
}

const agentParams = object({
  agent: text({ minLength: 1, maxLength: 256, description: "Name of an agent of this server." }),
});
const card = { status: 200, description: "The agent card.", schema: anyObject() };
const cardFile = "/.well-known/agent-card.json";

function cardOf(
  { server, request }: Pick<A2aRequest, "server" | "request">,
  name: string,
  isExtended: boolean,
): JsonObject {
  const info = server.agents.find(name);
  const url = addressOf(request, `/a2a/${encodeURIComponent(info.name)}`);
  return agentCard(info, { url, needsToken: server.login !== undefined, isExtended });
}

const getCard = route({
  id: "a2a.card",
  method: "GET",
  path: `/a2a/{agent}${cardFile}`,
  summary:
    "Read the A2A card of an agent: how to reach it. The extended card, which needs a token, describes it.",
  scope: null,
  params: agentParams,
  responses: [card],
  handle: (request) => reply(card, cardOf(request, request.params.agent, false)),
});

const getOnlyCard = route({
  id: "a2a.only-card",
  method: "GET",
  path: cardFile,
  summary: "Read the A2A card of the only agent of this server.",
  scope: null,
  responses: [card],
  handle: (request) => {
    const { list } = request.server.agents;
    const [only] = list;
    if (only === undefined || list.length > 1)
      throw new Fault(
        "not_found",
        `this server has ${list.length === 0 ? "no agent" : "several agents"}; the card of an agent is at /a2a/NAME${cardFile}`,
      );
    return reply(card, cardOf(request, only.name, false));
  },
});

const answer = { status: 200, description: "The answer of JSON-RPC.", schema: anyObject() };
const stream = {
  status: 200,
  description: "The answers of JSON-RPC to a streaming method, as server-sent events.",
  schema: text(),
  contentType: "text/event-stream",
};

const call = route({
  id: "a2a.call",
  method: "POST",
  path: "/a2a/{agent}",
  summary:
    "Call a method of A2A 1.0 over JSON-RPC. A task is a run of the agent, and a context is a session. A message of a task that waits for a person is the answer.",
  scope: "run",
  params: agentParams,
  body: anyJson({ description: "A request of JSON-RPC 2.0." }),
  carriesInput: true,
  responses: [answer, stream],
  errors: a2aErrors,
  handle: async (request) => {
    const rpc = callOf(request.body);
    try {
      checkVersion(request.request);
      return await answerCall(request, rpc);
    } catch (error) {
      const fault = Fault.from(error);
      if (fault.code === "internal") request.server.report(fault);
      return rpcFailure(rpc.id, fault);
    }
  },
});

/** Throws unless the value is one request of JSON-RPC that wants an answer. */
function callOf(body: JsonValue): RpcCall {
  if (Array.isArray(body))
    throw a2aFault("INVALID_REQUEST", "invalid request: A2A sends one request of JSON-RPC, and no list");
  const {
    jsonrpc,
    id,
    method,
    params = {},
  } = (typeof body === "object" && body !== null ? body : {}) as Partial<JsonObject>;
  if (jsonrpc !== "2.0")
    throw a2aFault("INVALID_REQUEST", 'invalid request: expected an object with jsonrpc: "2.0"');
  if (typeof id !== "string" && !(typeof id === "number" && Number.isSafeInteger(id)))
    throw a2aFault("INVALID_REQUEST", "invalid id of the request: expected a text or an integer");
  if (typeof method !== "string")
    throw a2aFault("INVALID_REQUEST", "invalid method of the request: expected a text");
  return { id, method, params };
}

/** A request without the header is of version 0.3, as the specification says. */
function checkVersion(request: Request): void {
  const asked =
    request.headers.get("a2a-version") ?? new URL(request.url).searchParams.get("A2A-Version") ?? "";
  if (/^1\.0(?:\.\d+)?$/u.test(asked)) return;
  const found =
    asked === "" ? "the request names none, which means 0.3" : `the request is of ${JSON.stringify(asked)}`;
  throw a2aFault(
    "VERSION_NOT_SUPPORTED",
    `this server speaks version ${a2aVersion} of A2A, and ${found}; send the header A2A-Version: ${a2aVersion}`,
    { supportedVersions: a2aVersion },
  );
}

const validator = new Validator();

function checked<Of extends Schema>(schema: Of, { params }: RpcCall): ValueOf<Of> {
  validator.check(schema, params, "body");
  return params as ValueOf<Of>;
}

async function answerCall(request: A2aRequest, rpc: RpcCall): Promise<Response> {
  const of: CalledAgent = {
    ...requestParts(request),
    agent: request.server.agents.find(request.params.agent),
  };
  switch (rpc.method) {
    case "SendMessage":
      return sendMessage(of, rpc.id, checked(sendParams, rpc));
    case "SendStreamingMessage":
      return streamMessage(of, rpc.id, checked(sendParams, rpc));
    case "GetTask":
      return getTask(of, rpc.id, checked(taskParams, rpc));
    case "ListTasks":
      return result(rpc.id, await listTasks(of, checked(listParams, rpc)));
    case "CancelTask":
      return cancelTask(of, rpc.id, checked(taskParams, rpc));
    case "SubscribeToTask":
      return subscribe(of, rpc.id, checked(taskParams, rpc));
    case "GetExtendedAgentCard":
      checked(noParams, rpc);
      return result(rpc.id, cardOf(request, of.agent.name, true));
    case "CreateTaskPushNotificationConfig":
    case "GetTaskPushNotificationConfig":
    case "ListTaskPushNotificationConfigs":
    case "DeleteTaskPushNotificationConfig":
      throw noPush();
    default:
      throw unknownMethod(rpc.method);
  }
}

/** The parts of a request that the methods use. `runtime` may be read only by a method. */
function requestParts(request: A2aRequest): Omit<CalledAgent, "agent"> {
  const { runtime, access, server, disconnect } = request;
  return {
    runtime,
    access,
    server,
    request: request.request,
    ...(disconnect !== undefined && { disconnect }),
  };
}

/** The names of version 0.3. */
const oldMethods: Readonly<Record<string, string>> = {
  "message/send": "SendMessage",
  "message/stream": "SendStreamingMessage",
  "tasks/get": "GetTask",
  "tasks/list": "ListTasks",
  "tasks/cancel": "CancelTask",
  "tasks/resubscribe": "SubscribeToTask",
  "agent/getAuthenticatedExtendedCard": "GetExtendedAgentCard",
};

function unknownMethod(method: string): Fault {
  const now = Object.hasOwn(oldMethods, method) ? oldMethods[method] : undefined;
  const advice =
    now === undefined
      ? `expected one of ${Object.values(oldMethods).join(", ")}`
      : `version 1.0 calls it ${now}`;
  return a2aFault("METHOD_NOT_FOUND", `unknown method ${JSON.stringify(method)}: ${advice}`);
}

function noPush(): Fault {
  return a2aFault(
    "PUSH_NOTIFICATION_NOT_SUPPORTED",
    "this server accepts no push notifications over A2A; use SubscribeToTask, or a notification in the settings of the server",
  );
}

function result(id: RpcId, value: object): Response {
  return Response.json({ jsonrpc: "2.0", id, result: value });
}

function checkSend({ configuration }: SendParams): void {
  if (configuration?.taskPushNotificationConfig !== undefined) throw noPush();
}

async function sendMessage(of: CalledAgent, id: RpcId, params: SendParams): Promise<Response> {
  checkSend(params);
  // After the message has an effect, a refusal would make the client send it again.
  of.server.streams.requireRoom(of.access);
  const { returnImmediately = false, historyLength } = params.configuration ?? {};
  const received = await receiveMessage(of, params.message);
  const view = await viewOf(of, received);
  if (!returnImmediately) await settle(of, view, received);
  return result(id, { task: view.task(historyLength === undefined ? {} : { historyLength }) });
}

/** Waits until the task ends or asks. C3: a client that leaves does not affect the run. */
async function settle(
  of: CalledAgent,
  view: TaskView,
  { run, waitsFromSeq }: ReceivedMessage,
): Promise<void> {
  const held = of.server.streams.hold(of.access);
  try {
    const signal = AbortSignal.any([of.request.signal, held.signal]);
    for await (const _ of view.follow({ signal, waitsFromSeq }));
    if (view.isWorking)
      throw new Fault(
        "closed",
        `the server stopped waiting for task ${run.runId}, which continues: call GetTask`,
        {
          details: { taskId: run.runId },
        },
      );
  } finally {
    held.release();
  }
}

async function streamMessage(of: CalledAgent, id: RpcId, params: SendParams): Promise<Response> {
  checkSend(params);
  of.server.streams.requireRoom(of.access);
  const received = await receiveMessage(of, params.message);
  return streamed(of, id, received, params.configuration?.historyLength);
}

/** Streams the task as it is, then what changes, until the task ends or asks. */
async function streamed(
  of: CalledAgent,
  id: RpcId,
  received: ReceivedMessage,
  historyLength?: number,
): Promise<Response> {
  const view = await viewOf(of, received);
  const frame = (value: object): string => sseFrame({ jsonrpc: "2.0", id, result: value });
  return of.server.streams.open(
    of.access,
    of.disconnect,
    async (sent) => {
      await sent.send(frame({ task: view.task(historyLength === undefined ? {} : { historyLength }) }));
      try {
        const { waitsFromSeq } = received;
        for await (const update of view.follow({ signal: sent.signal, waitsFromSeq }))
          await sent.send(frame(update));
      } catch (error) {
        await sent.send(sseFrame(rpcError(id, Fault.from(error))));
        throw error;
      }
    },
    { isCut: true },
  );
}

async function getTask(of: CalledAgent, id: RpcId, params: TaskParams): Promise<Response> {
  const { id: taskId, ...wanted } = params;
  const view = await viewOf(of, { run: await requireTask(of, taskId), waitsFromSeq: 0 });
  return result(id, view.task(wanted));
}

async function cancelTask(of: CalledAgent, id: RpcId, params: TaskParams): Promise<Response> {
  const run = await requireTask(of, params.id);
  const received = { run, waitsFromSeq: Number.MAX_SAFE_INTEGER };
  const before = await viewOf(of, received);
  if (before.hasEnded)
    throw a2aFault("TASK_NOT_CANCELABLE", `task ${run.runId} has ended and cannot be cancelled`, {
      taskId: run.runId,
    });
  of.server.streams.requireRoom(of.access);
  await run.cancel("cancelled by the client");
  await settle(of, before, received);
  return result(id, before.task());
}

async function subscribe(of: CalledAgent, id: RpcId, params: TaskParams): Promise<Response> {
  const run = await requireTask(of, params.id);
  const { endedAt } = await run.summary();
  if (endedAt !== null)
    throw a2aFault("UNSUPPORTED_OPERATION", `task ${run.runId} has ended; read it with GetTask`, {
      taskId: run.runId,
    });
  return streamed(of, id, { run, waitsFromSeq: 0 });
}

/** The routes of A2A. */
export const a2aRoutes: readonly Route[] = [getCard, getOnlyCard, call];
