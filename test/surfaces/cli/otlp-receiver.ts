import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";

type Value = string | number | boolean | readonly Value[];

/** A span as a collector receives it. */
interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  /** Empty for the root of a trace. */
  readonly parentSpanId: string;
  readonly name: string;
  readonly kind: number;
  /** Nanoseconds since the epoch. */
  readonly start: bigint;
  readonly end: bigint;
  readonly attributes: Readonly<Record<string, Value>>;
  /** 2 for an error. */
  readonly status: number;
  readonly statusMessage: string;
  readonly resource: Readonly<Record<string, Value>>;
}

/** A point of a metric as a collector receives it. */
interface ReceivedPoint {
  readonly metric: string;
  readonly unit: string;
  readonly attributes: Readonly<Record<string, Value>>;
  /** The sum of a counter or of the values of a histogram. */
  readonly sum: number;
  /** Number of values of a histogram. 1 for a counter. */
  readonly count: number;
}

export interface Receiver {
  readonly url: string;
  readonly spans: readonly ReceivedSpan[];
  readonly points: readonly ReceivedPoint[];
  /** Path, content type and headers of each request. */
  readonly requests: readonly { readonly path: string; readonly headers: IncomingMessage["headers"] }[];
  /** The spans with a name. */
  readonly named: (name: string) => readonly ReceivedSpan[];
}

export interface ReceiverOptions {
  /** Status of all answers. `null`: there is no answer. Default: 200. */
  readonly status?: number | null;
}

/** Starts a collector that understands OTLP over HTTP, as JSON and as protobuf. It is stopped after the current test. */
export async function startReceiver({ status = 200 }: ReceiverOptions = {}): Promise<Receiver> {
  const spans: ReceivedSpan[] = [];
  const points: ReceivedPoint[] = [];
  const requests: { path: string; headers: IncomingMessage["headers"] }[] = [];
  const receive = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece as Buffer);
    const body = Buffer.concat(pieces);
    const path = request.url ?? "";
    requests.push({ path, headers: request.headers });
    if (status === null) return;
    const isJson = request.headers["content-type"] === "application/json";
    if (status === 200 && path.endsWith("/v1/traces"))
      spans.push(...(isJson ? spansOfJson(JSON.parse(body.toString()) as Json) : spansOfProtobuf(body)));
    if (status === 200 && path.endsWith("/v1/metrics") && isJson)
      points.push(...pointsOfJson(JSON.parse(body.toString()) as Json));
    response
      .writeHead(status, { "content-type": request.headers["content-type"] ?? "" })
      .end(isJson ? "{}" : "");
  };
  const server = createServer((request, response) => {
    receive(request, response).catch((error: unknown) => response.destroy(error as Error));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    points,
    requests,
    named: (name) => spans.filter((span) => span.name === name),
  };
}

interface Json {
  readonly [name: string]: JsonMember;
}
type JsonMember = string | number | boolean | null | undefined | Json | readonly JsonMember[];

function list(value: JsonMember): readonly Json[] {
  return (value ?? []) as readonly Json[];
}

function text(value: JsonMember): string {
  return typeof value === "string" ? value : "";
}

function spansOfJson({ resourceSpans }: Json): readonly ReceivedSpan[] {
  return list(resourceSpans).flatMap(({ resource, scopeSpans }) =>
    list(scopeSpans).flatMap(({ spans }) =>
      list(spans).map((span) => ({
        traceId: text(span["traceId"]),
        spanId: text(span["spanId"]),
        parentSpanId: text(span["parentSpanId"]),
        name: text(span["name"]),
        kind: Number(span["kind"]),
        start: BigInt(text(span["startTimeUnixNano"])),
        end: BigInt(text(span["endTimeUnixNano"])),
        attributes: attributesOfJson(span["attributes"]),
        status: Number((span["status"] as Json)["code"] ?? 0),
        statusMessage: text((span["status"] as Json)["message"]),
        resource: attributesOfJson((resource as Json)["attributes"]),
      })),
    ),
  );
}

function pointsOfJson({ resourceMetrics }: Json): readonly ReceivedPoint[] {
  return list(resourceMetrics).flatMap(({ scopeMetrics }) =>
    list(scopeMetrics).flatMap(({ metrics }) =>
      list(metrics).flatMap((metric) => {
        const data = (metric["sum"] ?? metric["histogram"]) as Json;
        return list(data["dataPoints"]).map((point) => ({
          metric: text(metric["name"]),
          unit: text(metric["unit"]),
          attributes: attributesOfJson(point["attributes"]),
          sum: Number(point["sum"] ?? point["asDouble"] ?? point["asInt"]),
          count: Number(point["count"] ?? 1),
        }));
      }),
    ),
  );
}

function attributesOfJson(attributes: JsonMember): Readonly<Record<string, Value>> {
  return Object.fromEntries(
    list(attributes).map(({ key, value }) => [text(key), valueOfJson(value as Json)]),
  );
}

function valueOfJson({ stringValue, intValue, doubleValue, boolValue, arrayValue }: Json): Value {
  if (arrayValue !== undefined) return list((arrayValue as Json)["values"]).map((each) => valueOfJson(each));
  if (intValue !== undefined) return Number(intValue);
  return (stringValue ?? doubleValue ?? boolValue) as Value;
}

/** The fields of a message of protobuf, by number. */
type Fields = ReadonlyMap<number, readonly (bigint | Buffer)[]>;

/** Reads the fields of a message, without knowing their names and types. */
function fieldsOf(bytes: Buffer): Fields {
  const fields = new Map<number, (bigint | Buffer)[]>();
  let at = 0;
  const varint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes.readUInt8(at++);
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  const take = (length: number): Buffer => bytes.subarray(at, (at += length));
  while (at < bytes.length) {
    const tag = Number(varint());
    const type = tag & 7;
    const value =
      type === 0
        ? varint()
        : type === 1
          ? take(8)
          : type === 5
            ? take(4)
            : type === 2
              ? take(Number(varint()))
              : undefined;
    if (value === undefined) throw new Error(`unknown wire type ${type}`);
    const known = fields.get(tag >> 3);
    if (known === undefined) fields.set(tag >> 3, [value]);
    else known.push(value);
  }
  return fields;
}

function messages(fields: Fields, number: number): readonly Fields[] {
  return (fields.get(number) ?? []).map((bytes) => fieldsOf(bytes as Buffer));
}

function bytesOf(fields: Fields, number: number): Buffer {
  return (fields.get(number)?.[0] ?? Buffer.alloc(0)) as Buffer;
}

function spansOfProtobuf(body: Buffer): readonly ReceivedSpan[] {
  return messages(fieldsOf(body), 1).flatMap((resourceSpans) => {
    const resource = attributesOfProtobuf(messages(resourceSpans, 1)[0] ?? new Map(), 1);
    return messages(resourceSpans, 2).flatMap((scopeSpans) =>
      messages(scopeSpans, 2).map((span) => {
        const [status = new Map() as Fields] = messages(span, 15);
        return {
          traceId: bytesOf(span, 1).toString("hex"),
          spanId: bytesOf(span, 2).toString("hex"),
          parentSpanId: bytesOf(span, 4).toString("hex"),
          name: bytesOf(span, 5).toString(),
          kind: Number(span.get(6)?.[0] ?? 0),
          start: bytesOf(span, 7).readBigUInt64LE(),
          end: bytesOf(span, 8).readBigUInt64LE(),
          attributes: attributesOfProtobuf(span, 9),
          status: Number(status.get(3)?.[0] ?? 0),
          statusMessage: bytesOf(status, 2).toString(),
          resource,
        };
      }),
    );
  });
}

function attributesOfProtobuf(fields: Fields, number: number): Readonly<Record<string, Value>> {
  return Object.fromEntries(
    messages(fields, number).map((pair) => [
      bytesOf(pair, 1).toString(),
      valueOfProtobuf(messages(pair, 2)[0] ?? new Map()),
    ]),
  );
}

function valueOfProtobuf(value: Fields): Value {
  if (value.has(2)) return value.get(2)?.[0] === 1n;
  if (value.has(3)) return Number(BigInt.asIntN(64, value.get(3)?.[0] as bigint));
  if (value.has(4)) return bytesOf(value, 4).readDoubleLE();
  const [array] = messages(value, 5);
  return array === undefined
    ? bytesOf(value, 1).toString()
    : messages(array, 1).map((each) => valueOfProtobuf(each));
}
