import { readFileSync } from "node:fs";
import {
  canonicalJson,
  describeDifference,
  Fault,
  jsonDifference,
  messageText,
  type JsonValue,
  type Model,
  type ModelRequest,
  type ModelResponse,
  type ModelStreamPart,
  is,
  optionTable,
  type OptionKinds,
} from "../kernel/index.ts";
import { reviveError, type RecordedCall, type RecordedModel } from "./model-recording.ts";

/** Options of `replayModel`. */
export interface ReplayOptions {
  /**
   * Returns the part of a request that must equal the recorded request. Omit values that change from run to run, such
   * as a date in a prompt. Default: the whole request.
   */
  readonly compare?: (request: ModelRequest) => unknown;
}

const knownOptions = optionTable({ compare: is.callback() } satisfies OptionKinds<ReplayOptions>);

/**
 * Returns a model that answers from a file written by `recordModel`, without a network. Each recorded call answers one
 * equal request. The order is free, because calls may be concurrent; of several equal calls the first recorded one
 * answers first. A request that was not recorded fails with a fault that names its difference from the most similar
 * recorded request.
 */
export function replayModel(file: string, options: ReplayOptions = {}): Model {
  const { compare = (request: ModelRequest) => request } = knownOptions.read("replayModel()", options);
  const { head, calls } = readRecording(file);
  const left = calls.map((call) => ({ call, asked: canonicalJson(compare(call.request)) }));
  const take = (request: ModelRequest): RecordedCall => {
    const asked = canonicalJson(compare(request));
    const place = left.findIndex((each) => each.asked === asked);
    const [found] = place < 0 ? [] : left.splice(place, 1);
    if (found !== undefined) return found.call;
    throw unrecorded(
      file,
      JSON.parse(asked) as JsonValue,
      left.map((each) => JSON.parse(each.asked) as JsonValue),
    );
  };
  const { type: _type, version: _version, ...known } = head;
  return {
    ...known,
    generate: async (request, { signal } = {}) => {
      signal?.throwIfAborted();
      return answerOf(take(request));
    },
    async *stream(request, { signal } = {}): AsyncIterable<ModelStreamPart> {
      signal?.throwIfAborted();
      const call = take(request);
      for (const delta of call.deltas ?? wholeText(call)) {
        yield delta;
        signal?.throwIfAborted();
      }
      yield { type: "finish", ...answerOf(call) };
    },
  };
}

function answerOf({ response, error }: RecordedCall): ModelResponse {
  if (response !== undefined) return response;
  if (error !== undefined) throw reviveError(error);
  throw new Fault("invalid_argument", "a recorded call has neither a response nor an error; record it again");
}

function wholeText({ response }: RecordedCall): readonly ModelStreamPart[] {
  const text = response === undefined ? "" : messageText(response.message);
  return text === "" ? [] : [{ type: "text_delta", text }];
}

function readRecording(file: string): {
  readonly head: RecordedModel;
  readonly calls: readonly RecordedCall[];
} {
  const lines = readFileSync(file, "utf8").split("\n");
  // A crash may have cut the last line, which then has no newline. It is dropped.
  const entries = lines.slice(0, -1).map((line, index) => readLine(file, line, index + 1));
  const [head, ...calls] = entries;
  if (head?.type !== "model" || head.version !== 1)
    throw new Fault("invalid_argument", `${file} is not a recording of a model: record one with recordModel`);
  return { head, calls: calls.filter((each) => each.type === "call") };
}

function readLine(file: string, line: string, number: number): RecordedModel | RecordedCall {
  try {
    return JSON.parse(line) as RecordedModel | RecordedCall;
  } catch (cause) {
    throw new Fault("invalid_argument", `${file}:${number} is not JSON`, { cause });
  }
}

function unrecorded(file: string, asked: JsonValue, left: readonly JsonValue[]): Fault {
  if (left.length === 0)
    return new Fault("invalid_argument", `${file} has no call left: every recorded call has been replayed`);
  const differences = left.map((recorded) => jsonDifference(recorded, asked, "request"));
  // The more values are equal before the first difference, the more similar the two requests are.
  const nearest = differences.reduce((best, each) => ((each?.depth ?? 0) > (best?.depth ?? 0) ? each : best));
  return new Fault(
    "invalid_argument",
    `${file} has no recorded call like this one; ${left.length} are left, and the nearest differs at ${nearest === undefined ? "nothing" : describeDifference(nearest)}`,
  );
}
