import type { ClientRequest, IncomingMessage } from "node:http";
import { Fault } from "../../../kernel/index.ts";
import { checkedAddress, type AddressCheckOptions } from "../../../capabilities/web/address-check.ts";

/** A request to an address that a person has configured. */
export interface CallbackRequest extends AddressCheckOptions {
  readonly url: string;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

/** The answer to a callback. */
export interface CallbackAnswer {
  readonly status: number;
  /** Value of the header `Retry-After`, in milliseconds, if it is a number of seconds. */
  readonly retryAfterMs?: number;
}

const timeoutMs = 30_000;

/**
 * Sends a POST request to a checked address: the connection uses the address that was checked, so that a second lookup
 * cannot lead to a private one. Redirects are not followed. The body of the answer is not read.
 */
export async function postCallback(request: CallbackRequest): Promise<CallbackAnswer> {
  const url = new URL(request.url);
  const at = await checkedAddress(url, request);
  const { request: open } =
    url.protocol === "https:" ? await import("node:https") : await import("node:http");
  const signal = AbortSignal.any([request.signal, AbortSignal.timeout(timeoutMs)]);
  return new Promise((resolve, reject) => {
    const sent: ClientRequest = open(url, {
      method: "POST",
      agent: false,
      signal,
      headers: {
        ...request.headers,
        "content-type": "application/json",
        "content-length": Buffer.byteLength(request.body),
      },
      lookup: (_hostname, options, give) => {
        if (options.all === true) give(null, [at]);
        else give(null, at.address, at.family);
      },
    });
    sent.once("response", (response) => resolve(answerOf(response)));
    sent.once("error", (error) =>
      reject(new Fault("tool_failed", `${url.host} cannot be reached: ${error.message}`, { cause: error })),
    );
    sent.end(request.body);
  });
}

function answerOf(response: IncomingMessage): CallbackAnswer {
  const seconds = Number(response.headers["retry-after"] ?? Number.NaN);
  response.destroy();
  return {
    status: response.statusCode ?? 0,
    ...(Number.isFinite(seconds) && seconds >= 0 && { retryAfterMs: seconds * 1_000 }),
  };
}
