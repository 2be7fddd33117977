import { createServer as createHttpServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { TaskState, type AgentCard, type Message, type Task } from "@a2a-js/sdk";
import {
  AgentEvent,
  DefaultRequestHandler,
  InMemoryTaskStore,
  type AgentExecutor,
  type RequestContext,
} from "@a2a-js/sdk/server";
import { jsonRpcHandler, UserBuilder } from "@a2a-js/sdk/server/express";
import express from "express";
import { afterEach, describe, expect, test } from "vitest";
import { Agent } from "../../src/assembly/agent.ts";
import { OrchestratorAgent } from "../../src/assembly/agent-kinds.ts";
import { openRuntime } from "../../src/assembly/open-runtime.ts";
import { remoteAgent, type RemoteAgentOptions } from "../../src/assembly/remote-agent.ts";
import { tool } from "../../src/capabilities/index.ts";
import type { Event, RunHandle, Runtime } from "../../src/kernel/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import type { StoreAddress } from "../../src/runtime/index.ts";
import { tempFolder } from "./hire-world.ts";
import { eventually } from "../surfaces/protocols/test-chat.ts";
import { startServer, type TestServer } from "../surfaces/server/test-server.ts";

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

/** A server of the SDK whose agent a test scripts. */
class Partner {
  readonly received: Message[] = [];
  readonly cancelled: string[] = [];
  /** The methods that were called. */
  readonly methods: string[] = [];
  /** Requests whose connections are cut after the server has taken them. */
  cuts = 0;
  readonly gate = Promise.withResolvers<void>();
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async open(answer: (text: string, task: Task | undefined) => string): Promise<Partner> {
    const app = express();
    const server = createHttpServer(app);
    const partner = new Partner(server);
    await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
    const executor: AgentExecutor = {
      execute: async ({ userMessage, taskId, contextId, task }: RequestContext, bus) => {
        partner.received.push(userMessage);
        const text = userMessage.parts
          .map(({ content }) => (content?.$case === "text" ? content.value : ""))
          .join("");
        const place = { taskId, contextId, metadata: undefined };
        const status = (state: TaskState, said = "") => ({
          state,
          timestamp: new Date().toISOString(),
          message:
            said === ""
              ? undefined
              : {
                  ...agentMessage(said),
                  taskId,
                  contextId,
                  messageId: `${taskId}-${partner.received.length}`,
                },
        });
        bus.publish(
          AgentEvent.task({
            id: taskId,
            contextId,
            status: status(TaskState.TASK_STATE_WORKING),
            artifacts: task?.artifacts ?? [],
            history: [...(task?.history ?? []), userMessage],
            metadata: undefined,
          }),
        );
        const said = answer(text, task);
        const end = (state: TaskState, reason?: string): void => {
          bus.publish(AgentEvent.statusUpdate({ ...place, status: status(state, reason) }));
          bus.finished();
        };
        if (said === "ask") return end(TaskState.TASK_STATE_INPUT_REQUIRED, "Which city?");
        if (said === "fail") return end(TaskState.TASK_STATE_FAILED, "no such city");
        if (said === "wait") await partner.gate.promise;
        for (const [index, piece] of [said, "."].entries())
          bus.publish(
            AgentEvent.artifactUpdate({
              ...place,
              artifact: {
                artifactId: "a",
                name: "a",
                description: "",
                parts: [
                  {
                    content: { $case: "text", value: piece },
                    metadata: undefined,
                    filename: "",
                    mediaType: "",
                  },
                ],
                metadata: undefined,
                extensions: [],
              },
              append: index > 0,
              lastChunk: index > 0,
            }),
          );
        end(TaskState.TASK_STATE_COMPLETED);
      },
      cancelTask: async (taskId, bus) => {
        partner.cancelled.push(taskId);
        const contextId = partner.received[0]?.contextId ?? "";
        bus.publish(
          AgentEvent.statusUpdate({
            taskId,
            contextId,
            metadata: undefined,
            status: {
              state: TaskState.TASK_STATE_CANCELED,
              timestamp: new Date().toISOString(),
              message: undefined,
            },
          }),
        );
        bus.finished();
      },
    };
    const card = cardOf(partner.url);
    const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), executor);
    app.get("/.well-known/agent-card.json", (_, response) => void response.json(card));
    app.use("/rpc", (request, response, next) => {
      if (partner.cuts > 0) {
        partner.cuts--;
        response.write = response.end = (() => request.socket.destroy()) as never;
      }
      next();
    });
    app.use("/rpc", express.json(), (request, _, next) => {
      partner.methods.push((request.body as { readonly method: string }).method);
      next();
    });
    app.use("/rpc", jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication }));
    closing.push(async () => {
      partner.gate.resolve();
      server.closeAllConnections();
      await new Promise((resolve) => void server.close(resolve));
    });
    return partner;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get card(): string {
    return `${this.url}/.well-known/agent-card.json`;
  }
}

function agentMessage(text: string): Message {
  return {
    messageId: "",
    contextId: "",
    taskId: "",
    role: 2,
    parts: [{ content: { $case: "text", value: text }, metadata: undefined, filename: "", mediaType: "" }],
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
  };
}

function cardOf(url: string): AgentCard {
  return {
    name: "partner",
    description: "",
    version: "1",
    supportedInterfaces: [
      { url: `${url}/rpc`, protocolBinding: "JSONRPC", tenant: "", protocolVersion: "1.0" },
    ],
    provider: undefined,
    capabilities: { streaming: true, pushNotifications: false, extensions: [] },
    securitySchemes: {},
    securityRequirements: [],
    defaultInputModes: ["text/plain"],
    defaultOutputModes: ["text/plain"],
    skills: [],
    signatures: [],
  };
}

let hired = 0;

function hire(card: string, options: Partial<RemoteAgentOptions> = {}): Agent {
  return remoteAgent({ name: `lawyer-${++hired}`, card, ...options });
}

async function eventsOf(run: RunHandle): Promise<readonly Event[]> {
  const events: Event[] = [];
  for await (const event of run.events({ follow: false })) if ("seq" in event) events.push(event);
  return events;
}

async function remoteEvents(run: RunHandle): Promise<readonly string[]> {
  return (await eventsOf(run)).flatMap(({ type, data }) =>
    type === "architecture_event" ? [data.name] : [],
  );
}

async function open(
  store?: StoreAddress,
): Promise<{ readonly runtime: Runtime; readonly store: StoreAddress }> {
  const folder = store === undefined ? await tempFolder() : "";
  const address: StoreAddress = store ?? `sqlite:${folder}/reeve.db`;
  const runtime = await openRuntime({ store: address });
  closing.push(() => runtime.close());
  return { runtime, store: address };
}

describe("a remote agent, with the server of @a2a-js/sdk", () => {
  test("a remote agent answers, counts one turn for each message, and reports its money as unknown", async () => {
    const partner = await Partner.open((text) => `I heard ${text}`);
    const { runtime } = await open();
    const lawyer = hire(partner.card);
    const run = await runtime.submit(lawyer, "Hello", { sessionId: "talk" });
    const { status, output, costUsd, turns, error } = await run.result();
    expect([status, output, costUsd, turns, error]).toEqual(["completed", "I heard Hello.", null, 1, null]);
    expect(await remoteEvents(run)).toEqual(["task_started"]);
    const again = await runtime.submit(lawyer, "Bye", { sessionId: "talk" });
    expect((await again.result()).output).toBe("I heard Bye.");
    expect(partner.received[1]?.contextId).toBe(partner.received[0]?.contextId);
  });

  test("a budget in turns limits the messages, and a budget in dollars refuses an agent whose price is unknown", async () => {
    const partner = await Partner.open(() => "Done");
    const { runtime } = await open();
    const capped = await runtime.submit(hire(partner.card, { budget: { maxCostUsd: 1 } }), "Hello");
    expect((await capped.result()).error).toMatchObject({ code: "unknown_price" });
    const none = await runtime.submit(hire(partner.card, { budget: { maxTurns: 0 } }), "Hello");
    expect((await none.result()).status).toBe("budget_exhausted");
    expect(partner.received).toEqual([]);
  });

  test("a question of the task is asked here, and the answer is sent as its next message", async () => {
    const partner = await Partner.open((text, task) => (task === undefined ? "ask" : `Rain in ${text}`));
    const { runtime } = await open();
    const run = await runtime.submit(hire(partner.card), "How is the weather?");
    const [asked] = await run.untilPersonIsNeeded();
    expect(asked).toMatchObject({ kind: "question", input: { question: "Which city?" } });
    await run.approve(asked?.approvalId ?? "", { decision: "approved", input: "Rome" });
    const { output, turns } = await run.result();
    expect([output, turns]).toEqual(["Rain in Rome.", 2]);
    expect(partner.received.map(({ taskId }) => taskId === "")).toEqual([false, false]);
  });

  test("a task that fails there fails here with its reason", async () => {
    const partner = await Partner.open(() => "fail");
    const { runtime } = await open();
    const run = await runtime.submit(hire(partner.card), "Hello");
    expect((await run.result()).error).toMatchObject({
      code: "child_failed",
      message: expect.stringContaining("no such city") as unknown,
    });
  });

  test("a cancel and a deadline end the task of the other side", async () => {
    const partner = await Partner.open(() => "wait");
    const { runtime } = await open();
    const run = await runtime.submit(hire(partner.card), "Hello");
    await eventually(() => partner.received.length === 1);
    await eventually(async () => (await remoteEvents(run)).includes("task_started"));
    await run.cancel();
    expect((await run.result()).status).toBe("cancelled");
    expect(partner.cancelled).toHaveLength(1);
    const late = await runtime.submit(hire(partner.card, { budget: { deadlineMs: 300 } }), "Hello");
    expect((await late.result()).status).toBe("deadline_exceeded");
    expect(partner.cancelled).toHaveLength(2);
  });

  test("a runtime that takes over a remote task subscribes to it and sends nothing again", async () => {
    const partner = await Partner.open(() => "wait");
    const { runtime, store } = await open();
    const agent = hire(partner.card);
    const run = await runtime.submit(agent, "Hello");
    await eventually(async () => (await remoteEvents(run)).includes("task_started"));
    await runtime.close();
    const { runtime: next } = await open(store);
    next.register(agent);
    const taken = await next.find(run.runId);
    if (taken === undefined) throw new Error("the run is gone");
    await eventually(() => partner.methods.filter((method) => method === "SubscribeToTask").length === 2);
    partner.gate.resolve();
    expect((await taken.result()).output).toBe("wait.");
    expect(await remoteEvents(taken)).toEqual(["task_started", "task_resumed"]);
    expect([partner.received.length, partner.cancelled.length]).toEqual([1, 0]);
  });

  test("a message whose answer is lost is looked for, and is not sent again", async () => {
    const partner = await Partner.open(() => "Done");
    const { runtime } = await open();
    partner.cuts = 1;
    const run = await runtime.submit(hire(partner.card), "Hello");
    expect((await run.result()).output).toBe("Done.");
    expect(partner.received).toHaveLength(1);
    expect(await remoteEvents(run)).toContain("unreachable");
  });

  test("a remote agent refuses wrong options, cards of other origins and addresses without a card", async () => {
    expect(() => remoteAgent({ name: "x", card: "ftp://x" })).toThrow(/invalid card/u);
    expect(() => remoteAgent({ name: "x", card: "http://x", model: scriptedModel([]) } as never)).toThrow(
      /model/u,
    );
    expect(() => remoteAgent({ name: "x" } as never)).toThrow(/card/u);
    const partner = await Partner.open(() => "Done");
    const { runtime } = await open();
    const elsewhere = createHttpServer((_, response) => response.end(JSON.stringify(cardOf(partner.url))));
    await new Promise<void>((resolve) => void elsewhere.listen(0, "127.0.0.1", resolve));
    closing.push(() => new Promise((resolve) => void elsewhere.close(resolve)));
    const url = `http://127.0.0.1:${(elsewhere.address() as AddressInfo).port}/card`;
    const other = await runtime.submit(hire(url), "Hello");
    expect((await other.result()).error).toMatchObject({
      code: "agent_protocol",
      message: expect.stringContaining("only to the origin of the card") as unknown,
    });
    const absent = await runtime.submit(hire(`${partner.url}/none`), "Hello");
    expect((await absent.result()).error).toMatchObject({ code: "agent_protocol" });
    expect(partner.received).toEqual([]);
  });
});

describe("two servers of Reeve", () => {
  const send = tool({
    name: "send",
    description: "Sends a letter.",
    inputSchema: { type: "object" },
    needsApproval: true,
    execute: () => "sent",
  });

  async function cardsOf(
    server: TestServer,
  ): Promise<(agent: string) => Pick<RemoteAgentOptions, "card" | "headers">> {
    const token = await server.tokenOf("acme", "run", "ann");
    return (agent) => ({
      card: `${server.url}/a2a/${agent}/.well-known/agent-card.json`,
      headers: { authorization: `Bearer ${token}` },
    });
  }

  async function serve(agents: readonly Agent[]): Promise<TestServer> {
    const server = await startServer(agents);
    closing.push(() => server.close());
    return server;
  }

  test("two servers hire each other's agents, with one run on each side, and questions and cancels cross over", async () => {
    const scribe = new Agent({ name: "scribe", model: scriptedModel(["Written."]) });
    const first = await serve([scribe]);
    const cardsOfFirst = await cardsOf(first);
    const desk = new OrchestratorAgent({
      name: "desk",
      model: scriptedModel([
        { toolCalls: [{ name: "send", input: {} }] },
        { toolCalls: [{ name: "handoff_writer", input: { task: "Write" } }] },
        "The desk is done.",
        { toolCalls: [{ name: "send", input: {} }] },
      ]),
      tools: [send],
      subAgents: [remoteAgent({ name: "writer", description: "Writes", ...cardsOfFirst("scribe") })],
    });
    const second = await serve([desk]);
    const cardsOfSecond = await cardsOf(second);
    const lead = new OrchestratorAgent({
      name: "lead",
      model: scriptedModel([
        { toolCalls: [{ name: "handoff_desk", input: { task: "Handle it" } }] },
        "All done.",
      ]),
      subAgents: [remoteAgent({ name: "desk", description: "Handles letters", ...cardsOfSecond("desk") })],
    });
    const run = await first.runtime.submit(lead, "Go");
    const [asked] = await run.untilPersonIsNeeded();
    expect(asked).toMatchObject({ input: { question: expect.stringContaining("call send") as unknown } });
    await run.approve(asked?.approvalId ?? "", { decision: "approved" });
    expect((await run.result()).output).toBe("All done.");
    const there = (await second.runtime.list()).runs;
    expect(there.map(({ agentId, status, tenantId, userId }) => [agentId, status, tenantId, userId])).toEqual(
      [["desk", "completed", "acme", "ann"]],
    );
    const here = (await first.runtime.list()).runs;
    expect(here.map(({ agentId }) => agentId).toSorted()).toEqual(["lead", "scribe"]);
    const direct = await first.runtime.submit(
      remoteAgent({ name: "desk2", ...cardsOfSecond("desk") }),
      "Again",
    );
    await direct.untilPersonIsNeeded();
    await direct.cancel();
    expect((await direct.result()).status).toBe("cancelled");
    await eventually(async () => (await second.runtime.list()).runs[0]?.status === "cancelled");
  });
});
