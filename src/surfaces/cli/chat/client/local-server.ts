import { openRuntime } from "../../../../assembly/open-runtime.ts";
import type { SessionId } from "../../../../kernel/index.ts";
import type { Workspace } from "../../../../workspace/workspace.ts";
import type { ServedAgent } from "../../../http/served-agents.ts";
import { createServer } from "../../../server/index.ts";
import { restoreFilesRoute } from "../../../server/routes/restore-files.ts";
import { askTrust } from "../../setup/ask-trust.ts";
import { hostableAgents, hostRuns } from "../../setup/hosted-agents.ts";
import { extensionSurface, LiveWorkspaces } from "../../setup/live-workspaces.ts";
import { OpenParts } from "../../setup/open-parts.ts";
import { openOwnStore } from "../../setup/own-store.ts";
import { openAskedWorkspace, reportNotices, runtimeOptions } from "../../setup/run-workspace.ts";
import { servedAgent } from "../../setup/served-agent.ts";
import { settingsOf, type SettingsOptions } from "../../setup/settings-options.ts";
import { telemetryOf, watchedStore } from "../../setup/telemetry/exported-telemetry.ts";
import { printable, type Terminal } from "../../terminal/terminal.ts";
import type { ServerPlace } from "../../../client/route-client.ts";
import { ownLimits, ownPlace, remotePlace } from "./server-place.ts";

/** Functions of a chat that work only on the machine whose files the agents use. */
interface LocalParts {
  readonly workspace: Workspace;
  /** Address of the store. */
  readonly store: string;
  /** The profile that the person has named. If absent, the profile of the environment is used. */
  readonly profile: string | undefined;
  /** Reads the files of the workspace again. */
  reload(): Promise<void>;
  /**
   * Sets the actions for `shutdown` and for a change of the session by an extension. Before this call, both do
   * nothing.
   */
  navigate(navigation: Navigation): void;
}

/** What extensions may do with the surface. */
interface Navigation {
  readonly leave: () => void;
  readonly show: (sessionId: string) => void;
}

/** The server of a chat: one in this process, or one at an address. */
export interface ChatServer {
  readonly place: ServerPlace;
  /** `undefined` for a server at an address. */
  readonly local: LocalParts | undefined;
  /** From now on, executes the runs of a session, if this process executes runs. */
  drive(sessionId: string): void;
  close(): Promise<void>;
}

export interface LocalServerOptions extends SettingsOptions {
  readonly store: string;
}

/**
 * Opens the workspace of this folder and its store, and serves them inside this process. It executes the runs of
 * the sessions that the chat shows, and no others: to continue unfinished runs of other programs would cost money
 * without the person noticing.
 */
export async function openLocalServer(options: LocalServerOptions, terminal: Terminal): Promise<ChatServer> {
  const { agent: _shown, ...hosting } = options;
  const flags = settingsOf(hosting);
  const telemetry = await telemetryOf(terminal);
  const open = new OpenParts();
  const warn = (text: string): void => terminal.say(`reeve: ${printable(text)}`);
  try {
    const live = new LiveWorkspaces(open, terminal, { onHangup: false });
    const workspace = live.add(await openAskedWorkspace(flags, terminal));
    await askTrust(workspace, terminal);
    let agents: readonly ServedAgent[] = [];
    let navigation: Navigation | undefined;
    const readAgents = async (): Promise<void> => {
      const hosted = await hostableAgents(workspace, flags, terminal, { isWorker: true });
      agents = hosted.map((each) => servedAgent(workspace, each, flags, () => live.reload()));
    };
    await readAgents();
    // What this process writes, it knows at once. Only orders of other processes wait, and an idle chat costs little.
    const opened = open.add(await openOwnStore(options.store, { onWarning: warn, watchEveryMs: 150 }));
    const store = watchedStore(opened, open, telemetry);
    const runtime = open.add(
      await openRuntime({
        ...runtimeOptions(workspace),
        store,
        surface: {
          ...extensionSurface(terminal, () => live.reload()),
          shutdown: () => navigation?.leave(),
          showSession: (sessionId) => navigation?.show(sessionId),
        },
        keepAlive: true,
        // A person, or a program, that leaves does not wait for a long answer. It is asked for again when the run continues.
        closeGraceMs: 1_000,
        // The chat starts its runs itself. It only has to notice what other processes have left.
        pollMs: 2_000,
        sameName: "replace",
        onError: ({ message }) => warn(message),
      }),
    );
    const driven = new Set<SessionId>();
    const register = hostRuns(runtime, workspace, {
      flags,
      onOpen: (other) => void live.add(other),
      onLeave: (runId, reason) => warn(`${runId} is left alone: ${reason}`),
      takes: ({ sessionId }) => driven.has(sessionId),
    });
    live.whenReloaded(async () => {
      await readAgents();
      register();
    });
    const server = createServer(runtime, {
      agents: () => agents,
      routes: [restoreFilesRoute({ folders: [workspace.places.project] })],
      mcp: false,
      tokens: null,
      limits: ownLimits,
      onError: ({ message }) => warn(message),
    });
    open.add({ close: () => server.drain() });
    reportNotices(workspace, terminal);
    return {
      place: ownPlace(server),
      local: {
        workspace,
        store: options.store,
        profile: options.profile,
        reload: () => live.reload(),
        navigate: (wanted) => void (navigation = wanted),
      },
      drive: (sessionId) => {
        if (driven.has(sessionId as SessionId)) return;
        driven.add(sessionId as SessionId);
        register(true);
      },
      close: () => open.close(),
    };
  } catch (error) {
    await open.close();
    throw error;
  }
}

/** Creates the connection to a server at an address. The workers of that server execute the runs. */
export function remoteServer(url: string, token: string | undefined): ChatServer {
  return {
    place: remotePlace(url, token),
    local: undefined,
    drive: () => undefined,
    close: async () => undefined,
  };
}
