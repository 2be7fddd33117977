import type { ReportedUsage } from "../../kernel/index.ts";

/** A JSON object of a request or an answer, as the other side sent it. */
export type Json = Readonly<Record<string, unknown>>;

/** What a request asks for, as far as the gateway must know it. */
export interface WireRequest {
  /** The model, as the request names it. */
  readonly model: string;
  /** The output limit that the request states. `undefined` if it states none. */
  readonly outputLimit: number | undefined;
  /** The member that states the output limit, from the top of the request down. It is added if it is absent. */
  readonly limitPath: readonly string[];
  readonly isStream: boolean;
  /** Further members that the gateway sets, by path and JSON text. */
  readonly added: readonly { readonly path: readonly string[]; readonly value: string }[];
  /**
   * What the request uses whose cost the gateway cannot bound, by the name under which configuration may allow it, such as
   * `web_search`.
   */
  readonly unbounded: readonly string[];
  /** The part of the output limit that the request reserves for thoughts. It must be below the output limit. */
  readonly thinking?: {
    readonly tokens: number;
    /** The member that states it. */
    readonly path: readonly string[];
    /** The lowest number that the provider accepts. */
    readonly least: number;
  };
  /** What is wrong with the request, or `undefined`. */
  readonly problem?: string;
}

/** A route of the gateway: one endpoint of a provider. */
export interface Route {
  readonly wire: Wire;
  /** `count`: it counts tokens, is free and not reserved. */
  readonly kind: "call" | "count";
  /** The model, if the path names it. */
  readonly model?: string;
  /** Whether the path asks for a stream. */
  readonly isStream?: boolean;
}

/** How programs and a provider talk: endpoints, members, usage and errors. */
export interface Wire {
  readonly name: "anthropic" | "openai" | "gemini";
  /** Returns the route of a path, or `undefined` if the wire has no such endpoint. */
  route(path: string): Route | undefined;
  read(body: Json, route: Route): WireRequest;
  /** Path of the endpoint that counts the input tokens of this request. `undefined` if there is none. */
  readonly countPath?: string;
  /** The request of `countPath` for a call with this body. */
  countBody?(body: Json): Json;
  /** The input tokens that the answer of `countPath` states. */
  countOf?(answer: Json): number | undefined;
  /** The usage that an answer, or one event of a stream, reports. `undefined` if it reports none. */
  usageOf(answer: Json): StreamedUsage | undefined;
  /** Whether an event of a stream exists only because the gateway asked for usage. */
  isUsageOnly?(event: Json): boolean;
  /** The headers that authenticate the gateway at the provider. */
  authorize(apiKey: string): Readonly<Record<string, string>>;
  /** The body of an error, in the shape that the clients of this wire understand. */
  error(status: number, message: string): Json;
}

/** Usage of a stream so far. Later events replace the counts that they contain. */
export type StreamedUsage = Partial<ReportedUsage>;

export function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function objectsIn(value: unknown): readonly Json[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

/** Whether a member is present and has another value, also if only a lenient reader would take it for a number. */
export function isOther(value: unknown, expected: unknown): boolean {
  return value !== undefined && value !== null && value !== expected;
}

/** The elements of a list. Another value is its only element, and an absent one is none. */
export function listIn(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  return value === undefined || value === null ? [] : [value];
}

/** A count of tokens, or `undefined` if the value is none. */
export function countIn(value: unknown): number | undefined {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

/** Every object inside a value, the value itself included. */
export function* everyObject(value: unknown): Iterable<Json> {
  const open: unknown[] = [value];
  for (let next = open.pop(); open.length > 0 || next !== undefined; next = open.pop()) {
    if (Array.isArray(next)) for (const each of next) open.push(each);
    else if (isObject(next)) {
      yield next;
      for (const each of Object.values(next)) if (typeof each === "object" && each !== null) open.push(each);
    }
  }
}

/** Upper bound of the tokens of one image of any size, at any provider. */
const tokensPerImage = 8_192;
/** Upper bound of the tokens of the instructions that a provider adds about tools and the format of the answer. */
const addedTokens = 1_152;
const imageTypes: ReadonlySet<unknown> = new Set(["image", "input_image", "image_url"]);

/** B1: upper bound of the input tokens of a request: one per byte, and a fixed bound for each image. */
export function boundTokens(body: Json, bytes: number): number {
  let images = 0;
  for (const { type, inlineData, inline_data } of everyObject(body))
    if (imageTypes.has(type) || inlineData !== undefined || inline_data !== undefined) images++;
  return bytes + addedTokens + images * tokensPerImage;
}

/** Whether a text is an address that the provider would load, so that its size is not part of the request. */
export function isRemote(value: unknown): boolean {
  return typeof value === "string" && !value.startsWith("data:");
}
