import {
  answerParts,
  failureText,
  RunStream,
  uiMessageDone,
  UiMessageEncoder,
  uiMessageFrames,
  uiMessageHeaders,
} from "../agents/index.ts";
import { Fault, type JsonValue, type RunResult, is, optionTable, type OptionKinds } from "../kernel/index.ts";

/** Options of `AgentStream.toResponse`. */
export interface StreamResponseOptions {
  /** Headers of the response, in addition to the headers of the protocol. */
  readonly headers?: Readonly<Record<string, string>>;
}

const responseOptionTable = optionTable({ headers: is.any } satisfies OptionKinds<StreamResponseOptions>);

/**
 * The events and text deltas of a run, from its first event on. The run starts when the stream is first read or its
 * result is requested. `Value` is the type of a structured answer; it is `never` if the answer is a text.
 */
export class AgentStream<Result = RunResult<JsonValue>, Value = never> extends RunStream<Result, Value> {
  /**
   * The answer as a response in the AI SDK's UI message stream protocol, for a route that `useChat` calls. The
   * response ends when the run has ended or waits for a person. A client that disconnects does not stop the run
   * (C3), unless `cancelOnBreak` is set. An error of the run is part of the stream.
   *
   * @example
   * ```ts
   * import { Agent } from "reeve";
   *
   * const agent = new Agent({ name: "guide", model: "anthropic/claude-sonnet-5" });
   *
   * export async function POST(request: Request): Promise<Response> {
   *   const { question } = (await request.json()) as { readonly question: string };
   *   return agent.stream(question).toResponse();
   * }
   * ```
   */
  toResponse(options: StreamResponseOptions = {}): Response {
    responseOptionTable.read("toResponse()", options);
    return uiMessageResponse(this, options.headers);
  }
}

/** Creates the response for `AgentStream.toResponse`. */
function uiMessageResponse(
  stream: AgentStream<unknown, unknown>,
  headers: Readonly<Record<string, string>> = {},
): Response {
  const frames = framesOf(stream);
  const encoder = new TextEncoder();
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { value, done } = await frames.next();
      if (done === true) controller.close();
      else controller.enqueue(encoder.encode(value));
    },
    // C3: a client that leaves detaches.
    async cancel() {
      await frames.return();
    },
  });
  return new Response(body, { headers: { ...uiMessageHeaders, ...headers } });
}

async function* framesOf(stream: AgentStream<unknown, unknown>): AsyncGenerator<string, void, undefined> {
  try {
    const run = await stream.run();
    const { runId, sessionId } = run;
    const encoder = new UiMessageEncoder({ messageId: runId, metadata: { runId, sessionId } });
    yield uiMessageFrames(encoder.opening());
    for await (const part of answerParts(run, stream)) {
      const chunks = encoder.encode(part);
      if (chunks.length > 0) yield uiMessageFrames(chunks);
    }
  } catch (error) {
    yield uiMessageFrames([{ type: "error", errorText: failureText(Fault.from(error)) }]);
  }
  yield uiMessageDone;
}
