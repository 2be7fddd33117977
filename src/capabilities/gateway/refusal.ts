import type { ServerResponse } from "node:http";
import { Fault } from "../../kernel/index.ts";
import type { Json } from "./json-values.ts";
import type { Wire } from "./wire.ts";

/** A request that the gateway does not serve. */
export class Refusal extends Error {
  readonly status: number;
  /** Seconds after which the program may try again. */
  readonly retryAfter: number | undefined;

  constructor(status: number, message: string, retryAfter?: number) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

export function refusalOf(error: unknown): Refusal {
  if (error instanceof Refusal) return error;
  const fault = Fault.from(error);
  if (fault.code === "unknown_price") return new Refusal(403, fault.message);
  if (fault.code === "seat_lost") return new Refusal(503, fault.message, 2);
  if (fault.code === "cancelled") return new Refusal(409, "the task of the program was cancelled");
  return new Refusal(502, `the provider could not be reached: ${fault.message}`);
}

export function refuse(response: ServerResponse, wire: Wire, { status, message, retryAfter }: Refusal): void {
  if (response.headersSent) {
    // A part of the answer was sent: only the end of the connection tells the program that it is not complete.
    response.destroy();
    return;
  }
  send(response, status, wire.error(status, message), {
    "x-should-retry": retryAfter === undefined ? "false" : "true",
    ...(retryAfter !== undefined && { "retry-after": String(retryAfter) }),
  });
}

export function send(
  response: ServerResponse,
  status: number,
  body: Json,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
}
