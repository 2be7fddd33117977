import OpenAI, { APIError } from "openai";
import type {
  ChatCompletionChunk,
  ChatCompletionCreateParams,
  ChatCompletionMessageParam,
} from "openai/resources";
import { Agent } from "../../../src/assembly/agent.ts";
import { tool } from "../../../src/capabilities/index.ts";
import {
  Fault,
  formatAgentId,
  messageText,
  type HostedAgent,
  type Runtime,
  type RunSummary,
} from "../../../src/kernel/index.ts";
import { startServer, type TestServer } from "../server/test-server.ts";
import { endlessModel } from "./endless-model.ts";

const usage = { inputTokens: 7, outputTokens: 3, cacheReadTokens: 2, reasoningTokens: 1 };

export const echoModel = endlessModel(({ messages }) => {
  const last = messages.at(-1);
  return { deltas: ["You said ", `${last === undefined ? "" : messageText(last)}.`], usage };
});
/** An agent that answers each message with its text. */
export const echo = new Agent({ name: "echo", model: echoModel, instructions: "Repeat." });

const send = tool({
  name: "send",
  description: "Sends a letter.",
  inputSchema: { type: "object", properties: {} },
  needsApproval: true,
  execute: () => "sent",
});
const asking = { text: "I ask first.", toolCalls: [{ name: "send", input: {} }], usage };
/** An agent that asks a person before it answers. */
const clerk = new Agent({
  name: "clerk",
  model: endlessModel(({ messages }) =>
    messages.some(({ role }) => role === "tool") ? { text: "Done.", usage } : asking,
  ),
  tools: [send],
});

/** An agent that delegates to a worker, so that the run has two tasks. */
const boss = new Agent({
  name: "boss",
  model: endlessModel(({ messages }) =>
    messages.at(-1)?.role === "tool"
      ? { text: "Both done.", usage }
      : { text: "I delegate.", toolCalls: [{ name: "worker", input: { task: "Help" } }], usage },
  ),
  tools: [
    new Agent({
      name: "worker",
      description: "Helps",
      model: endlessModel(() => ({ text: "Helped.", usage })),
    }).asTool(),
  ],
});

const structured = new Agent({ name: "structured", model: endlessModel(() => '{"sky":"blue"}') });

/** Calls the client's function `weather`, twice if the user says so, and answers with what it returns. */
export const helperModel = endlessModel(({ messages, tools = [] }) => {
  const results = messages.flatMap(({ role, content }) =>
    role === "tool" ? (content as readonly unknown[]) : [],
  );
  if (results.length > 0) {
    const texts = results.map((each) => (each as { readonly output: { readonly text: string } }).output.text);
    return { text: `It is ${texts.join(", ")}.`, usage };
  }
  const call = { name: "weather", input: { city: "Blois" } };
  const isTwice = messages.some((message) => messageText(message).includes("Twice"));
  if (tools.length === 0) return { text: "I cannot know.", usage };
  return { text: "I ask.", toolCalls: isTwice ? [call, call] : [call], usage };
});
const helper = new Agent({ name: "helper", model: helperModel });

/** Thinks before it answers. */
const thinker = new Agent({
  name: "thinker",
  model: endlessModel(() => ({ reasoning: "I think.", text: "Because.", usage })),
});

/** Breaks the connection after the first words of every other answer. */
let attempts = 0;
const broken = new Agent({
  name: "broken",
  model: endlessModel(() =>
    attempts++ % 2 === 0
      ? { reasoning: "Hm.", deltas: ["Lost "], cut: true }
      : { reasoning: "So.", deltas: ["Found ", "again."], usage },
  ),
  retry: { baseDelayMs: 1 },
});

/** What the agent `slow` waits for, and what it has reached. */
export const work = { gate: Promise.withResolvers<void>(), started: Promise.withResolvers<void>() };

/** An agent that works until the test opens the gate. */
const slow: HostedAgent = {
  id: formatAgentId({ name: "slow" }),
  run: async (ctx) =>
    ctx.step("work", async () => {
      work.started.resolve();
      await work.gate.promise;
      return "Finished.";
    }),
};

const failing: HostedAgent = {
  id: formatAgentId({ name: "failing" }),
  run: async () => {
    throw new Fault("unsupported", "the ledger is away");
  },
};

/** A server and a client of OpenAI with a token of user ann of tenant acme. */
export class OpenAiWorld {
  readonly server: TestServer;
  readonly client: OpenAI;
  #sessions = 0;

  static async open(): Promise<OpenAiWorld> {
    const server = await startServer([echo, clerk, boss, structured, helper, thinker, broken, slow, failing]);
    return new OpenAiWorld(server, await server.tokenOf("acme", "run", "ann"));
  }

  private constructor(server: TestServer, token: string) {
    this.server = server;
    this.client = this.clientWith(token);
  }

  clientWith(apiKey: string): OpenAI {
    return new OpenAI({ baseURL: `${this.server.url}/v1`, apiKey });
  }

  /** Forgets the requests so far, and lets the agent `slow` start again. */
  begin(): void {
    this.server.requests.splice(0);
    work.gate = Promise.withResolvers();
    work.started = Promise.withResolvers();
  }

  /** Options of a request in a new session. */
  newSession(): { readonly headers: { readonly "x-reeve-session": string } } {
    return { headers: { "x-reeve-session": `talk-${this.#sessions++}` } };
  }

  /** Number of completions that the server was asked for. */
  get posts(): number {
    return this.server.requests.filter((each) => each === "POST /v1/chat/completions").length;
  }

  get view(): Runtime {
    return this.server.runtime.forTenant({ tenantId: "acme", userId: "ann" });
  }

  async runsOf(agentId: string): Promise<readonly RunSummary[]> {
    return (await this.view.list({ agentId, limit: 500 })).runs;
  }

  /** Reads a streamed answer to its end. */
  async streamed(
    body: Omit<ChatCompletionCreateParams, "stream">,
    options: object = {},
  ): Promise<{ readonly chunks: readonly ChatCompletionChunk[]; readonly text: string }> {
    const stream = await this.client.chat.completions.create({ ...body, stream: true }, options);
    const chunks: ChatCompletionChunk[] = [];
    for await (const chunk of stream) chunks.push(chunk);
    return { chunks, text: chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join("") };
  }
}

export function user(content: string): ChatCompletionMessageParam {
  return { role: "user", content };
}

/** The error with which a request of the client fails. */
export async function thrownBy(request: PromiseLike<unknown>): Promise<APIError> {
  try {
    await request;
  } catch (error) {
    if (error instanceof APIError) return error;
    throw error;
  }
  throw new Error("the request has succeeded");
}
