import { messageText, type Model, type ModelRequest } from "../../src/kernel/index.ts";
import { scriptedModel, type ScriptedReply } from "../../src/testing/index.ts";

/** A model that answers each request by itself, in any order and number. */
export function answering(answer: (request: ModelRequest) => string | ScriptedReply): Model {
  return {
    provider: "scripted",
    modelId: "answering",
    generate: (request, options) => scriptedModel([answer]).generate(request, options),
    stream: (request, options) => scriptedModel([answer]).stream(request, options),
  };
}

/** The text of the last user message. */
export function askedIn({ messages }: ModelRequest): string {
  const last = messages.findLast(({ role }) => role === "user");
  return last === undefined ? "" : messageText(last);
}
