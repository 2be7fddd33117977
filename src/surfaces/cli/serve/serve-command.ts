import { resolve } from "node:path";
import { openRuntime } from "../../../open-runtime.ts";
import { Fault, formatSessionId, parseSessionId } from "../../../kernel/index.ts";
import {
  createServer,
  hostsOf,
  isLoopback,
  listen,
  storedTokens,
  type Listening,
  type ServedAgent,
  type Server,
  type Tokens,
} from "../../server/index.ts";
import type { ExitKind } from "../exit-code.ts";
import { openOwnStore } from "../own-store.ts";
import { agentName, inFolder, runAgent, runResolver } from "../run/run-agent.ts";
import { checkSandbox } from "../run/run-sandbox.ts";
import { settingsOf, type SettingsOptions } from "../run/settings-options.ts";
import { toMetadata, type RunSettings } from "../run/run-settings.ts";
import type { Terminal } from "../terminal.ts";
import { idleEngine } from "./idle-engine.ts";

/** The options as the command line passes them: texts. */
export interface ServeOptions extends SettingsOptions {
  readonly store: string;
  readonly port: string;
  readonly host: string;
  readonly allowHost?: readonly string[];
  /** `false` with `--no-token`. */
  readonly token: boolean;
  /** `false` with `--no-worker`. */
  readonly worker: boolean;
}

/** Serves the runs and sessions of a store until it is interrupted. */
export async function serveCommand(options: ServeOptions, terminal: Terminal): Promise<ExitKind> {
  const { host, token: needsToken, worker: isWorker, root = "." } = options;
  const port = portOf(options.port);
  if (!needsToken && !isLoopback(host)) throw openToAll(host);
  const settings = agentSettings(options, terminal);
  if (settings !== undefined && isWorker) await checkSandbox(settings, terminal);
  const store = await openOwnStore(options.store);
  try {
    const tokens = storedTokens(store.records);
    await requireTokens(tokens, host);
    const runtime = await openRuntime({ store, keepAlive: true, ...(!isWorker && { engine: idleEngine }) });
    try {
      if (isWorker) runtime.register(runResolver({ accepts: inFolder(resolve(root)) }));
      const server = createServer(runtime, {
        agents: settings === undefined ? [] : [defaultAgent(settings)],
        tokens: needsToken ? tokens : null,
        hosts: [...hostsOf(host), ...(options.allowHost ?? [])],
        cookie: port === 0 ? "reeve" : `reeve-${port}`,
        onError: (error) => terminal.say(`reeve: ${error.message}`),
      });
      const listening = await listen(server, { port, host });
      await announce(terminal, { options, server, listening, settings });
      await interrupted(terminal);
      terminal.say("reeve: finishing calls in flight; press Ctrl-C again to end this process at once");
      await listening.close();
    } finally {
      await runtime.close();
    }
  } finally {
    await store.close();
  }
  return "ok";
}

/** The agent of `reeve run`, for callers of the server. Each session has its own instance. */
function defaultAgent(settings: RunSettings): ServedAgent {
  const { model, tools, root } = settings;
  return {
    name: agentName,
    description: `The agent of reeve run, with the tools "${tools}" in ${root}.`,
    model,
    start: ({ runId, sessionId }) => {
      const session = sessionId === undefined ? formatSessionId(runId) : parseSessionId(sessionId);
      return { agent: runAgent(settings, session), metadata: toMetadata(settings), sessionId: session };
    },
  };
}

/** The settings of the default agent. `undefined` without a model: the server then hosts no agent. */
function agentSettings(options: ServeOptions, terminal: Terminal): RunSettings | undefined {
  const model = options.model ?? terminal.env["REEVE_MODEL"] ?? "";
  return model === "" ? undefined : settingsOf(options, terminal);
}

interface Started {
  readonly options: ServeOptions;
  readonly server: Server;
  readonly listening: Listening;
  readonly settings: RunSettings | undefined;
}

/** Prints the address to stdout: the page's one-time link, if the person at this machine can use one. */
async function announce(
  terminal: Terminal,
  { options, server, listening, settings }: Started,
): Promise<void> {
  const link = isLoopback(options.host) ? server.pageLink() : undefined;
  await terminal.out(`${listening.url}${link ?? "/"}`);
  if (link !== undefined)
    terminal.say("The link works once and opens the page in this browser. Programs use: reeve token create");
  if (settings === undefined)
    terminal.say("No agent is hosted; --model provider/id hosts the agent of reeve run.");
  if (!options.token) terminal.say("Every program of this machine may use the server (--no-token).");
  if (!options.worker) terminal.say("Runs are not driven here (--no-worker); they wait for a worker.");
}

/** Resolves with the first interrupt or SIGTERM. The second one ends the process. */
function interrupted(terminal: Terminal): Promise<void> {
  return new Promise((stop) => {
    let isStopping = false;
    const onSignal = (): void => {
      if (isStopping) process.kill(process.pid, "SIGKILL");
      isStopping = true;
      stop();
    };
    terminal.onInterrupt(onSignal);
    process.on("SIGTERM", onSignal);
  });
}

function portOf(text: string): number {
  const port = /^\d{1,5}$/u.test(text) ? Number(text) : Number.NaN;
  if (port <= 65_535) return port;
  throw new Fault("invalid_argument", `invalid --port ${text}: expected an integer from 0 to 65535`);
}

/** An address that other machines reach must not serve callers without a token. */
async function requireTokens(tokens: Tokens, host: string): Promise<void> {
  if (isLoopback(host) || (await tokens.list()).length > 0) return;
  throw new Fault(
    "invalid_argument",
    `--host ${host} is reachable from other machines, and the store has no token; create one first with reeve token create`,
  );
}

function openToAll(host: string): Fault {
  return new Fault(
    "invalid_argument",
    `--no-token cannot be combined with --host ${host}, because other machines would reach the server; use 127.0.0.1, or tokens`,
  );
}
