import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { canonicalJson, Fault, type JsonValue } from "../kernel/index.ts";

/** One call that the server received. A repeated call has the same `name` and `key`. */
export interface ServedCall {
  /** Name of the tool that was called, or `model` for a model call. */
  readonly name: string;
  /** Idempotency key of a tool call. For a model call: its scope and the digest of its messages. */
  readonly key: string;
  readonly body: JsonValue;
  /** Names the worker process (worker and life) that made the call. */
  readonly caller: string;
  /**
   * Receipt that the server puts into the answer. A recorded step that contains the receipt proves that the call was
   * answered.
   */
  readonly receipt: string;
  readonly billed: Bill;
}

/** The price of a call of the counting server. */
export interface Bill {
  readonly tokens: number;
  readonly usd: number;
}

/** The answer of the counting server to a call. */
export interface ServedAnswer {
  /** Content of the answer. It must depend on the call alone, so that a repeated call gets the same answer. */
  readonly body: JsonValue;
  readonly bill?: Bill;
  /** If set, the server fails the call with this HTTP status or cuts the connection. The call stays billed. */
  readonly fail?: number | "cut";
}

/**
 * Computes the server's answer to a call. The server bills the call immediately. If `hold` is set, the server sends
 * the answer only after `hold` resolves, so that a test can keep calls in flight.
 */
export type Answering = (call: Omit<ServedCall, "billed">) => ServedAnswer & {
  readonly hold?: (book: CallBook) => Promise<unknown>;
};

/** The calls of one test case, separate from the calls of cases that run concurrently. */
export class CallBook {
  readonly url: string;
  readonly calls: ServedCall[] = [];
  readonly answering: Answering;
  readonly #watchers = new Set<() => void>();

  constructor(url: string, answering: Answering) {
    this.url = url;
    this.answering = answering;
  }

  get billed(): Bill {
    const sum = (pick: (bill: Bill) => number): number =>
      this.calls.reduce((total, { billed }) => total + pick(billed), 0);
    return { tokens: sum(({ tokens }) => tokens), usd: sum(({ usd }) => usd) };
  }

  /**
   * Resolves once the calls received so far satisfy `fulfilled`. Rejects after `boundMs` milliseconds with a list of
   * the received calls.
   */
  until(fulfilled: (calls: readonly ServedCall[]) => boolean, boundMs = 120_000): Promise<void> {
    return new Promise((resolve, reject) => {
      const look = (): void => {
        if (!fulfilled(this.calls)) return;
        this.#watchers.delete(look);
        clearTimeout(bound);
        resolve();
      };
      const bound = setTimeout(() => {
        this.#watchers.delete(look);
        const seen = this.calls.map(({ caller, name, key }) => `${caller} ${name} ${key}`).join("; ");
        reject(new Error(`the expected calls did not arrive within ${boundMs} ms; received: ${seen}`));
      }, boundMs);
      bound.unref();
      this.#watchers.add(look);
      look();
    });
  }

  note(call: ServedCall): void {
    this.calls.push(call);
    for (const look of this.#watchers) look();
  }
}

/**
 * An HTTP server on this machine that plays models and tools for crash tests. It counts and bills every call, even if
 * the caller dies before it receives the answer. `servedModel` and `servedTool` call this server.
 */
export class CountingServer {
  readonly #server: Server;
  readonly #books = new Map<string, CallBook>();

  private constructor(server: Server) {
    this.#server = server;
  }

  static async open(): Promise<CountingServer> {
    const http = createServer({ keepAlive: true });
    const server = new CountingServer(http);
    http.on("request", (request, response) => {
      server.#serve(request, response).catch((error: unknown) => {
        response.writeHead(500).end(Fault.from(error).message);
      });
    });
    await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
    return server;
  }

  /** Opens a new book. Only calls to the book's `url` are counted in it. */
  book(name: string, answering: Answering): CallBook {
    const { port } = this.#server.address() as AddressInfo;
    const book = new CallBook(`http://127.0.0.1:${port}/${encodeURIComponent(name)}`, answering);
    this.#books.set(name, book);
    return book;
  }

  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeAllConnections();
    await closed;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [, bookName = "", name = ""] = (request.url ?? "").split("/").map(decodeURIComponent);
    const book = this.#books.get(bookName);
    if (book === undefined) throw new Fault("not_found", `the counting server has no book ${bookName}`);
    const body = JSON.parse(await text(request)) as JsonValue;
    const scope = header(request, "x-scope") ?? "";
    const key = header(request, "idempotency-key") ?? `${scope} ${digest(body)}`;
    const caller = header(request, "x-caller") ?? "";
    const call = { name, key, body, caller, receipt: digest({ name, key, body }) };
    const { hold, bill = { tokens: 0, usd: 0 }, body: answer, fail } = book.answering(call);
    book.note({ ...call, billed: bill });
    await hold?.(book);
    if (fail === "cut") {
      response.destroy();
      return;
    }
    if (fail !== undefined) {
      response.writeHead(fail).end(`status ${fail}`);
      return;
    }
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify({ receipt: call.receipt, answer }));
  }
}

function header({ headers }: IncomingMessage, name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value[0] : value;
}

async function text(request: IncomingMessage): Promise<string> {
  request.setEncoding("utf8");
  let whole = "";
  for await (const piece of request) whole += String(piece);
  return whole;
}

function digest(value: JsonValue): string {
  return createHash("sha256").update(canonicalJson(value)).digest("hex").slice(0, 20);
}
