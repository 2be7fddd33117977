import { appendFileSync, writeFileSync } from "node:fs";
import type {
  Model,
  ModelCallOptions,
  ModelRequest,
  ModelResponse,
  ModelStreamPart,
  StreamedDelta,
} from "../kernel/index.ts";
import { recordError, type RecordedCall, type RecordedModel } from "./model-recording.ts";

/**
 * Passes every call to `model` and appends it to `file` as one JSON line when the call ends, for use by `replayModel`.
 * An existing file is overwritten. Prompts and answers are recorded unchanged; keys, addresses and headers are not
 * recorded.
 */
export function recordModel(model: Model, file: string): Model {
  const { provider, modelId, contextWindow, maxOutputTokens } = model;
  const head: RecordedModel = {
    type: "model",
    version: 1,
    provider,
    modelId,
    ...(contextWindow === undefined ? {} : { contextWindow }),
    ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
  };
  writeFileSync(file, `${JSON.stringify(head)}\n`);
  const note = (call: Omit<RecordedCall, "type">): void =>
    appendFileSync(file, `${JSON.stringify({ type: "call", ...call })}\n`);
  const { type: _type, version: _version, ...known } = head;
  return {
    ...known,
    ...(model.countTokens && { countTokens: model.countTokens.bind(model) }),
    generate: async (request, options) => {
      const response = await noted(model.generate(request, options), (error) =>
        note({ request, error: recordError(error) }),
      );
      note({ request, response });
      return response;
    },
    stream: (request, options) => recordStream(model, request, options, note),
  };
}

async function* recordStream(
  model: Model,
  request: ModelRequest,
  options: ModelCallOptions | undefined,
  note: (call: Omit<RecordedCall, "type">) => void,
): AsyncIterable<ModelStreamPart> {
  const deltas: StreamedDelta[] = [];
  try {
    for await (const part of model.stream(request, options)) {
      if (part.type === "finish") {
        const { type: _type, ...response } = part;
        note({ request, deltas, response });
      } else if (part.type !== "usage") deltas.push(part);
      yield part;
    }
  } catch (error) {
    note({ request, deltas, error: recordError(error) });
    throw error;
  }
}

async function noted(
  call: Promise<ModelResponse>,
  onError: (error: unknown) => void,
): Promise<ModelResponse> {
  try {
    return await call;
  } catch (error) {
    onError(error);
    throw error;
  }
}
