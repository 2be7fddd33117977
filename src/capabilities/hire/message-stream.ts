import type { AnyMessage, Stream } from "@agentclientprotocol/sdk";
import { once } from "node:events";
import type { Readable, Writable } from "node:stream";
import { Fault, readProperty } from "../../kernel/index.ts";

/** Limits of what an agent may send. If it exceeds them, the agent is ended. */
export interface MessageLimits {
  /** Longest message, in bytes. */
  readonly messageBytes: number;
  /** Number of all messages of one process. */
  readonly messages: number;
  /** Number of lines that are no messages. */
  readonly otherLines: number;
}

interface StreamOptions {
  readonly limits?: MessageLimits;
  /** Receives the fault of an agent that exceeds a limit. The stream ends with it. */
  readonly onBreach: (fault: Fault) => void;
}

const messageLimits: MessageLimits = {
  messageBytes: 32 * 1024 * 1024,
  messages: 500_000,
  otherLines: 1_000,
};

const newline = 0x0a;
/** Length at which the first line that is not a message is cut, for errors. */
const shownLength = 200;

/**
 * The messages of an agent: one JSON object per line of its standard output. Lines that are not JSON objects are
 * skipped and counted, because programs print notices. Answers without a request are skipped and counted too.
 * Notifications of extensions are left out. The agent waits while its messages are not read.
 */
export class MessageStream {
  /** The stream for the ACP package. */
  readonly stream: Stream;
  /** Number of lines that were no messages. */
  otherLines = 0;
  /** The first one, cut. */
  firstOtherLine: string | undefined;
  readonly #limits: MessageLimits;
  /** Ids of the requests of Reeve that have no answer yet. */
  readonly #asked = new Set<unknown>();
  #messages = 0;

  constructor(output: Readable, input: Writable, { limits = messageLimits, onBreach }: StreamOptions) {
    this.#limits = limits;
    const messages = this.#messagesOf(output);
    this.stream = {
      readable: new ReadableStream<AnyMessage>({
        pull: async (controller) => {
          try {
            const { value, done } = await messages.next();
            if (done === true) controller.close();
            else controller.enqueue(value);
          } catch (error) {
            // A stream that the end of the process has destroyed ends as well.
            if (Fault.is(error)) onBreach(error);
            controller.close();
          }
        },
        cancel: () => void output.destroy(),
      }),
      writable: new WritableStream<AnyMessage>({
        write: async (message) => {
          if ("method" in message && "id" in message) this.#asked.add(message.id);
          if (!input.write(`${JSON.stringify(message)}\n`)) await once(input, "drain");
        },
      }),
    };
  }

  async *#messagesOf(output: Readable): AsyncGenerator<AnyMessage> {
    for await (const line of linesOf(output, this.#limits.messageBytes)) {
      const message = objectOf(line);
      if (message === undefined || !this.#isExpected(message)) this.#skip(line);
      else {
        if (++this.#messages > this.#limits.messages)
          throw new Fault(
            "agent_protocol",
            `the agent sent more than ${this.#limits.messages} messages, so it was ended`,
          );
        if (isKnown(message)) yield message;
      }
    }
  }

  /**
   * Whether a message is a request, a notification, or an answer to a request of Reeve. The ACP package prints the
   * ids of other answers unescaped.
   */
  #isExpected(message: object): boolean {
    return Object.hasOwn(message, "method") || this.#asked.delete(readProperty(message, "id"));
  }

  #skip(line: string): void {
    if (line.trim() === "") return;
    this.firstOtherLine ??= line.slice(0, shownLength);
    if (++this.otherLines > this.#limits.otherLines)
      throw new Fault(
        "agent_protocol",
        `the agent printed more than ${this.#limits.otherLines} lines that are no messages of the Agent Client Protocol, so it was ended; the first one is ${JSON.stringify(this.firstOtherLine)}`,
      );
  }
}

async function* linesOf(output: Readable, longest: number): AsyncGenerator<string> {
  let pieces: Buffer[] = [];
  let length = 0;
  // The process ends after a breach; until then its output stays open.
  const chunks = output.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>;
  for await (const chunk of chunks) {
    let from = 0;
    for (let end = chunk.indexOf(newline); end !== -1; end = chunk.indexOf(newline, from)) {
      pieces.push(chunk.subarray(from, end));
      length += end - from;
      assertLength(length, longest);
      yield Buffer.concat(pieces).toString("utf8");
      pieces = [];
      length = 0;
      from = end + 1;
    }
    pieces.push(chunk.subarray(from));
    length += chunk.length - from;
    assertLength(length, longest);
  }
  if (length > 0) yield Buffer.concat(pieces).toString("utf8");
}

function assertLength(length: number, longest: number): void {
  if (length > longest)
    throw new Fault("agent_protocol", `the agent sent a line of more than ${longest} bytes, so it was ended`);
}

/** Notifications that the connection reads. */
const notifications: ReadonlySet<unknown> = new Set(["session/update", "$/cancel_request"]);

function isKnown(message: object): boolean {
  const isNotification = Object.hasOwn(message, "method") && !Object.hasOwn(message, "id");
  return !isNotification || notifications.has(readProperty(message, "method"));
}

function objectOf(line: string): AnyMessage | undefined {
  if (!line.trimStart().startsWith("{")) return undefined;
  try {
    return JSON.parse(line) as AnyMessage;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
