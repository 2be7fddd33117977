import {
  type ProviderError,
  apiCallError,
  fetchFailed,
  ollamaClientError,
  openAiBody,
  systemError,
} from "./shapes.ts";

const refused = systemError("ECONNREFUSED", "connect ECONNREFUSED 127.0.0.1:11434");
const runnerStopped =
  "model runner has unexpectedly stopped, this may be due to resource limitations or an internal error, check ollama " +
  "server logs for details";
const ollamaCompatible = openAiBody('model "qwen3" not found, try pulling it first', "api_error");

export const ollamaErrors: readonly ProviderError[] = [
  [
    "model_not_found",
    "Ollama 404 model not pulled, ollama client",
    ollamaClientError(404, "model 'mistral:instruct' not found, try pulling it first"),
  ],
  [
    "model_not_found",
    "Ollama 404 model not pulled, OpenAI-compatible, AI SDK",
    apiCallError(404, ollamaCompatible),
  ],
  [
    "model_not_found",
    "Ollama model not pulled, raw body",
    { error: "model 'mistral:instruct' not found, try pulling it first" },
  ],
  [
    "context_overflow",
    "Ollama 400 input over the context length, raw body",
    { status: 400, error: "the input length exceeds the context length" },
  ],
  [
    "context_overflow",
    "Ollama input over the context length, AI SDK",
    apiCallError(400, { error: "the input length exceeds the context length" }),
  ],
  [
    "format_error",
    "Ollama 400 model without tools, ollama client",
    ollamaClientError(400, "registry.ollama.ai/library/llama2:13b does not support tools"),
  ],
  [
    "overloaded",
    "Ollama 503 queue full, ollama client",
    ollamaClientError(503, "server busy, please try again.  maximum pending requests exceeded"),
  ],
  [
    "overloaded",
    "Ollama cloud 503 overloaded, AI SDK",
    apiCallError(503, { error: "Server overloaded, please retry shortly (ref: aaa65c70)" }),
  ],
  [
    "server_error",
    "Ollama 500 runner terminated, ollama client",
    ollamaClientError(500, "llama runner process has terminated: exit status 2"),
  ],
  ["server_error", "Ollama runner stopped, raw stream line", { error: runnerStopped }],
  [
    "server_error",
    "Ollama unexpected EOF, raw stream line",
    { error: "an error was encountered while running the model: unexpected EOF" },
  ],
  ["server_error", "Ollama not running, fetch (K4)", fetchFailed(refused)],
  [
    "server_error",
    "Ollama not running on either address, fetch",
    fetchFailed(Object.assign(new AggregateError([refused, refused]), { code: "ECONNREFUSED" })),
  ],
  [
    "timeout",
    "Ollama slow to load, undici headers timeout",
    fetchFailed(systemError("UND_ERR_HEADERS_TIMEOUT", "Headers Timeout Error")),
  ],
];
