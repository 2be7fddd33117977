import { once } from "node:events";
import { connect } from "node:http2";

/** A message of Restate's protocol for invocations: its type, the length of its fields, and the fields. */
function message(type: number, ...fields: readonly Buffer[]): Buffer {
  const body = Buffer.concat(fields);
  const header = Buffer.alloc(8);
  header.writeUInt16BE(type, 0);
  header.writeUInt32BE(body.length, 4);
  return Buffer.concat([header, body]);
}

/** A field of Protocol Buffers with bytes or another message. All lengths here are below 128. */
function bytes(field: number, content: Buffer | string): Buffer {
  const value = Buffer.from(content);
  return Buffer.concat([Buffer.from([(field << 3) | 2, value.length]), value]);
}

function integer(field: number, value: number): Buffer {
  return Buffer.from([field << 3, value]);
}

const value = (content: object | string): Buffer => bytes(1, JSON.stringify(content));

interface ForgedAnswer {
  readonly status: number;
  readonly text: string;
}

/**
 * Sends a slice of a run to the endpoint of a worker, as another program does that can reach the worker's port. The
 * slice claims to repeat an earlier attempt. Resolves with the answer, or after `patienceMs`, when the connection is
 * closed.
 */
export async function forgeSlice(
  port: number,
  { service, runId, patienceMs = 5_000 }: ForgedSlice,
): Promise<ForgedAnswer> {
  const session = connect(`http://127.0.0.1:${port}`);
  try {
    const request = session.request({
      ":method": "POST",
      ":path": `/invoke/${service}/drive`,
      "content-type": "application/vnd.restate.invocation.v5",
      accept: "application/vnd.restate.invocation.v5",
    });
    const isOver = AbortSignal.timeout(patienceMs);
    isOver.addEventListener("abort", () => request.close());
    // The journal holds the input and the step `begin` of another attempt.
    request.end(
      Buffer.concat([
        message(0x0000, bytes(1, "forged"), bytes(2, "forged"), integer(3, 3), bytes(6, runId)),
        message(0x0400, bytes(14, value({ at: null }))),
        message(0x0411, integer(11, 1), bytes(12, "begin")),
        message(0x8011, integer(1, 1), bytes(5, value("another attempt"))),
      ]),
    );
    let text = "";
    request.on("data", (chunk: Buffer) => (text += chunk.toString("latin1")));
    const [headers] = (await once(request, "response")) as [Readonly<Record<string, unknown>>];
    if (!request.closed) await once(request, "close");
    return { status: Number(headers[":status"]), text };
  } finally {
    session.destroy();
  }
}

interface ForgedSlice {
  readonly service: string;
  readonly runId: string;
  readonly patienceMs?: number;
}
