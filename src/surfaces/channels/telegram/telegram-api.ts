import { Fault, readProperty, type JsonObject } from "../../../kernel/index.ts";

/** An error that the Bot API returned. */
export class TelegramError extends Error {
  readonly code: number;
  /** How long to wait before the next call. `undefined` if the API did not say. */
  readonly retryAfterMs: number | undefined;
  /** Id of the chat that has replaced the chat of the call. */
  readonly migratedTo: number | undefined;

  constructor(method: string, code: number, answer: unknown) {
    const description = readProperty(answer, "description");
    const said = typeof description === "string" ? `: ${description}` : "";
    super(`Telegram refused ${method} with ${code}${said}`);
    this.code = code;
    const parameters = readProperty(answer, "parameters");
    const seconds = readProperty(parameters, "retry_after");
    this.retryAfterMs = typeof seconds === "number" && seconds >= 0 ? seconds * 1_000 : undefined;
    const chat = readProperty(parameters, "migrate_to_chat_id");
    this.migratedTo = typeof chat === "number" ? chat : undefined;
  }
}

/** Largest file that the Bot API gives out. */
const maxFileBytes = 20_971_520;
const timeoutMs = 30_000;

/** Calls the Bot API. Its errors never contain the token, which is part of every address. */
export class TelegramApi {
  readonly #token: string;
  readonly #url: string;

  constructor(token: string, url: string) {
    this.#token = token;
    this.#url = url.replace(/\/+$/u, "");
  }

  /** Calls a method and returns its result. Throws `TelegramError`, and `tool_failed` if there was no answer. */
  async call(
    method: string,
    parameters: JsonObject,
    signal: AbortSignal,
    limitMs = timeoutMs,
  ): Promise<unknown> {
    const response = await this.#fetch(`${this.#url}/bot${this.#token}/${method}`, method, signal, limitMs, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(parameters),
    });
    const answer = await this.#json(response, method);
    if (readProperty(answer, "ok") === true) return readProperty(answer, "result");
    throw new TelegramError(method, response.status, answer);
  }

  /** Downloads a file of at most 20 MiB. */
  async download(fileId: string, signal: AbortSignal): Promise<Buffer> {
    const path = readProperty(await this.call("getFile", { file_id: fileId }, signal), "file_path");
    if (typeof path !== "string" || path.split("/").includes(".."))
      throw new Fault("tool_failed", "Telegram returned no path for a file");
    const response = await this.#fetch(
      `${this.#url}/file/bot${this.#token}/${path}`,
      "a file",
      signal,
      timeoutMs,
    );
    if (!response.ok) throw new TelegramError("a file", response.status, undefined);
    const chunks: Uint8Array[] = [];
    let size = 0;
    for await (const chunk of response.body ?? []) {
      size += chunk.byteLength;
      if (size > maxFileBytes) throw new Fault("too_large", `the file has more than ${maxFileBytes} bytes`);
      chunks.push(chunk);
    }
    return Buffer.concat(chunks);
  }

  async #fetch(
    url: string,
    what: string,
    signal: AbortSignal,
    limitMs: number,
    init: RequestInit = {},
  ): Promise<Response> {
    try {
      const limited = AbortSignal.any([signal, AbortSignal.timeout(limitMs)]);
      return await fetch(url, { ...init, signal: limited, redirect: "error" });
    } catch (error) {
      throw this.#unreachable(what, error);
    }
  }

  async #json(response: Response, what: string): Promise<unknown> {
    try {
      return await response.json();
    } catch (error) {
      if (response.ok) throw this.#unreachable(what, error);
      // A proxy answers with a page instead of JSON. The status says enough.
      return undefined;
    }
  }

  #unreachable(what: string, error: unknown): Fault {
    const { message, cause } = error as Error;
    const code = readProperty(cause, "code");
    const reason = `${message}${typeof code === "string" ? ` (${code})` : ""}`.replaceAll(
      this.#token,
      "TOKEN",
    );
    return new Fault("tool_failed", `Telegram did not answer ${what}: ${reason}`);
  }
}
