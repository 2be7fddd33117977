import { isTextDocument } from "../../kernel/index.ts";
import { countIn, isObject, type Json, nameIn, textIn } from "./json-values.ts";
import { Findings, objectOf, oneOf, stored, type MemberTable } from "./request-shape.ts";
import type { Wire } from "./wire.ts";

/**
 * Matches an endpoint. Only plain model names are accepted, because the path of the request is used for the request
 * to the provider.
 */
const endpoint =
  /^\/v1beta\/models\/([A-Za-z0-9][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*):(?:generateContent|streamGenerateContent)$/;

/**
 * The members of a request. The provider reads two spellings of each member. If a request contains both spellings
 * of a member with a limit, it is refused.
 */
const members: MemberTable = {
  contents: (value, found) =>
    found.list("contents", value, (content) => found.members(content, contentMembers)),
  systemInstruction: (value, found) => checkSystem(value, found),
  system_instruction: (value, found) => checkSystem(value, found),
  tools: (value, found) => found.list("tools", value, (tool) => checkTool(tool, found)),
  toolConfig: true,
  tool_config: true,
  safetySettings: true,
  safety_settings: true,
  labels: true,
  generationConfig: objectOf("generationConfig", {
    maxOutputTokens: true,
    candidateCount: oneOf([1], "candidateCount"),
    responseModalities: (value, found) => {
      const isText = Array.isArray(value) && value.every((each) => each === "TEXT");
      if (!isText) found.unbounded.add("responseModalities");
    },
    stopSequences: true,
    responseMimeType: true,
    responseSchema: true,
    responseJsonSchema: true,
    temperature: true,
    topP: true,
    topK: true,
    seed: true,
    presencePenalty: true,
    frequencyPenalty: true,
    responseLogprobs: true,
    logprobs: true,
    thinkingConfig: true,
    mediaResolution: true,
    enableEnhancedCivicAnswers: true,
  }),
  cachedContent: stored("cachedContent"),
  serviceTier: oneOf(["standard", "flex"], (value) => `tier ${nameIn(value)}`),
};

const contentMembers: MemberTable = {
  role: true,
  parts: (value, found) => found.list("parts", value, (part) => found.members(part, partMembers)),
};

const partMembers: MemberTable = {
  text: true,
  thought: true,
  mediaResolution: true,
  media_resolution: true,
  thoughtSignature: true,
  thought_signature: true,
  functionCall: true,
  function_call: true,
  functionResponse: (value, found) => checkFunctionResponse(value, found),
  function_response: (value, found) => checkFunctionResponse(value, found),
  executableCode: true,
  executable_code: true,
  codeExecutionResult: true,
  code_execution_result: true,
  inlineData: (value, found) => checkInline(value, found),
  inline_data: (value, found) => checkInline(value, found),
  fileData: (_value, found) => found.document("file by uri"),
  file_data: (_value, found) => found.document("file by uri"),
};

function checkSystem(value: unknown, found: Findings): void {
  if (isObject(value)) found.members(value, contentMembers);
  else found.reject("systemInstruction is not an object");
}

function checkTool(tool: Json, found: Findings): void {
  for (const name of Object.keys(tool))
    if (name !== "functionDeclarations" && name !== "function_declarations") found.unbounded.add(name);
}

/** Checks the result of a function, which may have parts. */
function checkFunctionResponse(value: unknown, found: Findings): void {
  const parts = isObject(value) ? value["parts"] : undefined;
  found.list("the parts of a functionResponse", parts, (part) => found.members(part, partMembers));
}

function checkInline(value: unknown, found: Findings): void {
  const { mimeType, mime_type, data } = isObject(value) ? value : {};
  const type = textIn(mimeType ?? mime_type).toLowerCase();
  if (mimeType !== undefined && mime_type !== undefined) found.reject("mimeType is given twice");
  else if (typeof data !== "string") found.reject("inlineData has no data");
  else if (type.startsWith("image/")) found.images++;
  else if (/^(?:audio|video)\//.test(type)) found.document("audio");
  else if (!isTextDocument(type)) found.document("file");
}

/** The Gemini API of Google. The path names the model. */
export const geminiWire: Wire = {
  name: "gemini",
  route(path) {
    const model = endpoint.exec(path)?.[1];
    return model === undefined ? undefined : { wire: geminiWire, kind: "call", model };
  },
  read(body, { model = "" }) {
    const found = new Findings();
    found.members(body, members);
    const config = isObject(body["generationConfig"]) ? body["generationConfig"] : {};
    return {
      model,
      outputLimit: found.limit(config, "maxOutputTokens"),
      limitPath: ["generationConfig", "maxOutputTokens"],
      added: [],
      found,
    };
  },
  usageOf({ usageMetadata }) {
    if (!isObject(usageMetadata)) return undefined;
    const inputTokens = countIn(usageMetadata["promptTokenCount"]);
    const reasoningTokens = countIn(usageMetadata["thoughtsTokenCount"]) ?? 0;
    const answered = countIn(usageMetadata["candidatesTokenCount"]) ?? 0;
    const tools = countIn(usageMetadata["toolUsePromptTokenCount"]) ?? 0;
    return {
      ...(inputTokens !== undefined && {
        inputTokens: inputTokens + tools,
        cacheReadTokens: countIn(usageMetadata["cachedContentTokenCount"]) ?? 0,
      }),
      // The thoughts are billed as output, and are not part of the candidates.
      outputTokens: answered + reasoningTokens,
      reasoningTokens,
    };
  },
  isLast({ candidates, promptFeedback }) {
    const ended = (Array.isArray(candidates) ? (candidates as readonly unknown[]) : []).some(
      (each) => isObject(each) && textIn(each["finishReason"]) !== "",
    );
    return ended || (isObject(promptFeedback) && promptFeedback["blockReason"] !== undefined);
  },
  authorize: (apiKey) => ({ "x-goog-api-key": apiKey }),
  error: (code, message) => ({ error: { code, message, status: errorStatus(code) } }),
};

function errorStatus(code: number): string {
  if (code === 401) return "UNAUTHENTICATED";
  if (code === 402 || code === 429) return "RESOURCE_EXHAUSTED";
  if (code === 403) return "PERMISSION_DENIED";
  if (code === 404) return "NOT_FOUND";
  return code < 500 ? "INVALID_ARGUMENT" : "INTERNAL";
}
