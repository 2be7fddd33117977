import type * as Sdk from "@agentclientprotocol/sdk";
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { Fault } from "../../kernel/index.ts";
import { absent } from "../files/error-code.ts";
import type { AcpSdk } from "./agent-connection.ts";
import { loadAcpSdk } from "./hired-architecture.ts";

/** What the demo agent reads and writes. */
export interface DemoProcess {
  readonly stdin: Readable;
  readonly stdout: Writable;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** A message of the wire of Anthropic. */
interface Said {
  readonly role: "user" | "assistant";
  readonly content: readonly Block[];
}

type Block =
  | { readonly type: "text"; readonly text: string }
  | {
      readonly type: "tool_use";
      readonly id: string;
      readonly name: string;
      readonly input: { readonly command?: unknown };
    }
  | {
      readonly type: "tool_result";
      readonly tool_use_id: string;
      readonly content: string;
      readonly is_error: boolean;
    };

type ToolUse = Extract<Block, { type: "tool_use" }>;

const shellTool = {
  name: "shell",
  description: "Runs a shell command in the folder",
  input_schema: { type: "object", properties: { command: { type: "string" } }, required: ["command"] },
};

/**
 * A small coding agent that speaks the Agent Client Protocol: one tool, a shell, and a model behind the gateway. It stores
 * each session in its home folder after each step, so that another process can load it. It is for demos and tests.
 */
async function runDemoAgent(sdk: AcpSdk, { stdin, stdout, env }: DemoProcess): Promise<void> {
  const stream = sdk.ndJsonStream(
    Writable.toWeb(stdout),
    Readable.toWeb(stdin) as ReadableStream<Uint8Array>,
  );
  const sessions = new Map<string, DemoSession>();
  const folder = join(env["HOME"] ?? homedir(), ".reeve-demo-agent");
  const find = (sessionId: string): DemoSession => {
    const session = sessions.get(sessionId);
    if (session === undefined) throw new sdk.RequestError(-32_002, `no session ${sessionId}`);
    return session;
  };
  const { methods } = sdk;
  const connection = sdk
    .agent({ name: "reeve-demo-agent" })
    .onRequest(methods.agent.initialize, () => ({
      protocolVersion: sdk.PROTOCOL_VERSION,
      agentInfo: { name: "reeve-demo-agent", version: "1" },
      agentCapabilities: { loadSession: true, _meta: { steering: { supported: true } } },
      authMethods: [],
    }))
    .onRequest(methods.agent.session.new, async ({ params, client }) => {
      const session = new DemoSession(sdk, client, { folder, cwd: params.cwd, env });
      await session.store();
      sessions.set(session.id, session);
      return { sessionId: session.id };
    })
    .onRequest(methods.agent.session.load, async ({ params, client }) => {
      const { sessionId, cwd } = params;
      const session = new DemoSession(sdk, client, { folder, cwd, env, id: sessionId });
      if (!(await session.load())) throw new sdk.RequestError(-32_603, `no session ${sessionId}`);
      sessions.set(sessionId, session);
      return {};
    })
    .onRequest(methods.agent.session.prompt, ({ params }) => find(params.sessionId).prompt(params.prompt))
    .onNotification(methods.agent.session.cancel, ({ params }) => find(params.sessionId).cancel())
    .onRequest("_session/steering", readSteering, ({ params }) => {
      find(params.sessionId).steer(textOf(params.prompt));
      return { outcome: "injected" };
    })
    .connect(stream);
  await connection.closed;
}

/** Runs the demo agent with the packages of the protocol, as `reeve demo --agent` does. */
export async function serveDemoAgent(streams: DemoProcess): Promise<void> {
  return runDemoAgent(await loadAcpSdk("the demo agent"), streams);
}

function readSteering(params: unknown): { readonly sessionId: string; readonly prompt: Sdk.ContentBlock[] } {
  return params as { readonly sessionId: string; readonly prompt: Sdk.ContentBlock[] };
}

function textOf(prompt: readonly Sdk.ContentBlock[]): string {
  return prompt.map((block) => (block.type === "text" ? block.text : `[${block.type}]`)).join("\n");
}

interface DemoPlace {
  /** The folder of the stored sessions. */
  readonly folder: string;
  readonly cwd: string;
  readonly env: DemoProcess["env"];
  /** Id of a stored session. Default: a new one. */
  readonly id?: string;
}

class DemoSession {
  readonly id: string;
  readonly #sdk: AcpSdk;
  readonly #client: Sdk.AgentContext;
  readonly #place: DemoPlace;
  #said: Said[] = [];
  #steering: string[] = [];
  #cancel = new AbortController();

  constructor(sdk: AcpSdk, client: Sdk.AgentContext, place: DemoPlace) {
    this.id = place.id ?? randomUUID();
    this.#sdk = sdk;
    this.#client = client;
    this.#place = place;
  }

  /** Reads the session and reports its messages. Returns whether it exists. */
  async load(): Promise<boolean> {
    const text = await readFile(this.#file, "utf8").catch(absent);
    if (text === undefined) return false;
    this.#said = JSON.parse(text) as Said[];
    for (const { role, content } of this.#said)
      for (const block of content)
        if (block.type === "text")
          await this.#update({
            sessionUpdate: role === "user" ? "user_message_chunk" : "agent_message_chunk",
            content: block,
          });
    return true;
  }

  async store(): Promise<void> {
    await mkdir(this.#place.folder, { recursive: true });
    await writeFile(`${this.#file}.new`, JSON.stringify(this.#said));
    await rename(`${this.#file}.new`, this.#file);
  }

  steer(text: string): void {
    this.#steering.push(text);
  }

  cancel(): void {
    this.#cancel.abort();
  }

  async prompt(prompt: readonly Sdk.ContentBlock[]): Promise<Sdk.PromptResponse> {
    this.#cancel = new AbortController();
    const { signal } = this.#cancel;
    // A process that ended in the middle of a call has left it without a result.
    this.#say("user", [...this.#interrupted(), { type: "text", text: textOf(prompt) }]);
    await this.store();
    try {
      for (;;) {
        const content = await this.#ask(signal);
        this.#say("assistant", content);
        await this.store();
        const messageId = randomUUID();
        for (const block of content)
          if (block.type === "text")
            await this.#update({ sessionUpdate: "agent_message_chunk", content: block, messageId });
        const calls = content.filter((block) => block.type === "tool_use");
        const steering = this.#steering.splice(0);
        if (calls.length === 0 && steering.length === 0) return { stopReason: "end_turn" };
        const results: Block[] = [];
        for (const call of calls) results.push(await this.#call(call, signal));
        this.#say("user", [...results, ...steering.map((text) => ({ type: "text", text }) as const)]);
        await this.store();
      }
    } catch (error) {
      if (signal.aborted) return { stopReason: "cancelled" };
      throw error;
    }
  }

  get #file(): string {
    return join(this.#place.folder, `${this.id.replaceAll(/[^A-Za-z0-9-]/gu, "")}.json`);
  }

  #say(role: Said["role"], content: readonly Block[]): void {
    this.#said.push({ role, content });
  }

  #interrupted(): readonly Block[] {
    const last = this.#said.at(-1);
    if (last?.role !== "assistant") return [];
    const calls = last.content.filter((block) => block.type === "tool_use");
    return calls.map(({ id }) => ({
      type: "tool_result",
      tool_use_id: id,
      content: "[interrupted]",
      is_error: true,
    }));
  }

  async #ask(signal: AbortSignal): Promise<readonly Block[]> {
    const { env } = this.#place;
    const response = await fetch(`${env["ANTHROPIC_BASE_URL"]}/v1/messages`, {
      method: "POST",
      signal,
      headers: {
        "content-type": "application/json",
        "anthropic-version": "2023-06-01",
        authorization: `Bearer ${env["ANTHROPIC_AUTH_TOKEN"]}`,
      },
      body: JSON.stringify({
        model: env["ANTHROPIC_MODEL"] ?? "claude-sonnet-4-5",
        max_tokens: 1_000,
        messages: this.#said,
        tools: [shellTool],
      }),
    });
    const answer = (await response.json()) as {
      readonly content: readonly Block[];
      readonly error?: { readonly message: string };
    };
    if (response.ok) return answer.content;
    throw new this.#sdk.RequestError(-32_603, `API Error: ${response.status} ${answer.error?.message ?? ""}`);
  }

  async #call({ id, name, input: rawInput }: ToolUse, signal: AbortSignal): Promise<Block> {
    const command = String(rawInput.command);
    const call = { toolCallId: id, name, kind: "execute", title: command, rawInput } as const;
    await this.#update({ sessionUpdate: "tool_call", ...call, status: "pending" });
    const { methods } = this.#sdk;
    const request: Sdk.RequestPermissionRequest = {
      sessionId: this.id,
      toolCall: call,
      options: [
        { optionId: "yes", name: "Yes", kind: "allow_once" },
        { optionId: "always", name: "Always", kind: "allow_always" },
        { optionId: "no", name: "No", kind: "reject_once" },
      ],
    };
    const { outcome } = await this.#client.request(methods.client.session.requestPermission, request);
    signal.throwIfAborted();
    const isAllowed = outcome.outcome === "selected" && outcome.optionId === "yes";
    const { text, isError } = isAllowed
      ? await this.#run(command, signal)
      : { text: "The user refused the command.", isError: true };
    await this.#update({
      sessionUpdate: "tool_call_update",
      toolCallId: id,
      status: isError ? "failed" : "completed",
      content: [{ type: "content", content: { type: "text", text } }],
    });
    return { type: "tool_result", tool_use_id: id, content: text, is_error: isError };
  }

  #run(command: string, signal: AbortSignal): Promise<{ readonly text: string; readonly isError: boolean }> {
    const { cwd } = this.#place;
    return new Promise((resolve, reject) => {
      const child = spawn("/bin/sh", ["-c", command], { cwd, signal, stdio: ["ignore", "pipe", "pipe"] });
      let text = "";
      for (const stream of [child.stdout, child.stderr])
        stream.setEncoding("utf8").on("data", (piece: string) => (text += piece));
      child.once("error", (error) => reject(Fault.from(error)));
      child.once("close", (code) => resolve({ text, isError: code !== 0 }));
    });
  }

  async #update(update: Sdk.SessionUpdate): Promise<void> {
    const { methods } = this.#sdk;
    await this.#client.notify(methods.client.session.update, { sessionId: this.id, update });
  }
}
