import { describeValue } from "../base/describe-value.ts";
import {
  isArray,
  isObject,
  readElements,
  readEmbeddedJson,
  readLast,
  readProperty,
} from "../base/read-property.ts";
import { withoutSecrets } from "../base/text.ts";

/**
 * Property names that contain facts about an error, in errors of providers, their SDKs, the AI SDK and the
 * platform.
 */

const statusKeys: readonly string[] = [
  "statusCode",
  "status",
  // Ollama's client uses this name.
  "status_code",
  // Bodies of Google and OpenRouter use this name.
  "code",
];

/** Properties that hold short identifiers. */
const labelKeys: readonly string[] = [
  "name",
  "code",
  "type",
  "status",
  // Google's error details use this name.
  "reason",
  "quotaId",
  // OpenRouter's `metadata` uses this name.
  "error_type",
  "limit_source",
  // Answers that a filter withheld, which are not always thrown as errors.
  "blockReason",
  "finishReason",
  "finish_reason",
  "stop_reason",
];

/** Properties that contain sentences, or JSON as a string. */
const textKeys: readonly string[] = [
  "message",
  // Ollama sends `{ error: "…" }`.
  "error",
  "responseBody",
  "body",
  "data",
  "detail",
  "error_message",
  // OpenRouter: the text of the upstream provider.
  "raw",
];

const headerKeys: readonly string[] = ["responseHeaders", "headers"];

/**
 * Properties whose values are searched, those nearest to the final failure first. None of them contains what the
 * caller sent, because a prompt that quotes an error must not decide the kind.
 */
const childKeys: readonly string[] = [
  // The AI SDK's `RetryError` uses this name.
  "lastError",
  "error",
  "data",
  "body",
  "responseBody",
  "response",
  "metadata",
  "raw",
  "details",
  // The package `@google/generative-ai` uses this name.
  "errorDetails",
  "violations",
  // Azure uses this name.
  "innererror",
  "promptFeedback",
  "candidates",
  "cause",
];

/** Facts that a thrown value and the errors it wraps report about themselves. */
export interface ErrorFacts {
  /**
   * The HTTP status of the outermost error in the chain of causes that has one. Statuses below 400 are ignored,
   * because a response with status 200 can contain an error.
   */
  readonly status?: number;
  /** The error code of the provider or the platform (such as `ECONNREFUSED`), in its original spelling. */
  readonly providerCode?: string;
  readonly message: string;
  /** Lower-case `key: value` lines, outermost first, cut to a fixed size. */
  readonly evidence: string;
  readonly headers: readonly unknown[];
  /** Wait times that the body of the response names, such as `34s`. */
  readonly retryDelays: readonly string[];
}

// Limits on the work per error. Real provider bodies stay far below them.
const maxDepth = 8;
const maxNodes = 48;
const maxElements = 8;
const maxJsonText = 100_000;
const maxText = 4_000;
const maxEvidence = 16_000;
const maxMessage = 500;

const vagueMessage = /^(?:provider returned error|fetch failed|terminated|connection error\.?)$/i;

interface Visit {
  readonly value: unknown;
  readonly depth: number;
}

/** Collects facts from an error breadth first, so that facts of outer errors come first. */
class ErrorReader {
  readonly #headers: unknown[] = [];
  readonly #retryDelays: string[] = [];
  readonly #queue: Visit[] = [];
  readonly #seen = new WeakSet<object>();
  readonly #codes = { code: "", type: "", status: "" };
  readonly #plainTexts: string[] = [];
  readonly #mixedTexts: string[] = [];
  #evidence = "";
  #status: number | undefined;

  read(error: unknown): ErrorFacts {
    this.#queue.push({ value: error, depth: 0 });
    for (let nodes = 0; nodes < maxNodes; nodes += 1) {
      const visit = this.#queue.shift();
      if (visit === undefined) break;
      this.#visit(visit);
    }
    const evidence = this.#evidence.toLowerCase();
    const status = this.#status ?? statusInWords(evidence);
    const providerCode = this.#codes.code || this.#codes.type || this.#codes.status;
    return {
      message: this.#message(error),
      evidence,
      headers: this.#headers,
      retryDelays: this.#retryDelays,
      ...(status === undefined ? {} : { status }),
      ...(providerCode === "" ? {} : { providerCode }),
    };
  }

  #visit({ value, depth }: Visit): void {
    if (typeof value === "string") this.#takeText("message", value, depth);
    if (!isObject(value) || this.#seen.has(value) || depth > maxDepth) return;
    this.#seen.add(value);
    if (isArray(value)) {
      for (const element of readElements(value, maxElements)) this.#push(element, depth);
      return;
    }
    this.#takeOwn(value, depth);
    for (const key of childKeys) {
      const child = readProperty(value, key);
      if (isObject(child)) this.#push(child, depth);
    }
    // Of several failures, the last one ended the call.
    const last = readLast(readProperty(value, "errors"));
    if (isObject(last) && !isObject(readProperty(value, "lastError"))) this.#push(last, depth);
  }

  #takeOwn(node: object, depth: number): void {
    for (const key of statusKeys) this.#status ??= toStatus(readProperty(node, key));
    for (const key of labelKeys) this.#takeLabel(key, readProperty(node, key));
    for (const key of textKeys) {
      const text = readProperty(node, key);
      if (typeof text === "string") this.#takeText(key, text, depth);
    }
    for (const key of headerKeys) {
      const headers = readProperty(node, key);
      if (isObject(headers)) this.#headers.push(headers);
    }
    const delay = readProperty(node, "retryDelay");
    if (typeof delay === "string") this.#retryDelays.push(delay);
    // This property exists only if moderation refused the input, which it quotes. Record the fact without the quoted
    // text.
    if (typeof readProperty(node, "flagged_input") === "string") this.#addEvidence("flagged_input", "yes");
  }

  #takeLabel(key: string, label: unknown): void {
    if (typeof label !== "string" || label.length > 200) return;
    this.#addEvidence(key, label);
    if (key !== "code" && key !== "type" && key !== "status") return;
    if (isProviderCode(label)) this.#codes[key] ||= label;
  }

  #takeText(key: string, text: string, depth: number): void {
    const json = text.length <= maxJsonText ? readEmbeddedJson(text) : undefined;
    const shown = text.slice(0, maxText);
    if (json === undefined) {
      this.#addEvidence(key, shown);
      if (shown.trim() !== "") this.#plainTexts.push(shown);
      return;
    }
    this.#addEvidence(key, json.before);
    this.#mixedTexts.push(shown);
    this.#push(json.value, depth);
  }

  #push(value: unknown, depth: number): void {
    this.#queue.push({ value, depth: depth + 1 });
  }

  #addEvidence(key: string, text: string): void {
    const room = maxEvidence - this.#evidence.length;
    if (room > 0) this.#evidence += `${key}: ${text.slice(0, maxText)}\n`.slice(0, room);
  }

  #message(error: unknown): string {
    const texts = [...this.#plainTexts, ...this.#mixedTexts];
    const chosen = texts.find((text) => !vagueMessage.test(text.slice(0, maxMessage))) ?? texts[0];
    const primitive =
      isObject(error) || error === undefined || error === ""
        ? undefined
        : typeof error === "string"
          ? error
          : describeValue(error);
    // Secrets are removed before the text is cut: half a key would not be recognised.
    return withoutSecrets(chosen ?? primitive ?? "no error message").slice(0, maxMessage);
  }
}

export function readErrorFacts(error: unknown): ErrorFacts {
  return new ErrorReader().read(error);
}

function toStatus(value: unknown): number | undefined {
  const status = typeof value === "string" && /^\d{3}$/.test(value) ? Number(value) : value;
  return typeof status === "number" && Number.isInteger(status) && status >= 400 && status < 600
    ? status
    : undefined;
}

/** Finds the status in the text of an error: `429 Too Many…`, `status code 402`, `[503 Service Unavailable]`. */
function statusInWords(evidence: string): number | undefined {
  return toStatus(/(?:\b(?:error|message|status|http)(?: code)?:? |\[)([45]\d\d)\b/.exec(evidence)?.[1]);
}

/**
 * Whether a label is an error code of a provider. A number, a sentence, a status phrase (`Forbidden`), an envelope
 * and a code of a client library are not.
 */
function isProviderCode(label: string): boolean {
  return (
    /^[A-Za-z][\w.-]+$/.test(label) && !/^(?:[A-Z][a-z]+|error|failed|response\.\w+|ERR_\w+)$/.test(label)
  );
}
