import { isIP } from "node:net";
import { Fault, is, optionTable, type OptionKinds } from "../../kernel/index.ts";
import { recordModes, type RecordMode } from "./call-record.ts";
import { isObject } from "./json-values.ts";
import type { GatewayUpstream } from "./upstream.ts";
import type { Wire } from "./wire.ts";

/** Options of `openGateway()`. */
export interface GatewayOptions {
  /** The providers, by the protocol (wire) that programs use. A protocol without a provider is not served. */
  readonly upstreams: Readonly<Partial<Record<Wire["name"], GatewayUpstream>>>;
  /** Names of the models that may be called. Default: every model with a known price. */
  readonly models?: readonly string[];
  /**
   * Names of features that programs may use although the gateway does not know them, or cannot limit their cost:
   * members, server tools (`web_search`), tiers (`priority`), stored conversations (`store`,
   * `previous_response_id`), files (`file`). Default: none.
   */
  readonly allow?: readonly string[];
  /** Highest output limit of one request. A higher limit is lowered, and a missing one is added. Default: 16_000. */
  readonly maxOutputTokens?: number;
  /** Largest body of a request, in bytes. Default: 33_554_432. */
  readonly maxBodyBytes?: number;
  /**
   * Maximum sum of the bodies that the gateway keeps in memory until their providers have received them, in bytes.
   * The programs of one attempt or gateway run may use half of it. Default: 134_217_728.
   */
  readonly maxOpenBytes?: number;
  /**
   * Maximum number of open requests of one token. The same number of requests may also wait for a top-up. Default:
   * 50.
   */
  readonly maxOpenRequests?: number;
  /**
   * B5: how long a request that does not fit into the budget waits for a top-up, if the task asks a person for one
   * (`onBudget: "ask"`), in milliseconds. When this time has passed, the request is refused with 402, and the
   * question stays open. Default: 60_000.
   */
  readonly topUpWaitMs?: number;
  /**
   * What the log of the run contains about each request, in addition to model, usage and cost. `none`: nothing.
   * `sizes`: the sizes of request and answer. `bodies`: also their texts, up to 1 MiB each. Default: `none`.
   */
  readonly record?: RecordMode;
  /** Changes a text before it is stored with `record: "bodies"`. If it throws, the texts are not stored. Default: no change. */
  readonly redact?: (text: string) => string;
}

const gatewayTable = optionTable({
  upstreams: is.any,
  models: is.list(),
  allow: is.list(),
  maxOutputTokens: is.integer({ from: 1, default: 16_000 }),
  maxBodyBytes: is.integer({ from: 1, default: 32 * 1024 * 1024 }),
  maxOpenBytes: is.integer({ from: 1, default: 128 * 1024 * 1024 }),
  maxOpenRequests: is.integer({ from: 1, default: 50 }),
  topUpWaitMs: is.integer({ from: 0, default: 60_000 }),
  record: is.choice(recordModes, { default: "none" }),
  redact: is.callback(),
} satisfies OptionKinds<GatewayOptions>);

/** The options with their defaults. */
export type GatewayRules = Required<Omit<GatewayOptions, "models">> & Pick<GatewayOptions, "models">;

/** Reads the options of `openGateway()` and checks the upstreams. */
export function readOptions(options: GatewayOptions): GatewayRules {
  const {
    allow = [],
    redact = (text: string): string => text,
    ...read
  } = gatewayTable.read("openGateway()", options);
  checkUpstreams(options.upstreams);
  return { ...read, allow, redact };
}

function checkUpstreams(upstreams: GatewayOptions["upstreams"]): void {
  const use = 'use upstreams: { anthropic: { baseUrl: "https://api.anthropic.com", apiKey } }';
  if (!isObject(upstreams) || Object.keys(upstreams).length === 0)
    throw new Fault(
      "invalid_argument",
      `invalid upstreams of openGateway(): expected at least one provider; ${use}`,
    );
  for (const [name, upstream] of Object.entries(upstreams)) {
    const owner = `upstream ${name} of openGateway()`;
    if (name !== "anthropic" && name !== "openai" && name !== "gemini")
      throw new Fault("invalid_argument", `invalid ${owner}: expected anthropic, openai or gemini; ${use}`);
    const { baseUrl, apiKey, allowHttp = false } = upstreamTable.read(owner, upstream);
    const problem = addressProblem(baseUrl, allowHttp);
    if (problem !== undefined)
      throw new Fault("invalid_argument", `invalid baseUrl ${baseUrl} of ${owner}: ${problem}; ${use}`);
    if (apiKey === undefined || apiKey === "")
      throw new Fault(
        "invalid_argument",
        `invalid apiKey of ${owner}: expected the key of the provider; ${use}`,
      );
  }
}

/** What is wrong with the address of a provider, or `undefined`. */
function addressProblem(baseUrl: string, allowHttp: boolean): string | undefined {
  if (!URL.canParse(baseUrl)) return "expected an http or https address";
  const { protocol, hostname, pathname, search, hash, username, password } = new URL(baseUrl);
  if (protocol !== "https:" && protocol !== "http:") return "expected an http or https address";
  if (search !== "" || hash !== "" || username !== "" || password !== "")
    return "expected an address without a user, a query and a fragment";
  if (/\/v1(?:beta|alpha)?\/*$/.test(pathname))
    return "expected it without the version, which each request has";
  const isEncrypted = protocol === "https:" || isLoopback(hostname);
  return isEncrypted || allowHttp
    ? undefined
    : "http would send the key unencrypted to another machine; use https, or allowHttp: true";
}

function isLoopback(hostname: string): boolean {
  return (
    hostname === "localhost" || hostname === "[::1]" || (isIP(hostname) === 4 && hostname.startsWith("127."))
  );
}

const upstreamTable = optionTable({
  baseUrl: is.text(),
  apiKey: is.text(),
  provider: is.text(),
  outputLimit: is.choice(["max_completion_tokens", "max_tokens"]),
  allowHttp: is.boolean(),
} satisfies OptionKinds<GatewayUpstream>);
