import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { Agent } from "../../../src/assembly/agent.ts";
import { tool } from "../../../src/capabilities/index.ts";
import { formatAgentId, messageText, type HostedAgent } from "../../../src/kernel/index.ts";
import { startServer, type CallOptions, type TestServer } from "../server/test-server.ts";
import { endlessModel } from "./endless-model.ts";
import {
  clientOf,
  collected,
  dataPart,
  folded,
  message,
  stateOf,
  taskOf,
  textOf,
  textPart,
} from "./test-a2a.ts";

const echo = new Agent({
  name: "echo",
  description: "Repeats what it reads",
  model: endlessModel(({ messages }) => {
    const last = messages.at(-1);
    const count = messages.filter(({ role }) => role === "user").length;
    return { deltas: [`${count}: `, last === undefined ? "" : messageText(last)] };
  }),
});
const send = tool({
  name: "send",
  description: "Sends a letter.",
  inputSchema: { type: "object", properties: { to: { type: "string" } } },
  needsApproval: true,
  execute: ({ to }: { readonly to?: string }) => `sent to ${to}`,
});
const where = tool({
  name: "where",
  description: "Returns where the user is.",
  inputSchema: { type: "object" },
  clientSide: true,
});
/** Asks twice before it answers. */
const clerk = new Agent({
  name: "clerk",
  model: endlessModel(({ messages }) => {
    const done = messages.filter(({ role }) => role === "tool").length;
    if (done === 2) return "Both have letters.";
    const to = done === 0 ? "bob" : "eve";
    return {
      text: `I ask about ${to}.`,
      toolCalls: [{ name: "send", input: { to }, callId: `call-${done}` }],
    };
  }),
  tools: [send],
});
const guide = new Agent({
  name: "guide",
  model: endlessModel(({ messages }) => {
    const last = messages.at(-1);
    return last?.role === "tool"
      ? `You are in ${JSON.stringify(last.content[0]?.output)}`
      : { toolCalls: [{ name: "where", input: {}, callId: "where-1" }] };
  }),
  tools: [where],
});
const forecaster = new Agent({
  name: "forecaster",
  input: z.object({ city: z.string() }),
  model: endlessModel(({ messages }) => messages.map((each) => messageText(each)).join("")),
});
const structured: HostedAgent = {
  id: formatAgentId({ name: "structured" }),
  run: async () => ({ sky: "blue" }),
};
const work = { gate: Promise.withResolvers<void>(), started: Promise.withResolvers<void>() };
const slow: HostedAgent = {
  id: formatAgentId({ name: "slow" }),
  run: async (ctx) =>
    ctx.step("work", async () => {
      work.started.resolve();
      await work.gate.promise;
      return "Finished.";
    }),
};
/** Works until it is cancelled. */
const sleeper: HostedAgent = {
  id: formatAgentId({ name: "sleeper" }),
  run: async (ctx) => (await ctx.waitForSignal("never")) ?? null,
};
const broken = new Agent({
  name: "broken",
  retry: { enabled: false },
  model: endlessModel(() => ({ error: Object.assign(new Error("no such model"), { statusCode: 404 }) })),
});

let server: TestServer;
let token: string;

beforeAll(async () => {
  server = await startServer([echo, clerk, guide, forecaster, structured, slow, sleeper, broken]);
  token = await server.tokenOf("acme", "run", "ann");
});
afterAll(async () => {
  work.gate.resolve();
  await server.close();
});

function begin(): void {
  work.gate = Promise.withResolvers();
  work.started = Promise.withResolvers();
}

async function runsOf(agentName: string): Promise<number> {
  return server.runtime.count({ agentName, tenantId: "acme" });
}

const noTenant = { tenant: "" };

describe("the client of @a2a-js/sdk", () => {
  it("the client finds an agent by its card, and reads its description only with a token", async () => {
    const client = await clientOf(server.url, "echo", token);
    const open = await fetch(`${server.url}/a2a/echo/.well-known/agent-card.json`);
    expect(open.status).toBe(200);
    const card = await open.text();
    expect(card).toContain('"protocolVersion":"1.0"');
    expect(card).not.toContain("Repeats what it reads");
    const { description, supportedInterfaces } = await client.getAgentCard();
    expect(description).toBe("Repeats what it reads");
    expect(supportedInterfaces.map(({ url }) => url)).toEqual([`${server.url}/a2a/echo`]);
    const stranger = await clientOf(server.url, "echo", null);
    await expect(stranger.getAgentCard()).rejects.toThrow(/token/u);
    await expect(clientOf(server.url, "nothing", token)).rejects.toThrow(/404/u);
  });

  it("the client sends messages of one context and receives tasks with the answers as artifacts", async () => {
    const client = await clientOf(server.url, "echo", token);
    const first = taskOf(await client.sendMessage(message("turn-1", "hi", { contextId: "talk" })));
    expect([stateOf(first), first.contextId, textOf(first.artifacts[0])]).toEqual([
      "TASK_STATE_COMPLETED",
      "talk",
      "1: hi",
    ]);
    const second = taskOf(await client.sendMessage(message("turn-2", "again", { contextId: "talk" })));
    expect(textOf(second.artifacts[0])).toBe("2: again");
    expect(second.id).not.toBe(first.id);
    const read = await client.getTask({ ...noTenant, id: first.id });
    expect(read).toEqual(first);
    expect(read.history.map(({ messageId }) => messageId)).toEqual(["turn-1"]);
    expect((await client.getTask({ ...noTenant, id: first.id, historyLength: 0 })).history).toEqual([]);
  });

  it("a message that is sent twice starts one task, and the same id with another text is refused", async () => {
    const client = await clientOf(server.url, "echo", token);
    const before = await runsOf("echo");
    const first = taskOf(await client.sendMessage(message("once", "hi")));
    const again = taskOf(await client.sendMessage(message("once", "hi")));
    expect(again).toEqual(first);
    await expect(client.sendMessage(message("once", "other"))).rejects.toThrow(/another input/u);
    expect(await runsOf("echo")).toBe(before + 1);
  });

  it("a stream begins with the task, and a client that folds it holds what GetTask returns", async () => {
    const client = await clientOf(server.url, "echo", token);
    const updates = await collected(client.sendMessageStream(message("streamed", "hello there")));
    expect(updates.map(({ payload }) => payload?.$case)).toContain("artifactUpdate");
    expect(updates.at(-1)?.payload?.$case).toBe("statusUpdate");
    const task = folded(updates);
    const read = await client.getTask({ ...noTenant, id: task.id });
    expect(textOf(task.artifacts[0])).toBe("1: hello there");
    expect(textOf(read.artifacts[0])).toBe("1: hello there");
    expect([task.status, task.metadata, task.history]).toEqual([read.status, read.metadata, read.history]);
  });

  it("a task that asks is answered by its next messages, and a repeated answer does not answer the next question", async () => {
    const client = await clientOf(server.url, "clerk", token);
    const asked = taskOf(await client.sendMessage(message("letters", "Write to both")));
    expect(stateOf(asked)).toBe("TASK_STATE_INPUT_REQUIRED");
    const [words, facts] = asked.status?.message?.parts ?? [];
    expect(words?.content?.value).toContain('The task asks to call send({"to":"bob"})');
    const { questions } = (facts?.content?.value ?? {}) as { questions: { questionId: string }[] };
    const to = { taskId: asked.id };
    await expect(client.sendMessage(message("vague", "do what you want", to))).rejects.toThrow(
      /"approve" or "deny"/u,
    );
    const next = taskOf(await client.sendMessage(message("yes-1", "approve", to)));
    expect([stateOf(next), next.status?.message?.parts[0]?.content?.value]).toEqual([
      "TASK_STATE_INPUT_REQUIRED",
      expect.stringContaining('send({"to":"eve"})'),
    ]);
    const repeated = taskOf(await client.sendMessage(message("yes-1", "approve", to)));
    expect(stateOf(repeated)).toBe("TASK_STATE_INPUT_REQUIRED");
    const old = [dataPart({ questionId: questions[0]?.questionId, approved: true })];
    await expect(client.sendMessage(message("late", old, to))).rejects.toThrow(/no open question/u);
    const updates = await collected(
      client.sendMessageStream(message("no-2", [dataPart({ approved: false, reason: "not eve" })], to)),
    );
    const done = folded(updates);
    expect([stateOf(done), textOf(done.artifacts[0])]).toEqual([
      "TASK_STATE_COMPLETED",
      "Both have letters.",
    ]);
    const run = await server.runtime.find(asked.id);
    const decisions: unknown[] = [];
    for await (const event of run?.events({ follow: false, types: ["approval_decision"] }) ?? [])
      if (event.type === "approval_decision") decisions.push(event.data.decision);
    expect(decisions).toEqual([
      { decision: "approved", by: "ann" },
      { decision: "denied", reason: "not eve", by: "ann" },
    ]);
    expect(taskOf(await client.sendMessage(message("yes-1", "approve", to))).id).toBe(asked.id);
    await expect(client.sendMessage(message("after", "more", to))).rejects.toThrow(/has ended/u);
  });

  it("a call of a client-side tool is answered by a result", async () => {
    const client = await clientOf(server.url, "guide", token);
    const asked = taskOf(await client.sendMessage(message("where", "Where am I?")));
    expect(stateOf(asked)).toBe("TASK_STATE_INPUT_REQUIRED");
    const result = [dataPart({ result: { city: "Rome" } })];
    const done = taskOf(await client.sendMessage(message("rome", result, { taskId: asked.id })));
    expect(textOf(done.artifacts[0])).toContain("Rome");
  });

  it("an agent with schemas takes a data part and answers with one", async () => {
    const client = await clientOf(server.url, "structured", token);
    const done = taskOf(await client.sendMessage(message("sky", [dataPart({ city: "Rome" })])));
    expect(done.artifacts[0]?.parts.map(({ content }) => content)).toEqual([
      { $case: "data", value: { sky: "blue" } },
    ]);
    const reader = await clientOf(server.url, "forecaster", token);
    const read = taskOf(await reader.sendMessage(message("city", [dataPart({ city: "Rome" })])));
    expect(textOf(read.artifacts[0])).toContain("Rome");
    await expect(reader.sendMessage(message("no-sky", [dataPart({ town: 1 })]))).rejects.toThrow(/city/u);
  });

  it("a task that works is subscribed to, listed and cancelled, and a client that leaves does not end it", async () => {
    begin();
    const client = await clientOf(server.url, "slow", token);
    const started = taskOf(await client.sendMessage(message("slow-1", "go", { returnImmediately: true })));
    await work.started.promise;
    const leaving = client.resubscribeTask({ ...noTenant, id: started.id });
    expect((await leaving.next()).value).toMatchObject({ payload: { $case: "task" } });
    await leaving.return(undefined);
    const staying = client.resubscribeTask({ ...noTenant, id: started.id });
    await staying.next();
    const { tasks, totalSize } = await client.listTasks({
      ...noTenant,
      contextId: started.contextId,
      status: 2,
      pageToken: "",
      statusTimestampAfter: undefined,
    });
    expect([tasks.map(({ id }) => id), totalSize]).toEqual([[started.id], 1]);
    work.gate.resolve();
    const updates = await collected(staying);
    expect(updates.at(-1)?.payload?.value).toMatchObject({ status: { state: 3 } });
    await expect(client.cancelTask({ ...noTenant, id: started.id, metadata: undefined })).rejects.toThrow(
      /cannot be cancelled/u,
    );
    await expect(collected(client.resubscribeTask({ ...noTenant, id: started.id }))).rejects.toThrow(
      /has ended/u,
    );
    const sleeping = await clientOf(server.url, "sleeper", token);
    const second = taskOf(await sleeping.sendMessage(message("sleep", "go", { returnImmediately: true })));
    const cancelling = sleeping.cancelTask({ ...noTenant, id: second.id, metadata: undefined });
    expect(stateOf(await cancelling)).toBe("TASK_STATE_CANCELED");
  });

  it("a run that fails is a failed task with the code of the error, without the text of the provider", async () => {
    const client = await clientOf(server.url, "broken", token);
    const failed = taskOf(await client.sendMessage(message("broken", "hi")));
    expect(stateOf(failed)).toBe("TASK_STATE_FAILED");
    expect(JSON.stringify(failed)).not.toContain("no such model");
  });

  it("an image of a message reaches the agent, and ListTasks returns the tasks of the agent in pages", async () => {
    const client = await clientOf(server.url, "echo", token);
    const parts = [
      textPart("look"),
      {
        content: { $case: "raw" as const, value: Buffer.from("png") },
        metadata: undefined,
        filename: "",
        mediaType: "image/png",
      },
    ];
    const seen = taskOf(await client.sendMessage(message("image", parts)));
    expect(stateOf(seen)).toBe("TASK_STATE_COMPLETED");
    const query = {
      ...noTenant,
      contextId: "",
      status: 0,
      pageSize: 2,
      statusTimestampAfter: undefined,
      includeArtifacts: true,
    };
    const page = await client.listTasks({ ...query, pageToken: "" });
    expect(page.tasks[0]?.id).toBe(seen.id);
    expect(textOf(page.tasks[0]?.artifacts[0])).toContain("look");
    const next = await client.listTasks({ ...query, pageToken: page.nextPageToken });
    expect(next.tasks.map(({ id }) => id)).not.toContain(seen.id);
  });

  it("tasks of another tenant, user or agent do not exist", async () => {
    const client = await clientOf(server.url, "echo", token);
    const { id } = taskOf(
      await client.sendMessage(message("private", "secret", { contextId: "talk-private" })),
    );
    const eve = await clientOf(server.url, "echo", await server.tokenOf("acme", "run", "eve"));
    const other = await clientOf(server.url, "echo", await server.tokenOf("other", "run", "ann"));
    for (const stranger of [eve, other, await clientOf(server.url, "clerk", token)]) {
      const absent = { name: "TaskNotFoundError" };
      await expect(stranger.getTask({ ...noTenant, id })).rejects.toMatchObject(absent);
      await expect(stranger.cancelTask({ ...noTenant, id, metadata: undefined })).rejects.toMatchObject(
        absent,
      );
      await expect(stranger.sendMessage(message("m", "x", { taskId: id }))).rejects.toMatchObject(absent);
      await expect(collected(stranger.resubscribeTask({ ...noTenant, id }))).rejects.toMatchObject(absent);
    }
    const same = taskOf(await eve.sendMessage(message("private", "mine", { contextId: "talk-private" })));
    expect([same.id === id, textOf(same.artifacts[0])]).toEqual([false, "1: mine"]);
  });
});

describe("a server of A2A", () => {
  const rpc = (method: string, params: unknown, id: unknown = 1) => ({ jsonrpc: "2.0", id, method, params });
  const post = (body: unknown, options: CallOptions = {}) =>
    server.call("POST", "/a2a/echo", { token, body, headers: { "a2a-version": "1.0" }, ...options });
  const plain = (text: string) => ({ messageId: "m-1", role: "ROLE_USER", parts: [{ text }] });

  it("the server answers bad requests with an error of JSON-RPC and starts nothing", async () => {
    const before = await runsOf("echo");
    const cases: readonly (readonly [string, unknown, CallOptions, number, number, string])[] = [
      ["malformed", "{", {}, 400, -32_700, "not JSON"],
      ["list", [rpc("GetTask", {})], {}, 400, -32_600, "one request"],
      ["no version of JSON-RPC", { id: 1, method: "GetTask" }, {}, 400, -32_600, "2.0"],
      ["no id", { jsonrpc: "2.0", method: "GetTask" }, {}, 400, -32_600, "id"],
      ["unknown method", rpc("Dance", {}), {}, 200, -32_601, "Dance"],
      ["old method", rpc("message/send", {}), {}, 200, -32_601, "SendMessage"],
      ["no version", rpc("GetTask", { id: "x" }), { headers: {} }, 200, -32_009, "A2A-Version: 1.0"],
      [
        "old version",
        rpc("GetTask", { id: "x" }),
        { headers: { "a2a-version": "0.3" } },
        200,
        -32_009,
        "0.3",
      ],
      ["no message", rpc("SendMessage", {}), {}, 200, -32_602, "message"],
      [
        "empty part",
        rpc("SendMessage", { message: { ...plain("x"), parts: [{}] } }),
        {},
        200,
        -32_602,
        "parts/0",
      ],
      ["empty text", rpc("SendMessage", { message: plain("") }), {}, 200, -32_602, "no text"],
      [
        "role",
        rpc("SendMessage", { message: { ...plain("x"), role: "ROLE_AGENT" } }),
        {},
        200,
        -32_602,
        "ROLE_USER",
      ],
      ["tenant", rpc("SendMessage", { tenant: "other", message: plain("x") }), {}, 200, -32_602, "tenant"],
      ["unknown task", rpc("GetTask", { id: "run_none" }), {}, 200, -32_001, "run_none"],
      ["page", rpc("ListTasks", { pageSize: 0 }), {}, 200, -32_602, "pageSize"],
      ["time", rpc("ListTasks", { statusTimestampAfter: "soon" }), {}, 200, -32_602, "soon"],
      ["push", rpc("CreateTaskPushNotificationConfig", {}), {}, 200, -32_003, "SubscribeToTask"],
      ["no token", rpc("GetTask", { id: "x" }), { token: null }, 401, -32_000, "token"],
      ["10 MB", rpc("SendMessage", { message: plain("x".repeat(17_000_000)) }), {}, 413, -32_000, "bytes"],
    ];
    for (const [name, body, options, status, code, text] of cases) {
      const { json, status: found } = await post(body, options);
      const { error, jsonrpc } = json as { error?: { code: number; message: string }; jsonrpc?: string };
      expect([name, jsonrpc, found, error?.code, error?.message.includes(text) ?? false]).toEqual([
        name,
        "2.0",
        status,
        code,
        true,
      ]);
    }
    expect(await runsOf("echo")).toBe(before);
    expect(server.errors).toEqual([]);
  });

  it("the server accepts a message of 10 MB, and gives the error the id of its request", async () => {
    const long = await post(
      rpc("SendMessage", { message: { ...plain("x".repeat(10_000_000)), messageId: "long" } }),
    );
    expect(long.status).toBe(200);
    expect((await post(rpc("GetTask", { id: "none" }, "call-7"))).json["id"]).toBe("call-7");
    const readOnly = await server.tokenOf("acme", "read", "ann");
    expect((await post(rpc("GetTask", { id: "none" }), { token: readOnly })).status).toBe(403);
  });

  it("two clients that send the same message at once start one task", async () => {
    const client = await clientOf(server.url, "echo", token);
    const tasks = await Promise.all(
      Array.from({ length: 5 }, () => client.sendMessage(message("at-once", "hi", { contextId: "race" }))),
    );
    expect(new Set(tasks.map((each) => taskOf(each).id)).size).toBe(1);
  });

  it("the card at the root is that of the only agent", async () => {
    const path = "/.well-known/agent-card.json";
    expect((await server.call("GET", path, { token: null })).status).toBe(404);
    const single = await startServer([echo]);
    const { json } = await single.call("GET", path, {
      token: null,
      headers: { "x-forwarded-proto": "https" },
    });
    expect(json).toMatchObject({
      name: "echo",
      supportedInterfaces: [{ url: `${single.url.replace("http:", "https:")}/a2a/echo` }],
    });
    await single.close();
  });
});
