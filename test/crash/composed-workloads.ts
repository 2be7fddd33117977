import { Agent } from "../../src/assembly/agent.ts";
import type { InputMessage } from "../../src/agents/index.ts";
import { tool } from "../../src/capabilities/index.ts";
import {
  formatRunId,
  messageText,
  userMessage,
  type ChatMessage,
  type HostedAgent,
  type JsonValue,
  type Mail,
  type Model,
} from "../../src/kernel/index.ts";
import { getRunContext } from "../../src/runtime/index.ts";
import { callServer, servedModel, type ServerAddress } from "../../src/testing/served-call.ts";
import { untilEvent } from "./until-event.ts";
import {
  ampleBudget as budget,
  lengthOf,
  modelAnswer,
  outputLimit,
  toolAnswer,
  type Said,
  type Workload,
} from "./workload.ts";

/** A context that only the process of the caller has. A worker that resumes the run builds it again. */
interface Shop {
  readonly owner: string;
}

/** A model that the counting server plays. The server sees the role and the settings of each call. */
export function modelOf(server: ServerAddress, role: string): Model {
  const served = servedModel(server, () => `${getRunContext()?.runId ?? ""} ${role}`);
  const generate: Model["generate"] = (request, options) => {
    const settings = userMessage(`settings ${request.temperature} ${request.seed}`);
    return served.generate({ ...request, messages: [...request.messages, settings] }, options);
  };
  return {
    ...served,
    modelId: role,
    maxOutputTokens: outputLimit,
    generate,
    async *stream(request, options) {
      yield { type: "finish", ...(await generate(request, options)) };
    },
  };
}

/** A tool that the counting server plays. Its result is a text; the receipt is in its metadata. */
export function toolOf(server: ServerAddress, name: string, returnDirect = false) {
  return tool({
    name,
    description: name,
    inputSchema: { type: "object" } as const,
    returnDirect,
    execute: async (_input, { idempotencyKey, context }) => {
      const body = { owner: (context as Shop | undefined)?.owner ?? null };
      const { receipt, answer } = await callServer(server, { name, key: idempotencyKey, body });
      return {
        output: { type: "text", text: JSON.stringify(answer) },
        isError: false,
        metadata: { receipt },
      } as const;
    },
  });
}

/** The text of a message of a call, without the settings that `modelOf` appends. */
export function sentTexts(body: JsonValue): readonly string[] {
  return (body as unknown as readonly ChatMessage[]).map(messageText);
}

export function agentOf(agent: HostedAgent): Agent {
  if (agent instanceof Agent) return agent;
  throw new Error(`${agent.id} is not an Agent`);
}

const conversation: readonly InputMessage[] = [
  { role: "user", content: "Good morning." },
  { role: "assistant", content: "Good morning." },
  { role: "user", content: "What does it weigh here?" },
];
const clientRun = formatRunId("client-tool");

/** What the model of the clerk says: it asks the client where it is, then it uses the scale, and then it is stopped. */
function clerkSays(body: JsonValue): Said {
  const texts = sentTexts(body);
  if (!texts.some((text) => text === "Turn 2.")) return { calls: [{ name: "locate", input: {} }] };
  return { text: "Three pounds.", calls: [{ name: "weigh", input: {} }] };
}

/**
 * A run that starts with messages, settings and a context object. It waits for a client in another process that executes
 * a tool. `prepareStep` adds a message to each turn and gives the second turn to another role. `stopWhen` ends the run.
 */
const clientTool: Workload = {
  runtime: { suspendAfterMs: 2 },
  context: ({ userId }): Shop => ({ owner: userId ?? "nobody" }),
  agents: (server) => [
    new Agent({
      name: "clerk",
      model: modelOf(server, "main"),
      models: { writer: modelOf(server, "writer") },
      instructions: ({ context }) => `You serve ${(context as Shop).owner}.`,
      tools: [
        tool({
          name: "locate",
          description: "Locates the client.",
          inputSchema: { type: "object" } as const,
          clientSide: true,
        }),
        toolOf(server, "weigh"),
      ],
      prepareStep: ({ turn }) => ({
        messages: [`Turn ${turn}.`],
        ...(turn === 1 ? { tools: ["locate"] } : { role: "writer" }),
      }),
      stopWhen: ({ toolCalls }) => toolCalls.some(({ toolName }) => toolName === "weigh"),
      budget,
    }),
  ],
  drive: async ({ runtime, agent }) => {
    const context: Shop = { owner: "ann" };
    const settings = { temperature: 0, seed: 7 };
    const options = { runtime, runId: clientRun, userId: "ann", context, settings };
    await (await agentOf(agent).submit(conversation, options)).result();
    return [clientRun];
  },
  outputs: ["Three pounds."],
  world: {
    branches: 1,
    answering: ({ name, body }) =>
      name === "model" ? modelAnswer(lengthOf(body), clerkSays(body)) : toolAnswer(name, body),
    visitor: async ({ store, signal }) => {
      const request = await untilEvent(store, clientRun, ({ type }) => type === "approval_request", signal);
      if (request.type !== "approval_request") throw new Error("the event is not an approval_request");
      await store.mailbox.put(resultMail(request.data.approvalId));
    },
  },
};

function resultMail(approvalId: string): Mail {
  const decision = { decision: "approved", input: { town: "Lyon" } } as const;
  return {
    id: "result",
    runId: clientRun,
    from: "the client",
    at: 1,
    body: { type: "approval", approvalId, decision },
  };
}

const consultRun = formatRunId("consulting");

function leadSays(body: JsonValue): Said {
  const asked = sentTexts(body).at(0) ?? "";
  if (asked.includes("How heavy")) return { text: "Heavy." };
  return lengthOf(body) > 3
    ? { calls: [{ name: "report", input: {} }] }
    : { calls: [{ name: "expert", input: { task: "How heavy is it?" } }] };
}

/** A run whose agent asks another agent as a tool, and whose last tool gives the answer. */
const consulting: Workload = {
  agents: (server) => {
    const expert = new Agent({
      name: "expert",
      description: "Weighs.",
      model: modelOf(server, "expert"),
    });
    const tools = [expert.asTool(), toolOf(server, "report", true)];
    return [new Agent({ name: "lead", model: modelOf(server, "lead"), tools, budget })];
  },
  drive: async ({ runtime, agent }) => {
    await (await agentOf(agent).submit("Weigh it.", { runtime, runId: consultRun })).result();
    return [consultRun];
  },
  outputs: [JSON.stringify({ did: "report", with: { owner: null } })],
  world: {
    branches: 1,
    answering: ({ name, body }) =>
      name === "model" ? modelAnswer(lengthOf(body), leadSays(body)) : toolAnswer(name, body),
  },
};

/** Workloads of the agents' calls: client-side tools, turn control, messages, settings, context, agents as tools. */
export const composedWorkloads: Readonly<Record<string, Workload>> = { clientTool, consulting };
