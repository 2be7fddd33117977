import type { IncomingMessage } from "node:http";
import { Fault } from "../../kernel/index.ts";
import { JsonText } from "./json-text.ts";
import { Refusal } from "./refusal.ts";
import { isObject, type Json } from "./wire.ts";

/** Reads a body. `hold` is called with the number of bytes so far, and may throw. */
export async function readBody(
  from: IncomingMessage,
  maxBytes: number,
  hold: (bytes: number) => void = () => undefined,
): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let size = 0;
  for await (const piece of from as AsyncIterable<Buffer>) {
    size += piece.byteLength;
    if (size > maxBytes) throw new Refusal(413, `the body has more than ${maxBytes} bytes`);
    hold(size);
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

/** Reads a body that is a JSON object. */
export function readObject(body: Buffer): { readonly text: JsonText; readonly json: Json } {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(body);
    const json: unknown = JSON.parse(text);
    if (!isObject(json)) throw new Error("it is not an object");
    return { text: new JsonText(text), json };
  } catch (error) {
    throw new Refusal(400, `the body is not a JSON object in UTF-8: ${Fault.from(error).message}`);
  }
}
