import {
  Fault,
  isChatMessage,
  readProperty,
  rootTaskId,
  type ApprovalDecision,
  type JsonObject,
  type JsonValue,
} from "../../../../kernel/index.ts";
import type { ExitKind } from "../../terminal/exit-code.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import { RequestError } from "../../../client/route-client.ts";
import type { Conversation } from "../client/conversation.ts";
import type { FrontOptions } from "./desk.ts";
import { LineReader } from "./line-reader.ts";
import { isRead, onGone } from "./on-gone.ts";

/**
 * A command of a program in `--mode rpc`. It receives a line with its type and fields, and returns the answer to
 * the line.
 */
type RpcCommand = (chat: RpcChat, line: JsonObject) => Promise<JsonValue>;

/** The commands of `--mode rpc`, with the fields that each command accepts. Other fields are refused. */
const commands: Readonly<Record<string, { readonly takes: readonly string[]; readonly run: RpcCommand }>> = {
  prompt: { takes: ["input"], run: (chat, line) => chat.act(() => chat.conversation.send(inputOf(line))) },
  steer: { takes: ["input"], run: (chat, line) => chat.act(() => chat.conversation.send(inputOf(line))) },
  follow_up: {
    takes: ["input"],
    run: (chat, line) => chat.act(() => chat.conversation.followUp(inputOf(line))),
  },
  abort: {
    takes: [],
    run: async (chat) => ({ restored: await chat.conversation.stop("stopped by a program") }),
  },
  approve: {
    takes: ["approvalId", "decision", "input", "reason", "remember"],
    run: (chat, line) => chat.approve(line),
  },
  compact: { takes: ["instructions"], run: (chat, line) => chat.compact(textOf(line, "instructions")) },
  fork: { takes: ["entryId"], run: (chat, line) => chat.fork(idOf(line, "entryId")) },
  switch: { takes: ["sessionId"], run: (chat, line) => chat.switch(idOf(line, "sessionId")) },
  state: { takes: [], run: async (chat) => chat.state() },
};

/**
 * A chat for programs in any language: each line of stdin is a command as JSON, and each line of stdout is an
 * answer or an event. The chat ends when stdin ends. A run that is still active is then left to other processes.
 */
export function rpcChat(options: FrontOptions): Promise<ExitKind> {
  return new RpcChat(options).run();
}

class RpcChat {
  readonly conversation: Conversation;
  readonly #options: FrontOptions;
  readonly #terminal: Terminal;
  #sessionId: string | undefined;
  #asked = new Set<string>();
  #wasWorking = false;

  constructor(options: FrontOptions) {
    this.#options = options;
    this.#terminal = options.terminal;
    this.conversation = options.converse(
      () => this.#changed(),
      (item) => this.#write({ type: "event", event: item as unknown as JsonValue }),
    );
    this.conversation.onProblem((error) => this.#write({ type: "error", error: errorOf(error) }));
  }

  async run(): Promise<ExitKind> {
    await this.#options.begin(this.conversation);
    this.#write({ type: "ready", ...this.state() });
    const lines = new LineReader(this.#terminal.peer?.lines);
    // Lines that have arrived already are not executed for a program that is gone.
    const stay = onGone(() => lines.close());
    lines.open();
    for (;;) {
      const line = await lines.next();
      if (typeof line !== "string" || !(await isRead(this.#terminal))) break;
      if (line.trim() !== "") await this.#take(line);
    }
    stay();
    lines.close();
    this.conversation.close();
    return "ok";
  }

  /** Executes a command that returns no data in its answer. */
  async act(command: () => Promise<void>): Promise<JsonValue> {
    await command();
    return this.state();
  }

  async approve(line: JsonObject): Promise<JsonValue> {
    const wanted = textOf(line, "approvalId") ?? "";
    if (wanted === "")
      throw new Fault("invalid_argument", "approve lacks the approvalId; the state lists the open questions");
    const question = this.conversation.model.questions.find(({ request }) => request.approvalId === wanted);
    if (question === undefined)
      throw new Fault(
        "not_found",
        `question ${JSON.stringify(wanted)} is not open; the state lists the open ones`,
      );
    const { approvalId: _id, type: _type, id: _line, ...decision } = line;
    await this.conversation.decide(question, decision as unknown as ApprovalDecision);
    return null;
  }

  async compact(instructions: string | undefined): Promise<JsonValue> {
    const { runId } = await this.#options.client.post("/api/sessions/{sessionId}/compaction", {
      params: { sessionId: this.#session() },
      body: { ...(instructions !== undefined && { instructions }) },
    });
    await this.conversation.reopen();
    return { runId };
  }

  async fork(entryId: string | undefined): Promise<JsonValue> {
    const { sessionId } = await this.#options.client.post("/api/sessions/{sessionId}/fork", {
      params: { sessionId: this.#session() },
      body: { ...(entryId !== undefined && { entryId }) },
    });
    await this.conversation.open(sessionId);
    return this.state();
  }

  async switch(sessionId: string | undefined): Promise<JsonValue> {
    if (sessionId === undefined) this.conversation.startNew();
    else await this.conversation.open(sessionId);
    return this.state();
  }

  /** What the chat knows at this moment. */
  state(): JsonObject {
    const { sessionId = null, agent, queue, costUsd, usage = null, model } = this.conversation;
    const root = model.isWorking ? model.view?.tasks.get(rootTaskId) : undefined;
    return {
      sessionId,
      agent,
      model: root?.model ?? usage?.model ?? this.#options.model ?? null,
      isWorking: model.isWorking,
      runId: model.runId ?? null,
      costUsd,
      contextShare: usage?.share ?? null,
      queue: queue.map(({ inputId, kind, input }) => ({ inputId, kind, input })),
      questions: model.questions.map(questionOf),
    };
  }

  #session(): string {
    const { sessionId } = this.conversation;
    if (sessionId !== undefined) return sessionId;
    throw new Fault("not_found", "this conversation has no session yet; send a prompt first");
  }

  async #take(text: string): Promise<void> {
    let id: JsonValue = null;
    try {
      const line = lineOf(text);
      id = line["id"] ?? null;
      const type = textOf(line, "type") ?? "";
      const command = Object.hasOwn(commands, type) ? commands[type] : undefined;
      if (command === undefined)
        throw new Fault(
          "invalid_argument",
          `invalid type ${JSON.stringify(type)}: expected one of ${Object.keys(commands).join(", ")}`,
        );
      const unknown = Object.keys(line).find((name) => !["id", "type", ...command.takes].includes(name));
      if (unknown !== undefined)
        throw new Fault(
          "invalid_argument",
          `unknown field ${JSON.stringify(unknown)} of ${type}: expected ${["id", "type", ...command.takes].join(", ")}`,
        );
      this.#write({ type: "response", id, result: await command.run(this, line) });
    } catch (error) {
      this.#write({ type: "response", id, error: errorOf(error) });
    }
  }

  #changed(): void {
    const { sessionId, model } = this.conversation;
    if (sessionId !== this.#sessionId) {
      this.#sessionId = sessionId;
      this.#write({ type: "session", sessionId: sessionId ?? null });
    }
    for (const question of model.questions) {
      const name = model.nameOf(question);
      if (this.#asked.has(name)) continue;
      this.#asked.add(name);
      this.#write({ type: "question", question: questionOf(question) });
    }
    if (this.#wasWorking && !model.isWorking) this.#write({ type: "idle" });
    this.#wasWorking = model.isWorking;
  }

  #write(line: JsonObject): void {
    // Some programs end a line at these characters, too.
    const text = JSON.stringify(line)
      .replaceAll("\u2028", String.raw`\u2028`)
      .replaceAll("\u2029", String.raw`\u2029`);
    this.#terminal.put(`${text}\n`);
  }
}

function questionOf({ request, agentId, askedAt }: Conversation["model"]["questions"][number]): JsonObject {
  return { ...(request as unknown as JsonObject), agentId, askedAt };
}

function lineOf(text: string): JsonObject {
  const expected = 'expected a JSON object in one line, such as {"type": "prompt", "input": "Hello"}';
  let value: JsonValue;
  try {
    value = JSON.parse(text) as JsonValue;
  } catch {
    throw new Fault("not_json", `invalid line: ${expected}`);
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as JsonObject;
  throw new Fault("invalid_argument", `invalid line: ${expected}`);
}

function inputOf(line: JsonObject): JsonValue {
  const { type, input } = line;
  const isText = typeof input === "string" && input !== "";
  const areParts =
    Array.isArray(input) && input.length > 0 && isChatMessage({ role: "user", content: input });
  if (isText || areParts) return input;
  throw new Fault(
    "invalid_argument",
    `invalid input of ${JSON.stringify(type)}: expected a text that is not empty, or content parts such as [{"type": "text", "text": "Hello"}]`,
  );
}

function textOf(line: JsonObject, name: string): string | undefined {
  const value = readProperty(line, name);
  if (value === undefined || value === null) return undefined;
  if (typeof value === "string") return value;
  throw new Fault("invalid_argument", `invalid ${name} of ${JSON.stringify(line["type"])}: expected a text`);
}

/** Returns the id in a field, or `undefined` if the field is absent. */
function idOf(line: JsonObject, name: string): string | undefined {
  const id = textOf(line, name);
  if (id !== "") return id;
  throw new Fault(
    "invalid_argument",
    `invalid ${name} of ${JSON.stringify(line["type"])}: it is empty; name an id, or leave the field out`,
  );
}

function errorOf(error: unknown): JsonObject {
  if (error instanceof RequestError) return { code: error.code, message: error.message };
  const { code, message } = Fault.from(error);
  return { code, message };
}
