import { Fault, type JsonValue } from "../../kernel/index.ts";

/** Maximum nesting of a JSON body. Code that walks a deeper value could overflow the stack. */
const maxDepth = 64;

/** Returns the request with a body that fails with `too_large` after this number of bytes. */
export function limitedRequest(request: Request, maxBytes: number): Request {
  if (request.body === null) return request;
  const declared = Number(request.headers.get("content-length") ?? 0);
  if (declared > maxBytes) throw tooLarge(maxBytes);
  let size = 0;
  const counted = request.body.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        size += chunk.byteLength;
        if (size > maxBytes) controller.error(tooLarge(maxBytes));
        else controller.enqueue(chunk);
      },
    }),
  );
  // The request of a host need not be a `Request` of this realm, so it cannot be copied as a whole.
  const { url, method, headers, signal } = request;
  return new Request(url, { method, headers, signal, body: counted, duplex: "half" });
}

/** Reads a JSON body. Returns `undefined` if there is none. */
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
  const value = parsed(source);
  checkDepth(value);
  return value;
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

/** Walks the value level by level, so that the check itself needs no stack. */
function checkDepth(value: JsonValue): void {
  let level: readonly unknown[] = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > maxDepth)
      throw new Fault("invalid_argument", `invalid body: it is nested deeper than ${maxDepth} levels`);
    level = level.flatMap((each) => (typeof each === "object" && each !== null ? Object.values(each) : []));
  }
}

function tooLarge(maxBytes: number): Fault {
  return new Fault("too_large", `the body has more than ${maxBytes} bytes`, { details: { maxBytes } });
}
