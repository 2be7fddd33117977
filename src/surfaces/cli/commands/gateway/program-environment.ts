import { basename } from "node:path";
import { gatewayVariables, leadsAway } from "../../../../capabilities/gateway/program-variables.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** A program that uses the gateway: its command line and its environment. */
export interface GatewayCommand {
  readonly args: readonly string[];
  readonly env: Record<string, string>;
  /** Names of the variables that are removed from the program's environment. */
  readonly removed: readonly string[];
  /** A warning about something that the person must do and that the command line does not show. */
  readonly warning?: string;
}

/** The gateway as the program uses it. */
export interface ProgramGateway {
  readonly url: string;
  readonly token: string;
  /** Returns whether a value is the key of a provider of the gateway. Default: returns `false` for every value. */
  readonly isKey?: (value: string) => boolean;
  /** Names of variables that the program inherits although with them it may bypass the gateway. Default: none. */
  readonly kept?: readonly string[];
}

/**
 * Returns the command line and the environment with which a program uses the gateway. The program inherits the
 * variables of `env` except those with which it would bypass the gateway.
 */
export function gatewayCommand(
  args: readonly string[],
  { url, token, isKey = () => false, kept = [] }: ProgramGateway,
  env: Environment,
): GatewayCommand {
  const inherited: Record<string, string> = {};
  const removed: string[] = [];
  for (const [name, value] of Object.entries(env)) {
    if (value === undefined) continue;
    const isRemoved = leadsAway(name) || isKey(value);
    if (isRemoved && !kept.includes(name)) removed.push(name);
    else inherited[name] = value;
  }
  const own = {
    ...gatewayVariables({ url, token }),
    NO_PROXY: withLoopback(env["NO_PROXY"] ?? env["no_proxy"]),
    no_proxy: withLoopback(env["no_proxy"] ?? env["NO_PROXY"]),
  };
  const codex = placeOf("codex", args);
  const after = codex === undefined ? 0 : codex + 1;
  const warning =
    codex === undefined && args.some((each) => /\bcodex\b/.test(each)) ? codexWarning : undefined;
  const isOpenCode = placeOf("opencode", args) !== undefined;
  return {
    args: [...args.slice(0, after), ...(codex === undefined ? [] : codexOptions(url)), ...args.slice(after)],
    env: { ...inherited, ...own, ...(isOpenCode && openCodeSettings(url, token)) },
    removed: removed.filter((name) => !Object.hasOwn(own, name)),
    ...(warning !== undefined && { warning }),
  };
}

const codexWarning =
  "the command seems to start codex in a way that cannot be seen, so it is not set up for the gateway: write codex, or npx codex, as the command itself";

/** Programs that start another program, which their arguments name. */
const launchers: ReadonlySet<string> = new Set([
  "npx",
  "npm",
  "pnpm",
  "pnpx",
  "yarn",
  "bun",
  "bunx",
  "node",
  "deno",
  "env",
  "nice",
  "time",
  "timeout",
]);

/** Maximum number of launcher arguments among which the program is searched. */
const mostLaunching = 6;

/**
 * Returns the index of the argument that names a program: the first argument, or one of the first arguments of a
 * launcher.
 */
function placeOf(program: "codex" | "opencode", args: readonly string[]): number | undefined {
  const pattern = program === "codex" ? /^codex(?:@\S+)?$/ : /^opencode(?:-ai)?(?:@\S+)?$/;
  const isIt = (text: string): boolean => pattern.test(plainName(text));
  const [first = "", ...others] = args;
  if (isIt(first)) return 0;
  const place = launchers.has(plainName(first)) ? others.slice(0, mostLaunching).findIndex(isIt) : -1;
  return place === -1 ? undefined : place + 1;
}

function plainName(program: string): string {
  return basename(program).replace(/\.(?:cmd|exe|m?js)$/, "");
}

/**
 * Adds the loopback addresses to a list of addresses that are reached without a proxy, because the gateway is on
 * loopback.
 */
function withLoopback(list: string | undefined): string {
  return [...(list === undefined || list === "" ? [] : [list]), "127.0.0.1", "localhost"].join(",");
}

/**
 * Returns the arguments that configure Codex for the gateway. Codex takes its provider from its configuration. By
 * default it repeats refused requests, and offers the provider's search tool, which the gateway refuses because a
 * token limit does not limit the cost of a search.
 */
function codexOptions(url: string): readonly string[] {
  const settings = {
    model_provider: "reeve",
    "model_providers.reeve.name": "reeve",
    "model_providers.reeve.base_url": `${url}/v1`,
    "model_providers.reeve.env_key": "REEVE_GATEWAY_TOKEN",
    "model_providers.reeve.wire_api": "responses",
    web_search: "disabled",
  };
  const texts = Object.entries(settings).map(([name, value]) => `${name}=${JSON.stringify(value)}`);
  const retries = ["request_max_retries", "stream_max_retries"].map(
    (name) => `model_providers.reeve.${name}=0`,
  );
  return [...texts, ...retries].flatMap((setting) => ["-c", setting]);
}

/**
 * Returns the settings that configure OpenCode for the gateway. OpenCode takes the addresses of its providers from
 * its configuration.
 */
function openCodeSettings(url: string, apiKey: string): Readonly<Record<string, string>> {
  const options = { baseURL: `${url}/v1`, apiKey };
  const provider = {
    anthropic: { options },
    openai: { options },
    google: { options: { apiKey, baseURL: `${url}/v1beta` } },
  };
  return { OPENCODE_CONFIG_CONTENT: JSON.stringify({ provider }) };
}
