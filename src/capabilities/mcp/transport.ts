import {
  Client,
  type ClientOptions,
  type ConnectOptions,
  type Implementation,
  ProtocolError,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
  StreamableHTTPClientTransport,
  type Transport,
  UnauthorizedError,
} from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { Fault } from "../../kernel/index.ts";
import { addressSuffix } from "./http-problem.ts";
import { boundedFetch, defaultMessageBytes, limitMessages } from "./message-limit.ts";
import type { StderrTail } from "./stderr-tail.ts";
import {
  isStdio,
  type HttpServerConfig,
  type ServerConfig,
  type StdioServerConfig,
} from "./server-config.ts";

// This is the only module that imports values of the MCP package, which is optional: `Connection` loads it on first use.

/** Creates a client of the MCP package. */
export function newClient(info: Implementation, options: ClientOptions): Client {
  return new Client(info, options);
}

/** Starts the server's program or connects to its address, and completes the handshake. */
export async function connect(
  server: string,
  config: ServerConfig,
  {
    client,
    words,
    options,
  }: { readonly client: Client; readonly words: StderrTail; readonly options: ConnectOptions },
): Promise<Transport> {
  if (isStdio(config)) {
    const transport = stdio(config, words);
    await client.connect(transport, options);
    limitMessages(transport);
    return transport;
  }
  const transport = http(config);
  try {
    await client.connect(transport, options);
    return transport;
  } catch (error) {
    if (!isUnauthorized(error)) throw error;
    await signIn(server, config, transport, error);
    const next = http(config);
    await client.connect(next, options);
    return next;
  }
}

/**
 * Completes a sign-in: waits for the callback after the person was sent to the server's sign-in page, and finishes the
 * authentication.
 */
export async function signIn(
  server: string,
  config: ServerConfig,
  transport: Transport | undefined,
  cause: UnauthorizedError,
): Promise<void> {
  const callback = isStdio(config) ? undefined : config.auth?.callback;
  if (callback === undefined || !(transport instanceof StreamableHTTPClientTransport)) {
    throw new Fault(
      "permission_denied",
      `MCP server ${server}${addressSuffix(config)} requires a sign-in: set an Authorization header, or set auth with a provider and a callback`,
      { cause },
    );
  }
  await transport.finishAuth(await callback());
}

/** Whether the server requires a sign-in. */
export function isUnauthorized(error: unknown): error is UnauthorizedError {
  return error instanceof UnauthorizedError;
}

/** Whether the server no longer knows the session. */
export function isForgotten(error: unknown): boolean {
  return error instanceof SdkHttpError && error.status === 404;
}

/** Whether the server refused the request with an error of the protocol. */
export function isRefused(error: unknown): boolean {
  return error instanceof ProtocolError;
}

const lostCodes: ReadonlySet<unknown> = new Set([
  SdkErrorCode.ConnectionClosed,
  SdkErrorCode.NotConnected,
  SdkErrorCode.SendFailed,
]);

/** Whether the connection to the server was lost. */
export function isLost(error: unknown): boolean {
  if (error instanceof SdkError) return lostCodes.has(error.code);
  // `fetch` throws a TypeError if the server cannot be reached.
  return error instanceof TypeError;
}

function stdio(
  { command, args = [], env = {}, cwd, maxMessageBytes = defaultMessageBytes }: StdioServerConfig,
  words: StderrTail,
): StdioClientTransport {
  const transport = new StdioClientTransport({
    command,
    args: [...args],
    env: { ...env },
    stderr: "pipe",
    maxBufferSize: maxMessageBytes,
    ...(cwd !== undefined && { cwd }),
  });
  transport.stderr?.on("data", (chunk: Buffer) => words.add(chunk.toString("utf8")));
  return transport;
}

function http(config: HttpServerConfig): StreamableHTTPClientTransport {
  const { url, headers = {}, auth, maxMessageBytes = defaultMessageBytes } = config;
  return new StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers: { ...headers } },
    ...(auth && {
      authProvider: auth.provider,
      skipIssuerMetadataValidation: auth.skipIssuerCheck ?? false,
    }),
    fetch: boundedFetch(config.fetch ?? fetch, maxMessageBytes),
  });
}
