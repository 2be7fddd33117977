import type { ReportedUsage } from "../../kernel/index.ts";
import type { Json } from "./json-values.ts";
import type { Findings } from "./request-shape.ts";

/** The facts about a request that the gateway must know. */
export interface WireRequest {
  /** The model, as the request names it. */
  readonly model: string;
  /** The output limit that the request states. `undefined` if it states none. */
  readonly outputLimit: number | undefined;
  /**
   * The path of the member with the output limit, from the top of the request. The member is added if it is absent.
   */
  readonly limitPath: readonly string[];
  /**
   * The member in which the program stated the limit, if the provider does not know it. The member at `limitPath`
   * replaces it.
   */
  readonly unknownLimit?: string;
  /** Further members that the gateway sets, by path and JSON text. */
  readonly added: readonly { readonly path: readonly string[]; readonly value: string }[];
  /** Whether the program did not ask for the stream event with the usage, so that the gateway must hide it. */
  readonly hidesUsage?: boolean;
  /** The part of the output limit that the request reserves for thoughts. It must be below the output limit. */
  readonly thinking?: {
    readonly tokens: number;
    /** The member that states it. */
    readonly path: readonly string[];
    /** The lowest number that the provider accepts. */
    readonly least: number;
  };
  /** What the checks of the members found. */
  readonly found: Findings;
}

/** The part of the configuration that concerns the requests of a protocol (wire). */
interface WireRules {
  readonly allow: readonly string[];
  /** The provider, by its name in the price list. */
  readonly provider: string;
  /** The member of Chat Completions in which the provider reads an output limit. */
  readonly outputLimit: OutputLimitName;
}

/** The names of the output limit in Chat Completions. */
export type OutputLimitName = "max_completion_tokens" | "max_tokens";

/** A route of the gateway: one endpoint of a provider. */
export interface Route {
  readonly wire: Wire;
  /** Kind of the endpoint. `count` counts tokens; it is free and needs no reservation. */
  readonly kind: "call" | "count";
  /** The model, if the path names it. */
  readonly model?: string;
}

/** A protocol (wire) between programs and a provider: endpoints, members, usage and errors. */
export interface Wire {
  readonly name: "anthropic" | "openai" | "gemini";
  /** Returns the route of a path, or `undefined` if the wire has no such endpoint. */
  route(path: string): Route | undefined;
  read(body: Json, route: Route, rules: WireRules): WireRequest;
  /** Path of the endpoint that counts the input tokens of this request. `undefined` if there is none. */
  readonly countPath?: string;
  /** The members of a call that the request to `countPath` also contains. */
  readonly countMembers?: readonly string[];
  /** Returns the number of input tokens in the answer of `countPath`. */
  countOf?(answer: Json): number | undefined;
  /** The usage that an answer, or one event of a stream, reports. `undefined` if it reports none. */
  usageOf(answer: Json): StreamedUsage | undefined;
  /**
   * Whether an event of a stream can be the last one that reports usage. If absent, every event that reports the
   * output can.
   */
  isLast?(event: Json): boolean;
  /** Whether an event of a stream exists only because the gateway asked for usage. */
  isUsageOnly?(event: Json): boolean;
  /** The headers that authenticate the gateway at the provider. */
  authorize(apiKey: string): Readonly<Record<string, string>>;
  /** Returns the body of an error, in the form that the clients of this protocol understand. */
  error(status: number, message: string): Json;
}

/** Usage of a stream so far. Later events replace the counts that they also contain. */
export type StreamedUsage = Partial<ReportedUsage>;
