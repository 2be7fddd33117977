import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { sign, verify } from "../../../src/surfaces/channels/webhook/webhook-channel.ts";
import type { JsonObject } from "../../../src/kernel/index.ts";

export const secret = "0123456789abcdef0123456789abcdef";

/** A message as the channel sent it. */
interface Delivered extends JsonObject {
  readonly conversationId: string;
  readonly deliveryId: string;
  readonly text: string;
}

/** A program that receives signed callbacks. */
export class SignedProgram {
  /** The messages that it has accepted, without those that it has received before. */
  readonly received: Delivered[] = [];
  /** Number of messages that arrived again. */
  repeated = 0;
  /** Status of the next answer. */
  status: (body: Delivered) => number = () => 200;
  readonly #server: Server;
  readonly #known = new Set<unknown>();
  readonly #watchers = new Set<() => void>();

  private constructor() {
    this.#server = createServer((request, response) => {
      let source = "";
      request.setEncoding("utf8").on("data", (piece: string) => {
        source += piece;
      });
      request.on("end", () => {
        const signature = String(request.headers["x-reeve-signature"]);
        const body = JSON.parse(source) as Delivered;
        verify(secret, signature, source, Date.now());
        const status = this.status(body);
        if (status === 200 && this.#known.has(body["deliveryId"])) this.repeated++;
        else if (status === 200) {
          this.#known.add(body["deliveryId"]);
          this.received.push(body);
        }
        response.writeHead(status).end();
        for (const watcher of this.#watchers) watcher();
        this.#watchers.clear();
      });
    });
  }

  static async start(): Promise<SignedProgram> {
    const program = new SignedProgram();
    program.#server.listen(0, "127.0.0.1");
    await once(program.#server, "listening");
    return program;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/callback`;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  async until(holds: () => boolean): Promise<void> {
    while (!holds()) await new Promise<void>((resolve) => void this.#watchers.add(resolve));
  }
}

/** Sends a signed body to a webhook channel. */
export async function post(
  url: string,
  body: JsonObject | string,
  { headers = {}, at = Date.now() }: { readonly headers?: Record<string, string>; readonly at?: number } = {},
): Promise<{ readonly status: number; readonly json: JsonObject }> {
  const source = typeof body === "string" ? body : JSON.stringify(body);
  const response = await fetch(url, {
    method: "POST",
    body: source,
    headers: {
      // The server closes a connection whose body it did not read.
      connection: "close",
      "content-type": "application/json",
      "x-reeve-signature": sign(secret, source, at),
      ...headers,
    },
  });
  return { status: response.status, json: (await response.json()) as JsonObject };
}
