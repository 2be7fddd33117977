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

/** Converts an answer to the messages of a protocol. Each method returns text that is sent as it is, perhaps empty. */
export interface AnswerEncoder {
  /** What is sent before the first part. */
  opening(): string;
  encode(part: AnswerPart): string | Promise<string>;
  /** What is sent if the answer cannot be read to its end. */
  failure(fault: Fault): string;
}

export interface AnswerResponseOptions extends Omit<FollowAnswerOptions, "signal"> {
  /** Headers of the response, in addition to those of a stream. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Whether the answer is that to steering, which the next run answers if the run has not read it. Default: `false`. */
  readonly isSteered?: boolean;
}

/** The part of a request that a response needs. */
export type StreamingRequest = Pick<RouteRequest, "access" | "server" | "disconnect" | "runtime">;

/**
 * Streams an answer as server-sent events. C3: a client that leaves does not affect the run. If the server is closed, the
 * connection breaks, so that the client does not take the answer for complete.
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

/** Yields the answer to a message that started a run or became steering of one. */
export function followStarted(
  runtime: RouteRequest["runtime"],
  { run, isSteered }: Pick<StartedRun, "run" | "isSteered">,
  options: FollowAnswerOptions,
): AsyncGenerator<AnswerPart, void, undefined> {
  const parts = followAnswer(run, options);
  return isSteered ? withNextRun(runtime, parts, options) : parts;
}

/** Continues an answer with that of the run which takes over the input that the first run has not read (S5). */
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
