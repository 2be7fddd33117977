import type { ServerResponse } from "node:http";
import {
  answerEvents,
  answerJson,
  eventsOf,
  MockUpstream,
  type Received,
} from "../../capabilities/gateway/mock-upstream.ts";

/** Dollars per token, for every model. */
export const inputUsd = 3e-6;
export const outputUsd = 15e-6;
/** Output tokens of an answer whose limit allows them. */
const mostOutputTokens = 400;

interface Asked {
  readonly system?: unknown;
  readonly messages?: unknown;
  readonly instructions?: unknown;
  readonly input?: unknown;
  readonly max_tokens?: number;
  readonly max_output_tokens?: number;
  readonly stream?: boolean;
  readonly model?: string;
  readonly tools?: readonly { readonly name?: string }[];
}

/** What an answer is billed for. */
interface Counts {
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/** A provider with two protocols. Each answer asks for another command, and the provider bills what it answers. */
export class EndlessProvider {
  billedUsd = 0;
  requests = 0;
  readonly #upstream: MockUpstream;

  private constructor(upstream: MockUpstream) {
    this.#upstream = upstream;
  }

  static async open(): Promise<EndlessProvider> {
    const upstream = await MockUpstream.open(() => undefined);
    const provider = new EndlessProvider(upstream);
    upstream.answer = (received, response) => provider.#answer(received, response);
    return provider;
  }

  get url(): string {
    return this.#upstream.url;
  }

  close(): Promise<void> {
    return this.#upstream.close();
  }

  #answer({ path, body }: Received, response: ServerResponse): void {
    const asked = JSON.parse(body.toString()) as Asked;
    const inputTokens = inputOf(asked);
    if (path.includes("count_tokens")) return answerJson(response, { input_tokens: inputTokens });
    this.requests++;
    // As a real provider, it writes no more than the request allows.
    const { max_tokens, max_output_tokens = max_tokens ?? mostOutputTokens } = asked;
    const outputTokens = Math.min(mostOutputTokens, max_output_tokens);
    this.billedUsd += inputTokens * inputUsd + outputTokens * outputUsd;
    const counts = { inputTokens, outputTokens };
    const id = `call_${this.requests}`;
    if (path.startsWith("/v1/responses")) answerResponse(response, asked, id, counts);
    else answerMessage(response, asked, id, counts);
  }
}

/**
 * Counts the tokens of the members that a model reads, so that the count of a request equals what its call is billed
 * for.
 */
function inputOf({ system, messages, tools, instructions, input }: Asked): number {
  return Math.ceil(JSON.stringify([system, messages, tools, instructions, input]).length / 4);
}

/** Answers in the protocol of Anthropic: with a call of the shell, or with a text if the program offers no shell. */
function answerMessage(
  response: ServerResponse,
  { model, tools = [], stream }: Asked,
  id: string,
  { inputTokens, outputTokens }: Counts,
): void {
  const shell = tools.find(({ name }) => name === "Bash" || name === "bash");
  const input = { command: `echo ${id}`, description: "Prints a line" };
  const block =
    shell === undefined
      ? { type: "text", text: "A title" }
      : { type: "tool_use", id: `toolu_${id}`, name: shell.name, input };
  const stop_reason = shell === undefined ? "end_turn" : "tool_use";
  const usage = { input_tokens: inputTokens, output_tokens: outputTokens };
  const message = { id: `msg_${id}`, type: "message", role: "assistant", model, stop_sequence: null };
  if (stream !== true) return answerJson(response, { ...message, content: [block], stop_reason, usage });
  const start = { ...message, content: [], stop_reason: null, usage: { ...usage, output_tokens: 1 } };
  const delta =
    shell === undefined
      ? { type: "text_delta", text: "A title" }
      : { type: "input_json_delta", partial_json: JSON.stringify(input) };
  const events = [
    { type: "message_start", message: start },
    {
      type: "content_block_start",
      index: 0,
      content_block: shell === undefined ? { type: "text", text: "" } : { ...block, input: {} },
    },
    { type: "content_block_delta", index: 0, delta },
    { type: "content_block_stop", index: 0 },
    {
      type: "message_delta",
      delta: { stop_reason, stop_sequence: null },
      usage: { output_tokens: outputTokens },
    },
    { type: "message_stop" },
  ];
  answerEvents(response, events.map((event) => `event: ${event.type}\n${eventsOf(event)}`).join(""));
}

/** The arguments with which each shell tool of Codex is called. */
const shells: Readonly<Record<string, (line: string) => object>> = {
  exec_command: (line) => ({ cmd: line }),
  shell_command: (line) => ({ command: line }),
  shell: (line) => ({ command: ["sh", "-c", line] }),
};

/** Answers in the protocol of OpenAI's responses API. */
function answerResponse(
  response: ServerResponse,
  { model, tools = [] }: Asked,
  id: string,
  { inputTokens, outputTokens }: Counts,
): void {
  const shell = tools.find(({ name = "" }) => shells[name] !== undefined)?.name;
  const item =
    shell === undefined
      ? {
          type: "message",
          id: `item_${id}`,
          role: "assistant",
          status: "completed",
          content: [{ type: "output_text", text: "A title", annotations: [] }],
        }
      : {
          type: "function_call",
          id: `item_${id}`,
          call_id: id,
          status: "completed",
          name: shell,
          arguments: JSON.stringify(shells[shell]?.(`echo ${id}`)),
        };
  const usage = {
    input_tokens: inputTokens,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: outputTokens,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: inputTokens + outputTokens,
  };
  const whole = { id: `resp_${id}`, object: "response", model, status: "completed", output: [item], usage };
  const events = [
    { type: "response.created", response: { ...whole, status: "in_progress", output: [], usage: null } },
    { type: "response.output_item.added", output_index: 0, item: { ...item, status: "in_progress" } },
    { type: "response.output_item.done", output_index: 0, item },
    { type: "response.completed", response: whole },
  ];
  answerEvents(response, events.map((event) => `event: ${event.type}\n${eventsOf(event)}`).join(""));
}
