import {
  describeValue,
  Fault,
  is,
  optionTable,
  readProperty,
  withoutSecrets,
  type OptionKinds,
  type Tool,
} from "../../kernel/index.ts";
import { errorResult, textResult } from "./tool-result.ts";
import { durationKind, tool } from "./tool.ts";

/** A search service that answers in JSON. `{query}`, `{count}` and `{key}` are replaced in `url`, `headers` and `body`. */
export interface SearchTemplate {
  /** Address of a search. Values are percent-encoded. */
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** JSON of a POST request. A text that is only a placeholder becomes the value, such as a number for `{count}`. Default: a GET request. */
  readonly body?: Readonly<Record<string, unknown>>;
  /** Path of the list of results in the answer. Default: `results`. */
  readonly results?: string;
  /** Names of the members of a result. `text` may be a text or a list of texts. Default: `title`, `url`, `content`. */
  readonly fields?: { readonly title?: string; readonly url?: string; readonly text?: string };
}

/** The search services that need no template. */
export type SearchProvider = "brave" | "exa" | "searxng" | "tavily";

/** Options of `webSearchTool()`. */
export interface WebSearchToolOptions {
  /** The service: a name, or a template for another one. */
  readonly provider: SearchProvider | SearchTemplate;
  /** Key of the service. Default: the variable `BRAVE_API_KEY`, `EXA_API_KEY` or `TAVILY_API_KEY`. */
  readonly key?: string;
  /**
   * Address of the service, without a path. SearXNG needs that of your server, whose settings must allow the format `json`. Default:
   * the public address of the service.
   */
  readonly url?: string;
  /** Maximum number of results. Default: 5. */
  readonly maxResults?: number;
  /** Maximum length of the text of one result, in characters. Default: 1_000. */
  readonly maxText?: number;
  /** Maximum duration of a call, in milliseconds. Default, also for `null`: 15_000. */
  readonly timeoutMs?: number | null;
}

const defaultMs = 15_000;
/** Largest answer that is read, in bytes. */
const largestAnswer = 2_000_000;

const knownOptions = optionTable({
  provider: is.any,
  key: is.text(),
  url: is.text(),
  maxResults: is.number({ from: 1, whole: true, default: 5 }),
  maxText: is.number({ from: 1, whole: true, default: 1_000 }),
  timeoutMs: durationKind(defaultMs),
} satisfies OptionKinds<WebSearchToolOptions>);

interface Service {
  /** Public address. Absent for a service that everyone runs alone. */
  readonly origin?: string;
  readonly template: SearchTemplate;
  /** The variable with the key. Absent if the service needs none. */
  readonly variable?: string;
}

/** The templates begin with the path. */
const services: Readonly<Record<SearchProvider, Service>> = {
  brave: {
    origin: "https://api.search.brave.com",
    variable: "BRAVE_API_KEY",
    template: {
      url: "/res/v1/web/search?q={query}&count={count}",
      headers: { "x-subscription-token": "{key}" },
      results: "web.results",
      fields: { text: "description" },
    },
  },
  exa: {
    origin: "https://api.exa.ai",
    variable: "EXA_API_KEY",
    template: {
      url: "/search",
      headers: { "x-api-key": "{key}" },
      body: { query: "{query}", numResults: "{count}", contents: { text: { maxCharacters: 2_000 } } },
      fields: { text: "text" },
    },
  },
  searxng: { template: { url: "/search?q={query}&format=json" } },
  tavily: {
    origin: "https://api.tavily.com",
    variable: "TAVILY_API_KEY",
    template: {
      url: "/search",
      headers: { authorization: "Bearer {key}" },
      body: { query: "{query}", max_results: "{count}" },
    },
  },
};

/**
 * Creates the tool `web_search`, which asks a search service and returns titles, addresses and texts. The key stays out of results,
 * errors and the journal. `fetchTool()` gets a page that a search has found.
 *
 * @example
 * ```ts
 * import { webSearchTool } from "reeve/tools";
 *
 * const search = webSearchTool({ provider: "searxng", url: "http://127.0.0.1:8080" });
 * ```
 */
export function webSearchTool(options: WebSearchToolOptions): Tool {
  const { maxResults, maxText, timeoutMs: limitMs, ...given } = knownOptions.read("webSearchTool()", options);
  const timeoutMs = limitMs ?? defaultMs;
  const { template, variable } = serviceOf(options.provider, given.url);
  const key = given.key ?? (variable === undefined ? undefined : process.env[variable]) ?? "";
  if (key === "" && JSON.stringify(template).includes("{key}"))
    throw new Fault(
      "invalid_argument",
      `missing key of webSearchTool(): set ${variable === undefined ? "the option key" : `the variable ${variable}, or the option key`}`,
    );
  const { host } = new URL(filled(template.url, { query: "q", count: 1, key: "k" }));
  return tool({
    name: "web_search",
    description: `Search the web. Returns at most ${maxResults} results with title, address and a part of the text.`,
    inputSchema: {
      type: "object",
      properties: { query: { type: "string", minLength: 1, description: "What to search for" } },
      required: ["query"],
      additionalProperties: false,
    } as const,
    // The call changes nothing, but the query can carry data to the service.
    risk: "high",
    destructive: false,
    timeoutMs: timeoutMs + 1_000,
    execute: async ({ query }, { signal: stop }) => {
      const late = AbortSignal.timeout(timeoutMs);
      const signal = AbortSignal.any([stop, late]);
      const metadata = { host, query };
      try {
        const values = { query, count: maxResults, key };
        const { status, text } = await ask(template, values, signal);
        if (status < 200 || status > 299)
          return errorResult(`${host} answered with status ${status}: ${shown(text, key)}`, {
            ...metadata,
            status,
          });
        const found = resultsIn(text, template, maxText).slice(0, maxResults);
        if (found.length === 0) return textResult("No results.", { ...metadata, results: 0 });
        const lines = found.map(
          ({ title, url, text: part }, at) => `${at + 1}. ${title}\n${url}${part === "" ? "" : `\n${part}`}`,
        );
        return textResult(lines.join("\n\n"), { ...metadata, results: found.length });
      } catch (error) {
        if (late.aborted && !stop.aborted)
          throw new Fault("tool_timeout", `${host} took longer than ${timeoutMs} ms`, { cause: error });
        if (stop.aborted) throw error;
        // The message of a failed request may contain its address, and with it the key.
        return errorResult(`${host} cannot be searched: ${shown(reasonOf(error), key)}`, metadata);
      }
    },
  });
}

function serviceOf(provider: unknown, url: string | undefined): Service {
  if (typeof provider === "string" && Object.hasOwn(services, provider)) {
    const { origin, template, ...rest } = services[provider as SearchProvider];
    const address = url ?? origin;
    if (address === undefined)
      throw new Fault(
        "invalid_argument",
        `missing url of webSearchTool(): the provider ${provider} needs the address of your server, such as http://127.0.0.1:8080`,
      );
    checkAddress(address);
    return { ...rest, template: { ...template, url: address.replace(/\/+$/u, "") + template.url } };
  }
  const address = readProperty(provider, "url");
  if (typeof address !== "string")
    throw new Fault(
      "invalid_argument",
      `invalid provider ${describeValue(provider)} of webSearchTool(): expected brave, exa, searxng, tavily or a template { url, headers, body, results, fields }`,
    );
  if (url !== undefined)
    throw new Fault(
      "invalid_argument",
      "invalid url of webSearchTool(): a template has an address of its own; remove url",
    );
  const template = provider as SearchTemplate;
  checkAddress(address);
  if (!JSON.stringify([template.url, template.body ?? {}]).includes("{query}"))
    throw new Fault(
      "invalid_argument",
      "invalid provider of webSearchTool(): the template has no {query} in url or body, so that every search would be the same",
    );
  return { template };
}

function checkAddress(url: string): void {
  if (URL.canParse(url) && /^https?:$/u.test(new URL(url).protocol)) return;
  throw new Fault(
    "invalid_argument",
    `invalid url ${JSON.stringify(url)} of webSearchTool(): expected an http or https address`,
  );
}

interface Values {
  readonly query: string;
  readonly count: number;
  readonly key: string;
}

const placeholder = /\{(query|count|key)\}/gu;

/** Replaces the placeholders of an address. */
function filled(url: string, values: Values): string {
  return url.replace(placeholder, (_all, name: keyof Values) => encodeURIComponent(values[name]));
}

function filledText(text: string, values: Values): string {
  return text.replace(placeholder, (_all, name: keyof Values) => String(values[name]));
}

/** Replaces the placeholders in all texts of a body. */
function filledBody(value: unknown, values: Values): unknown {
  if (typeof value === "string") return value === "{count}" ? values.count : filledText(value, values);
  if (Array.isArray(value)) return value.map((each) => filledBody(each, values));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, filledBody(each, values)]));
}

async function ask(
  { url, headers = {}, body }: SearchTemplate,
  values: Values,
  signal: AbortSignal,
): Promise<{ readonly status: number; readonly text: string }> {
  const own = Object.entries(headers).map(([name, value]) => [name, filledText(value, values)] as const);
  const response = await fetch(filled(url, values), {
    // A redirect could carry the key to another host.
    redirect: "error",
    signal,
    headers: {
      accept: "application/json",
      ...(body !== undefined && { "content-type": "application/json" }),
      ...Object.fromEntries(own),
    },
    ...(body !== undefined && { method: "POST", body: JSON.stringify(filledBody(body, values)) }),
  });
  const pieces: Uint8Array[] = [];
  let size = 0;
  for await (const piece of response.body ?? []) {
    size += piece.length;
    if (size > largestAnswer) throw new Error(`the answer has more than ${largestAnswer} bytes`);
    pieces.push(piece);
  }
  return { status: response.status, text: Buffer.concat(pieces).toString("utf8") };
}

interface Found {
  readonly title: string;
  readonly url: string;
  readonly text: string;
}

function resultsIn(
  answer: string,
  { results = "results", fields = {} }: SearchTemplate,
  maxText: number,
): readonly Found[] {
  let list: unknown;
  try {
    list = JSON.parse(answer);
  } catch (cause) {
    throw new Error("the answer is no JSON", { cause });
  }
  for (const name of results.split(".")) list = readProperty(list, name);
  if (list === undefined || list === null) return [];
  if (!Array.isArray(list)) throw new Error(`the answer has no list ${results}`);
  const { title = "title", url = "url", text = "content" } = fields;
  return list.flatMap((each: unknown) => {
    const address = readProperty(each, url);
    if (typeof address !== "string") return [];
    const name = textOf(readProperty(each, title));
    const part = textOf(readProperty(each, text));
    return [
      { title: name === "" ? address : name, url: address, text: part.slice(0, maxText).toWellFormed() },
    ];
  });
}

/** A text or a list of texts as one line. */
function textOf(value: unknown): string {
  const texts = Array.isArray(value) ? value : [value];
  return texts
    .filter((each): each is string => typeof each === "string")
    .join(" ")
    .replace(/\s+/gu, " ")
    .trim();
}

function reasonOf(error: unknown): string {
  const { message, cause } = error as Error;
  return cause instanceof Error && cause.message !== "" ? `${message}: ${cause.message}` : message;
}

/** A text of the service without the key. */
function shown(text: string, key: string): string {
  const cut = text.slice(0, 500).toWellFormed();
  return withoutSecrets(
    key === "" ? cut : cut.replaceAll(key, "[secret]").replaceAll(encodeURIComponent(key), "[secret]"),
  );
}
