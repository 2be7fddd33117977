import type { IncomingMessage } from "node:http";
import {
  type JsonSchema,
  type JsonValue,
  type Model,
  type ModelRequest,
  type ModelResponse,
  type Tool,
} from "../kernel/index.ts";

/** Address of a `CountingServer` and the name of the caller that uses it. */
export interface ServerAddress {
  readonly url: string;
  readonly caller: string;
  /** Makes a call in place of a request to `url`, for a server in this process. */
  readonly send?: (options: CallOptions) => Promise<Reply>;
}

interface Reply {
  readonly receipt: string;
  readonly answer: JsonValue;
}

/** A call of the counting server. */
export interface CallOptions {
  readonly name: string;
  /** Idempotency key, equal on every attempt. If absent, calls are told apart by `body` within `scope`. */
  readonly key?: string;
  readonly scope?: string;
  readonly body: JsonValue;
  readonly signal?: AbortSignal;
}

/**
 * Calls a `CountingServer`. The result contains the receipt, so that a recorded result proves that the call was
 * answered.
 */
export async function callServer(server: ServerAddress, options: CallOptions): Promise<Reply> {
  if (server.send !== undefined) return server.send(options);
  const { name } = options;
  const { status, text } = await post(`${server.url}/${encodeURIComponent(name)}`, server.caller, options);
  if (status !== 200)
    throw Object.assign(new Error(`${name}: the counting server answered ${text}`), { status });
  return JSON.parse(text) as Reply;
}

/**
 * Uses `node:http` instead of `fetch`, because loading `fetch` takes a quarter of the processor time of a short worker.
 * An `import` of `node:http` reads all its exports, of which some load `fetch`.
 * Each call has a connection of its own, because the server may close an idle one in the moment in which it is used.
 */
function post(
  url: string,
  caller: string,
  { key, scope = "", body, signal }: CallOptions,
): Promise<{ readonly status: number | undefined; readonly text: string }> {
  return new Promise((resolve, reject) => {
    const headers = {
      "x-caller": caller,
      "x-scope": scope,
      ...(key !== undefined && { "idempotency-key": key }),
    };
    const http = process.getBuiltinModule("node:http");
    const answered = (response: IncomingMessage): void => {
      let text = "";
      response.setEncoding("utf8").on("data", (piece: string) => (text += piece));
      response.once("error", reject).once("end", () => resolve({ status: response.statusCode, text }));
    };
    http
      .request(url, { method: "POST", agent: false, headers, ...(signal && { signal }) }, answered)
      .once("error", reject)
      .end(JSON.stringify(body));
  });
}

/**
 * A model that a `CountingServer` plays. Its answers are `ModelResponse`s, with the receipt in the provider metadata of
 * the message. Models get no idempotency key, so the server tells calls apart by their messages within `scope`, such as
 * the run. With `counts`, the server also counts the tokens of a request: a call named `count` whose answer is a number.
 */
export function servedModel(
  server: ServerAddress,
  scope: () => string = () => "",
  { counts = false }: { readonly counts?: boolean } = {},
): Model {
  const generate = async ({ messages }: ModelRequest): Promise<ModelResponse> => {
    const body = messages as unknown as JsonValue;
    const { receipt, answer } = await callServer(server, { name: "model", scope: scope(), body });
    const response = answer as unknown as ModelResponse;
    const providerMetadata = { served: { receipt } };
    return { ...response, message: { ...response.message, providerMetadata } };
  };
  const countTokens = async ({ messages }: ModelRequest): Promise<number> => {
    const body = messages as unknown as JsonValue;
    return Number((await callServer(server, { name: "count", scope: scope(), body })).answer);
  };
  return {
    provider: "served",
    modelId: "served",
    ...(counts && { countTokens }),
    generate,
    async *stream(request) {
      yield { type: "finish", ...(await generate(request)) };
    },
  };
}

const anyObject: JsonSchema = { type: "object" };

/** A tool that a `CountingServer` plays. Its result is `{ receipt, answer }`. */
export function servedTool(server: ServerAddress, name: string): Tool {
  return {
    name,
    description: `${name}, played by the counting server`,
    inputSchema: anyObject,
    risk: "safe",
    destructive: false,
    edits: false,
    concurrency: "parallel",
    timeoutMs: null,
    suspends: false,
    needsApproval: () => false,
    parse: (input) => input,
    async execute(input, { idempotencyKey }) {
      const body = input as JsonValue;
      const { receipt, answer } = await callServer(server, { name, key: idempotencyKey, body });
      return { output: { type: "json", value: { receipt, answer } }, isError: false };
    },
  };
}
