import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** A request as the provider received it. */
export interface Received {
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: Buffer;
}

type Answer = (received: Received, response: ServerResponse) => void | Promise<void>;

/** A provider that records what it receives and answers as the test says. */
export class MockUpstream {
  readonly received: Received[] = [];
  answer: Answer;
  readonly #server: Server;

  private constructor(answer: Answer, server: Server) {
    this.answer = answer;
    this.#server = server;
  }

  static async open(answer: Answer): Promise<MockUpstream> {
    const server = createServer();
    const upstream = new MockUpstream(answer, server);
    server.on("request", (request, response) => void upstream.#serve(request, response));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return upstream;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** The received bodies as JSON. */
  get bodies(): readonly Record<string, unknown>[] {
    return this.received.map(({ body }) => JSON.parse(body.toString()) as Record<string, unknown>);
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const pieces: Buffer[] = [];
    for await (const piece of request as AsyncIterable<Buffer>) pieces.push(piece);
    const received = { path: request.url ?? "", headers: request.headers, body: Buffer.concat(pieces) };
    this.received.push(received);
    await this.answer(received, response);
  }
}

/** The events of a stream as bytes. */
export function eventsOf(...events: readonly unknown[]): string {
  return events
    .map((event) => `data: ${typeof event === "string" ? event : JSON.stringify(event)}\n\n`)
    .join("");
}

export function answerJson(
  response: ServerResponse,
  body: unknown,
  headers: Record<string, string> = {},
): void {
  response.writeHead(200, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
}

export function answerEvents(response: ServerResponse, text: string): void {
  response.writeHead(200, { "content-type": "text/event-stream" }).end(text);
}
