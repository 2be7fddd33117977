import { countIn, everyObject, isObject, isOther, listIn, objectsIn, type Json, type Wire } from "./wire.ts";

/** A model has a plain name: the path of the request becomes that of the request to the provider. */
const endpoint =
  /^\/v1(?:beta|alpha)?\/models\/([A-Za-z0-9][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*):(generateContent|streamGenerateContent|countTokens)$/;

/** The Gemini API of Google. The path names the model. */
export const geminiWire: Wire = {
  name: "gemini",
  route(path) {
    const [, model, method] = endpoint.exec(path) ?? [];
    if (model === undefined) return undefined;
    return {
      wire: geminiWire,
      kind: method === "countTokens" ? "count" : "call",
      model,
      isStream: method === "streamGenerateContent",
    };
  },
  read(body, { model = "", isStream = false }) {
    const config = isObject(body["generationConfig"]) ? body["generationConfig"] : {};
    return {
      model,
      outputLimit: countIn(config["maxOutputTokens"]),
      limitPath: ["generationConfig", "maxOutputTokens"],
      isStream,
      added: [],
      unbounded: [...unboundedIn(body, config)],
      ...problemIn(body, config),
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
  authorize: (apiKey) => ({ "x-goog-api-key": apiKey }),
  error: (code, message) => ({ error: { code, message, status: errorStatus(code) } }),
};

/** The provider accepts other spellings as well, which could state another limit than the one that the gateway sets. */
function problemIn(body: Json, config: Json): { readonly problem?: string } {
  if (body["generation_config"] !== undefined)
    return { problem: "generation_config is given; use generationConfig" };
  const other = Object.keys(config).find((name) => name.includes("_"));
  return other === undefined ? {} : { problem: `${other} is given; use the name without underscores` };
}

function* unboundedIn(body: Json, config: Json): Iterable<string> {
  for (const tool of objectsIn(body["tools"]))
    for (const name of Object.keys(tool))
      if (name !== "functionDeclarations" && name !== "function_declarations") yield name;
  for (const name of ["cachedContent", "cached_content"]) if (body[name] !== undefined) yield "cachedContent";
  if (isOther(config["candidateCount"], 1)) yield "candidateCount";
  if (listIn(config["responseModalities"]).some((each) => each !== "TEXT")) yield "responseModalities";
  const tier = body["serviceTier"] ?? body["service_tier"];
  if (tier !== undefined && tier !== "standard" && tier !== "flex") yield `tier ${JSON.stringify(tier)}`;
  for (const { fileData, file_data, mimeType, mime_type } of everyObject(body["contents"])) {
    if (fileData !== undefined || file_data !== undefined) yield "file by uri";
    if (/^(audio|video)\//i.test(String(mimeType ?? mime_type))) yield "audio";
  }
}

function errorStatus(code: number): string {
  if (code === 401) return "UNAUTHENTICATED";
  if (code === 402 || code === 429) return "RESOURCE_EXHAUSTED";
  if (code === 403) return "PERMISSION_DENIED";
  if (code === 404) return "NOT_FOUND";
  return code < 500 ? "INVALID_ARGUMENT" : "INTERNAL";
}
