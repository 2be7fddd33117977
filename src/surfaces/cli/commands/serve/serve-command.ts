import { randomBytes } from "node:crypto";
import { Fault, type Records } from "../../../../kernel/index.ts";
import { openRuntime } from "../../../../assembly/open-runtime.ts";
import type { Workspace } from "../../../../workspace/workspace.ts";
import {
  createChannels,
  createServer,
  listen,
  storedTokens,
  type Channels,
  type Listening,
  type ServedAgent,
  type Server,
  type Tokens,
} from "../../../server/index.ts";
import { configuredChannels, configuredNotifications } from "../../../channels/configured-channels.ts";
import { isLoopback } from "../../../http/access/gate.ts";
import { hostsOf } from "../../../server/listen.ts";
import { restoreFilesRoute } from "../../../server/routes/restore-files.ts";
import type { ExitKind } from "../../terminal/exit-code.ts";
import { interrupted } from "../../terminal/interrupted.ts";
import { portOption } from "../../terminal/number-option.ts";
import { LostStore } from "../../setup/lost-store.ts";
import { OpenParts } from "../../setup/open-parts.ts";
import { openOwnStore } from "../../setup/own-store.ts";
import { hostableAgents, hostRuns } from "../../setup/hosted-agents.ts";
import { servedAgent } from "../../setup/served-agent.ts";
import { extensionReports, extensionSurface, LiveWorkspaces } from "../../setup/live-workspaces.ts";
import { builtPage } from "../../setup/page-folder.ts";
import { openAskedWorkspace, reportNotices, runtimeOptions } from "../../setup/run-workspace.ts";
import { settingsOf, type SettingsOptions } from "../../setup/settings-options.ts";
import { printable, type Terminal } from "../../terminal/terminal.ts";
import { GatewayDesk } from "../../../../capabilities/gateway/gateway-desk.ts";
import { GatewayTokens } from "../../../../capabilities/gateway/gateway-tokens.ts";
import { openServedGateway, type ServedGateway } from "../gateway/served-gateway.ts";
import { servingEngineOf, type EngineAddressOptions } from "../worker/worker-engine.ts";
import { askTrust } from "../../setup/ask-trust.ts";
import { idleEngine } from "../../setup/idle-engine.ts";
import { telemetryOf, watchedStore } from "../../setup/telemetry/exported-telemetry.ts";

const place = { namespace: "server", key: "mcp-state-key" } as const;

/**
 * Returns the key with which the server signs the state that MCP hosts carry while they ask a person. The key is
 * stored, so that an answer is accepted after a restart, and by every process that uses the store.
 */
export async function storedStateKey(records: Records): Promise<string> {
  const stored = await records.get(place);
  if (stored !== undefined) return stored.value as string;
  await records.put({ ...place, value: randomBytes(32).toString("hex") }, "absent");
  // If another process was faster, its key counts.
  return storedStateKey(records);
}

/** The options of `reeve serve`, as texts from the command line. */
export interface ServeOptions extends SettingsOptions, EngineAddressOptions {
  readonly store: string;
  readonly port: string;
  readonly host: string;
  readonly allowHost?: readonly string[];
  /** `false` with `--no-token`. */
  readonly token: boolean;
  /** `false` with `--no-worker`. */
  readonly worker: boolean;
  readonly gatewayPort?: string;
}

/** Serves the runs and sessions of a store until it is interrupted. */
export async function serveCommand(options: ServeOptions, terminal: Terminal): Promise<ExitKind> {
  const { host, token: needsToken, worker: isWorker } = options;
  const port = portOption(options.port);
  if (!needsToken && !isLoopback(host)) throw openToAll(host);
  const engine = await servingEngineOf(options);
  const flags = settingsOf(options);
  const telemetry = await telemetryOf(terminal);
  const open = new OpenParts();
  const lost = new LostStore();
  const warn = (text: string): void => terminal.say(`reeve: ${printable(text)}`);
  try {
    const live = new LiveWorkspaces(open, terminal);
    const workspace = live.add(await openAskedWorkspace(flags, terminal));
    await askTrust(workspace, terminal);
    let agents: readonly ServedAgent[] = [];
    const readAgents = async (): Promise<void> => {
      const hosted = await hostableAgents(workspace, flags, terminal, { isWorker });
      agents = hosted.map((each) => servedAgent(workspace, each, flags, () => live.reload()));
    };
    await readAgents();
    // The tokens of a store that others created would admit them from other machines.
    const allowForeign = !isWorker && isLoopback(host);
    const opened = open.add(await openOwnStore(options.store, { allowForeign, onWarning: warn }));
    const store = watchedStore(opened, open, telemetry, extensionReports(terminal));
    const tokens = storedTokens(store.records);
    await requireTokens(tokens, host);
    const report = workspace.config.runtime?.onError ?? ((fault: Fault): void => warn(fault.message));
    const runtime = open.add(
      await openRuntime({
        ...runtimeOptions(workspace),
        store,
        surface: extensionSurface(terminal, () => live.reload()),
        keepAlive: true,
        // Each run of a session makes the agent of the session again, with the files as they are then.
        sameName: "replace",
        onError: (fault) => {
          report(fault);
          lost.note(fault);
        },
        ...(!isWorker && { engine: engine ?? idleEngine }),
      }),
    );
    const onOpen = (other: Workspace): void => void live.add(other);
    const onLeave = (runId: string, reason: string): void =>
      warn(`${runId} is left alone: ${reason}; execute it with reeve run --resume ${runId}`);
    const registerNew = isWorker ? hostRuns(runtime, workspace, { flags, onOpen, onLeave }) : undefined;
    live.whenReloaded(async () => {
      await readAgents();
      registerNew?.();
    });
    // The ledger of a gateway run is in the process that executes it.
    const gateway = isWorker
      ? await openServedGateway({
          config: workspace.config.gateway,
          env: terminal.env,
          store,
          runtime,
          serverPort: port,
          port: options.gatewayPort,
          onWarning: warn,
        })
      : undefined;
    if (gateway !== undefined) open.add(gateway);
    const page = builtPage();
    const channels = open.add(
      createChannels(runtime, {
        store,
        agents: () => agents,
        channels: configuredChannels(workspace, terminal.env),
        notifications: configuredNotifications(workspace, terminal.env),
        log: (line) => terminal.say(`reeve: ${printable(line)}`),
      }),
    );
    const server = createServer(runtime, {
      agents: () => agents,
      routes: [...channels.routes, restoreFilesRoute({ folders: [workspace.places.project] })],
      gateway: gateway?.desk ?? new GatewayDesk(new GatewayTokens(store.records)),
      mcp: { stateKey: await storedStateKey(store.records) },
      tokens: needsToken ? tokens : null,
      hosts: [...hostsOf(host), ...(options.allowHost ?? [])],
      ...(page !== undefined && { page }),
      cookie: port === 0 ? "reeve" : `reeve-${port}`,
      onError: (error) => terminal.say(`reeve: ${error.message}`),
    });
    const listening = open.add(await listen(server, { port, host }));
    // The handlers are set before the address is printed, because a caller that reads it may stop the process at once.
    const stopping = interrupted(terminal);
    channels.start();
    reportNotices(workspace, terminal);
    await announce(terminal, {
      options,
      server,
      listening,
      isHosting: agents.some(({ hidden }) => hidden !== true),
      channels,
      gateway,
    });
    await lost.before(stopping);
    terminal.say("reeve: finishing calls in flight; press Ctrl-C again to end this process at once");
    await channels.close();
    return "ok";
  } finally {
    await open.close();
  }
}

interface Started {
  readonly channels: Channels;
  readonly options: ServeOptions;
  readonly server: Server;
  readonly listening: Listening;
  /** Whether an agent is hosted. */
  readonly isHosting: boolean;
  readonly gateway: ServedGateway | undefined;
}

/**
 * Prints the address of the server to stdout. If the person at this machine can use a one-time link to the page,
 * prints this link.
 */
async function announce(
  terminal: Terminal,
  { options, server, listening, isHosting, channels, gateway }: Started,
): Promise<void> {
  const link = isLoopback(options.host) ? server.pageLink() : undefined;
  await terminal.out(`${listening.url}${link ?? "/"}`);
  if (link !== undefined)
    terminal.say(
      "The link works once and opens the page in this browser. Programs use: reeve token create --tenant NAME",
    );
  if (builtPage() === undefined)
    terminal.say("The page is not built; run npm run build:page in the checkout.");
  if (!isHosting)
    terminal.say(`No agent is ${options.worker ? "hosted" : "offered"}, so callers can start no run.`);
  if (gateway !== undefined)
    terminal.say(`Gateway: ${gateway.url}. Let a program in: reeve gateway token --max-budget-usd 5`);
  if (channels.names.length > 0)
    terminal.say(`Channels: ${channels.names.join(", ")}. Admit senders with: reeve pair`);
  if (!options.token) terminal.say("Every program of this machine may use the server (--no-token).");
  if (!options.worker) terminal.say("Runs are not executed here (--no-worker); they wait for a worker.");
}

/** Throws if other machines can reach the address and callers need no token. */
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
