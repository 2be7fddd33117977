import { accessSync, constants, realpathSync, statSync } from "node:fs";
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { delimiter, dirname, isAbsolute, join, resolve } from "node:path";
import { Fault, type TaskFolder } from "../../kernel/index.ts";
import { isInside } from "../files/control-references.ts";
import { codeOf } from "../files/error-code.ts";
import type { Gateway } from "../gateway/gateway.ts";
import { gatewayVariables } from "../gateway/program-variables.ts";
import { commandEnvironment, commandShell } from "../sandbox/command-environment.ts";
import type { SandboxReport } from "../sandbox/sandbox-policy.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import { systemFolders } from "../sandbox/system-files.ts";
import type { ProcessStart } from "./agent-process.ts";
import type { Preset } from "./presets.ts";
import { privateHome, writeHomeFiles } from "./private-home.ts";
import { taskVariable } from "./orphans.ts";

/** How a hired agent is started. */
export interface LaunchSettings {
  readonly name: string;
  readonly command: readonly [string, ...string[]];
  readonly preset?: Preset;
  /** The model that the agent of the preset uses. */
  readonly model?: string;
  readonly env: Readonly<Record<string, string>>;
  readonly inheritEnv: readonly string[];
  readonly home: "private" | "user";
  readonly sandbox: Sandbox;
}

/** The task for which a hired agent is started. */
export interface LaunchedTask {
  /** Real path of the folder in which the agent works. */
  readonly folder: string;
  /** The own folder of the task. `null` if it has none. */
  readonly own: TaskFolder | null;
  /** The name of its private home. */
  readonly homeName: string;
  /** Mark of the attempt: a value by which its processes are found. */
  readonly mark: string;
  readonly gateway: Gateway;
  /** The access of the agent to the gateway. */
  readonly access: { readonly url: string; readonly token: string };
}

/** A process that can be started. */
export interface AgentLaunch {
  readonly start: Omit<ProcessStart, "clock" | "secrets">;
  /** Releases the resources of the launch after the process has ended. Returns what the sandbox has noticed. */
  readonly end: () => Promise<SandboxReport>;
}

/** Returns how to start the process of a task. Throws `agent_not_found` if its program does not exist. */
export async function launchOf(settings: LaunchSettings, task: LaunchedTask): Promise<AgentLaunch> {
  const { name, command, preset, model, env, inheritEnv, home, sandbox } = settings;
  const { folder, own, homeName, mark, gateway, access } = task;
  const [given, ...args] = command;
  const program = agentProgram(name, given, preset);
  const homeFolder = home === "private" ? await privateHome(homeName) : undefined;
  const { mode, network = false } = sandbox.policy;
  const isConfined = mode === "enforce" || (mode === "warn" && (await sandbox.problem(folder)) === undefined);
  const values = { model, access, home: homeFolder, isConfined };
  if (homeFolder !== undefined && preset?.homeFiles !== undefined)
    await writeHomeFiles(homeFolder, preset.homeFiles(values));
  const setEnv = {
    ...(homeFolder !== undefined && { HOME: homeFolder }),
    ...own?.env,
    ...gatewayVariables(access),
    ...preset?.variables(values),
    ...env,
    [taskVariable]: mark,
  };
  const shown = commandEnvironment(inheritEnv);
  if (!isConfined) {
    const report: SandboxReport = { mode, applied: "none", network: true };
    return {
      start: { program, args, cwd: folder, env: { ...shown, ...setEnv } },
      end: async () => report,
    };
  }
  const door = network ? undefined : await openDoor(gateway);
  const line = door === undefined ? [program, ...args] : forwarded(door.path, access.url, [program, ...args]);
  try {
    const launch = await sandbox.launch({
      workspace: folder,
      mounts: [
        ...(own?.mounts ?? []),
        ...programFolders([program, process.execPath]).map((path) => ({ path, access: "read" }) as const),
        ...(door === undefined ? [] : [{ path: door.folder, access: "read" } as const]),
      ],
      own: homeFolder === undefined ? [] : [homeFolder],
      cwd: folder,
      shell: commandShell(),
      command: `exec ${line.map(quoted).join(" ")}`,
      env: shown,
      setEnv,
    });
    const { program: wrapper, args: wrapped, cwd = folder, descriptors, watch } = launch;
    return {
      start: {
        program: wrapper,
        args: wrapped,
        cwd,
        env: launch.env,
        descriptors,
        ...(watch && { watch }),
      },
      end: async () => {
        await door?.close();
        return launch.end();
      },
    };
  } catch (error) {
    await door?.close();
    throw error;
  }
}

/** The connection from a sandbox without a network to the gateway. */
interface GatewayDoor {
  readonly folder: string;
  readonly path: string;
  readonly close: () => Promise<void>;
}

async function openDoor(gateway: Gateway): Promise<GatewayDoor> {
  // The path of a socket may have about a hundred characters.
  const folder = await realpath(await mkdtemp(join(tmpdir(), "reeve-door-")));
  const path = join(folder, "gateway");
  const close = await gateway.listenAt(path);
  return {
    folder,
    path,
    close: async () => {
      await close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/**
 * Returns the command that forwards the address of the gateway inside the sandbox to a socket, and then runs the
 * command of the agent. The agent thus reaches the gateway at the same address as outside.
 */
function forwarded(path: string, url: string, command: readonly string[]): readonly string[] {
  return [process.execPath, "-e", forwarder, path, new URL(url).port, ...command];
}

const forwarder = `
const net = require("node:net");
const [path, port, program, ...args] = process.argv.slice(1);
const server = net.createServer((client) => {
  const gateway = net.connect(path);
  const end = () => (client.destroy(), gateway.destroy());
  for (const socket of [client, gateway]) socket.on("error", end).on("close", end);
  client.pipe(gateway).pipe(client);
});
server.listen(Number(port), "127.0.0.1", () => {
  const agent = require("node:child_process").spawn(program, args, { stdio: "inherit" });
  agent.on("error", (error) => (console.error(error.message), process.exit(127)));
  agent.on("exit", (code, signal) => process.exit(signal === null ? code : 128));
});`;

/** Returns what programs need to start: the folders of their links and files, and the packages next to them. */
function programFolders(programs: readonly string[]): readonly string[] {
  const places = programs.flatMap((program) => {
    const real = realpathSync(program);
    const modules = real.indexOf("/node_modules/");
    // A program of a package loads other packages of the same folder.
    const installed = modules === -1 ? dirname(real) : real.slice(0, modules + "/node_modules".length);
    return [shownFor(program, realpathSync(dirname(program))), shownFor(real, installed)];
  });
  return [...new Set(places)].filter((place) => !isSystem(place));
}

/**
 * Returns the path at which the sandbox shows a program. For a program in or above the home folder of the user, the
 * other files there stay hidden.
 */
function shownFor(program: string, folder: string): string {
  return isInside(homedir(), folder) ? program : folder;
}

function isSystem(place: string): boolean {
  return systemFolders.some((each) => isInside(place, each));
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** Returns the path of the program of a command. Throws `agent_not_found`. */
function agentProgram(agent: string, program: string, preset: Preset | undefined): string {
  const found = programIn(process.env["PATH"], program);
  if (found !== undefined) return found;
  const where = program.includes("/") ? "does not exist, or is no program" : "is not in the PATH of Reeve";
  throw new Fault(
    "agent_not_found",
    `the program ${program} of agent ${agent} ${where}; ${preset === undefined ? "install it, or correct its command" : `npm install -g ${preset.package}`}`,
  );
}

/** Returns the path of a program in the folders of a `PATH`. A program with a slash is already a path. */
export function programIn(path: string | undefined, program: string): string | undefined {
  const folders = (path ?? "").split(delimiter).filter(isAbsolute);
  const candidates = program.includes("/")
    ? [resolve(program)]
    : folders.map((folder) => join(folder, program));
  return candidates.find(isProgram);
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch (error) {
    if (codeOf(error) === undefined) throw error;
    return false;
  }
}
