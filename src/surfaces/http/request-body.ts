import { Fault, JsonCounter, type JsonValue } from "../../kernel/index.ts";

/** Maximum nesting depth of a JSON body. Code that processes a deeper value could overflow the stack. */
const maxDepth = 64;

/** Maximum number of JSON values of a body without run input, or with one message to an active run. */
export const maxCommandValues = 10_000;

/** A limit for the bytes and values of a body, and the name of the server option that sets the bytes. */
export interface BodyLimit {
  readonly maxBytes: number;
  /** Maximum number of JSON values. Default: `maxJsonValues`. */
  readonly maxValues?: number;
  /** If absent, the limit is fixed. */
  readonly option?: string;
}

/**
 * Returns the request with a body that fails with `too_large` after this number of bytes. JSON also fails after
 * this number of values, and with `invalid_argument` if it is nested too deeply. The limits are checked while the
 * bytes arrive, so that a reader of the body never parses more than the limits allow.
 */
export function limitedRequest(request: Request, limit: BodyLimit): Request {
  if (request.body === null) return request;
  const { maxBytes } = limit;
  const declared = Number(request.headers.get("content-length") ?? 0);
  if (declared > maxBytes) throw tooLarge(limit);
  const counter = mayBeJson(request.headers)
    ? new JsonCounter("the body", maxDepth, limit.maxValues)
    : undefined;
  let size = 0;
  let refusal: unknown;
  const counted = request.body.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        size += chunk.byteLength;
        if (size > maxBytes) throw tooLarge(limit);
        if (refusal !== undefined) return;
        try {
          counter?.add(chunk);
          controller.enqueue(chunk);
        } catch (error) {
          // The rest of the body is read and dropped, so that the client receives the answer and can go on.
          refusal = error;
        }
      },
      flush() {
        if (refusal !== undefined) throw refusal;
      },
    }),
  );
  // The request of a host need not be a `Request` of this realm, so it cannot be copied as a whole.
  const { url, method, headers, signal } = request;
  return new Request(url, { method, headers, signal, body: counted, duplex: "half" });
}

/** Reads the JSON body of a `limitedRequest`. Returns `undefined` if the body is empty. */
export async function jsonBody(request: Request): Promise<JsonValue | undefined> {
  const source = await bodyText(request);
  if (source === "") return undefined;
  const type = request.headers.get("content-type") ?? "";
  // A form of another site can send other types without a preflight request, but not this one.
  if (!/^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/iu.test(type))
    throw new Fault(
      "invalid_argument",
      `invalid content-type ${JSON.stringify(type)}: expected application/json`,
    );
  return parsed(source);
}

async function bodyText(request: Request): Promise<string> {
  try {
    return await request.text();
  } catch (error) {
    if (Fault.is(error)) throw error;
    throw new Fault("invalid_argument", "the body could not be read to its end", { cause: error });
  }
}

function parsed(source: string): JsonValue {
  try {
    return JSON.parse(source) as JsonValue;
  } catch (error) {
    throw new Fault("not_json", "invalid body: it is not JSON", { cause: error });
  }
}

/**
 * Whether a body may be JSON. Libraries differ in the media types that they read as JSON, so every type that
 * contains the word counts.
 */
function mayBeJson(headers: Headers): boolean {
  return /json|^$/iu.test(headers.get("content-type") ?? "");
}

function tooLarge({ maxBytes, option }: BodyLimit): Fault {
  const raise = option === undefined ? "" : `, or raise limits.${option} of createServer()`;
  return new Fault("too_large", `the body has more than ${maxBytes} bytes; send less${raise}`, {
    details: { maxBytes },
  });
}
