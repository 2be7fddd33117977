import {
  followAnswer,
  type AnswerEnd,
  type AnswerPart,
  type FollowAnswerOptions,
} from "../../agents/index.ts";
import { Fault, type RunHandle } from "../../kernel/index.ts";
import type { RouteRequest } from "../http/route.ts";
import type { StartedRun } from "../http/start-run.ts";
import { BatchWriter } from "../http/streams/batch-writer.ts";

/**
 * Converts an answer to the messages of a protocol. Each method returns text that is sent unchanged; the text may
 * be empty.
 */
export interface AnswerEncoder {
  /** What is sent before the first part. */
  opening(): string;
  encode(part: AnswerPart): string | Promise<string>;
  /** Returns the text that is sent if the answer cannot be read to its end. */
  failure(fault: Fault): string;
}

export interface AnswerResponseOptions extends Omit<FollowAnswerOptions, "signal"> {
  /** Headers of the response, in addition to the usual headers of a stream. */
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * Whether the answer belongs to steering. If the run has not read the steering, the next run answers it. Default:
   * `false`.
   */
  readonly isSteered?: boolean;
}

/** The parts of a request that a streaming response needs. */
export type StreamingRequest = Pick<RouteRequest, "access" | "server" | "disconnect" | "runtime">;

/**
 * Streams an answer as server-sent events. If the client disconnects, the run continues (rule C3). If the server is
 * closed, the connection is broken off, so that the client does not treat the answer as complete.
 */
export function answerResponse(
  request: StreamingRequest,
  run: RunHandle,
  encoder: AnswerEncoder,
  { headers = {}, isSteered = false, ...options }: AnswerResponseOptions = {},
): Response {
  const { access, server, disconnect, runtime } = request;
  return server.streams.open(
    access,
    disconnect,
    async (stream) => {
      const writer = new BatchWriter(stream);
      const { signal } = stream;
      await writer.add(encoder.opening());
      try {
        for await (const part of followStarted(runtime, { run, isSteered }, { ...options, signal }))
          await writer.add(await encoder.encode(part));
      } catch (error) {
        await writer.add(encoder.failure(Fault.from(error)));
        throw error;
      } finally {
        await writer.flush();
      }
    },
    { headers, isCut: true },
  );
}

/** Yields the answer to a message that started a run or was sent to one as steering. */
export function followStarted(
  runtime: RouteRequest["runtime"],
  { run, isSteered }: Pick<StartedRun, "run" | "isSteered">,
  options: FollowAnswerOptions,
): AsyncGenerator<AnswerPart, void, undefined> {
  const parts = followAnswer(run, options);
  return isSteered ? withNextRun(runtime, parts, options) : parts;
}

/**
 * Yields an answer, followed by the answer of the run that takes over the input that the first run has not read
 * (S5).
 */
async function* withNextRun(
  runtime: RouteRequest["runtime"],
  parts: AsyncIterable<AnswerPart>,
  options: FollowAnswerOptions,
): AsyncGenerator<AnswerPart, void, undefined> {
  let end: AnswerEnd | undefined;
  for await (const part of parts)
    if (part.type === "end") end = part;
    else yield part;
  const next = end?.carriedOverTo ? await runtime.find(end.carriedOverTo) : undefined;
  if (next !== undefined) yield* followAnswer(next, { ...options, fromSeq: 0, waitsFromSeq: 0 });
  else if (end !== undefined) yield end;
}
