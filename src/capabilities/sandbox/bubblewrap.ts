import { execFile } from "node:child_process";
import { accessSync, constants, realpathSync } from "node:fs";
import { delimiter, isAbsolute, join, resolve } from "node:path";
import { promisify } from "node:util";
import { isInside } from "../files/control-references.ts";
import { codeOf } from "../files/error-code.ts";
import type { SandboxLimits } from "./sandbox-policy.ts";
import { generatedSettings, readableSettings, sandboxUser, systemFolders } from "./system-files.ts";

/** A path of this machine that the sandbox shows at the same path. */
export interface Mount {
  readonly path: string;
  readonly access: "read" | "write";
  /** Open descriptor of the path. Bubblewrap fails if the path has been replaced since it was opened. */
  readonly fd: number;
}

/** Options of `bubbleCommand()`. */
export interface BubbleOptions {
  /** Absolute path of the program. */
  readonly program: string;
  /** Command to run. */
  readonly command: readonly string[];
  /** Folder in which the command starts. */
  readonly cwd: string;
  /** The environment variables of the command. It gets no others. */
  readonly env: Readonly<Record<string, string>>;
  /** Whether the command may reach the network. */
  readonly network: boolean;
  /** Folders that the command may read, in addition to system folders. */
  readonly readable: readonly string[];
  /** Folders and control files, in the order in which they are mounted. */
  readonly mounts: readonly Mount[];
  /** Folders inside those of `mounts` that the command may only read. */
  readonly readableInside: readonly string[];
  /** Folders that belong only to the command, so that it may write everything in them. */
  readonly own: readonly string[];
  readonly limits: Required<SandboxLimits>;
  /** Receives what bubblewrap reports about the sandbox that it has created. */
  readonly onInfo: (text: string) => void;
}

/**
 * A descriptor of a started program. A text is sent through a pipe, a number is an open descriptor that the program
 * inherits, and a function receives what the program writes.
 */
export type Descriptor = string | number | ((text: string) => void);

/** How to start bubblewrap. */
export interface BubbleCommand {
  readonly program: string;
  readonly args: readonly string[];
  /** Descriptors from 3 on. */
  readonly descriptors: readonly Descriptor[];
}

/**
 * Returns how to start a command in bubblewrap.
 *
 * - The command has its own user, process, network, host name and IPC namespaces, no capabilities, an unprivileged
 *   user, and cannot create user namespaces. Its processes end with it.
 * - It sees system folders and a short list of `/etc` read-only, a new `/proc`, a few devices, an empty `/tmp`, and
 *   the mounts.
 * - The options are sent through a pipe, so that neither the environment nor the arguments of the bubblewrap
 *   process contain the command's variables.
 */
export function bubbleCommand(options: BubbleOptions): BubbleCommand {
  const { program, command, cwd, env, network, readable, mounts, readableInside, own, limits, onInfo } =
    options;
  const descriptors: Descriptor[] = [];
  /** Adds a descriptor and returns its number in the bubblewrap process. The options already use the number 3. */
  const descriptor = (value: Descriptor): string => String(descriptors.push(value) + 3);
  const size = ["--size", String(limits.tmpBytes)];
  const args = [
    ["--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try"],
    network ? [] : ["--unshare-net"],
    ["--disable-userns", "--cap-drop", "ALL"],
    ["--uid", String(sandboxUser.id), "--gid", String(sandboxUser.id), "--hostname", "sandbox"],
    ["--die-with-parent", "--new-session", "--info-fd", descriptor(onInfo)],
    [...systemFolders, ...readableSettings(network)].flatMap((path) => ["--ro-bind-try", path, path]),
    Object.entries(generatedSettings(network)).flatMap(([path, text]) => ["--file", descriptor(text), path]),
    ["--dev", "/dev", ...size, "--tmpfs", "/dev/shm", "--remount-ro", "/dev"],
    ["--proc", "/proc", ...size, "--tmpfs", "/tmp", "--dir", sandboxUser.home],
    readable.flatMap((path) => ["--ro-bind", path, path]),
    mounts.flatMap(({ path, access, fd }) => [
      access === "read" ? "--ro-bind-fd" : "--bind-fd",
      descriptor(fd),
      path,
    ]),
    readableInside.flatMap((path) => ["--ro-bind", path, path]),
    own.flatMap((path) => ["--bind", path, path]),
    // Last, because mount points are created in the folders above.
    ["--remount-ro", "/proc", "--remount-ro", "/", "--clearenv"],
    Object.entries(env).flatMap(([name, value]) => ["--setenv", name, value]),
    ["--chdir", cwd],
  ].flat();
  return {
    program,
    args: ["--args", "3", "--", ...command],
    descriptors: [args.map((each) => `${each}\0`).join(""), ...descriptors],
  };
}

const howToInstall =
  'install bubblewrap (Debian, Ubuntu: apt install bubblewrap; Fedora: dnf install bubblewrap; Arch: pacman -S bubblewrap), or set the sandbox to "off" to run commands without one';

/** Options that the sandbox needs, each with the version of bubblewrap that introduced it. */
const neededOptions = {
  "--disable-userns": "0.8.0",
  "--bind-fd": "0.10.0, or the security update of an older version,",
} as const;

/** Result of `findBubble()`. */
export type FoundBubble = { readonly program: string } | { readonly problem: string };

/**
 * Finds bubblewrap and runs it once, because an installed program may be too old or lack permissions. Folders that
 * commands may write are not searched, because a command could have placed a program there.
 */
export async function findBubble(name: string, writable: readonly string[]): Promise<FoundBubble> {
  if (process.platform !== "linux")
    return {
      problem: `bubblewrap works only on Linux, and this is ${process.platform}; run Reeve in a Linux container or virtual machine, or set the sandbox to "off"`,
    };
  const program = programPath(name, writable);
  if (program === undefined) return { problem: `the program ${name} is not installed: ${howToInstall}` };
  try {
    const { stdout } = await run(program, ["--help"]);
    for (const [option, version] of Object.entries(neededOptions))
      if (!stdout.includes(option))
        return {
          problem: `${program} is too old: it lacks ${option}, which version ${version} has; ${howToInstall}`,
        };
    await run(program, probe);
    return { program };
  } catch (error) {
    const { stderr = "" } = error as { readonly stderr?: string };
    const reason = stderr.trim() || (error as Error).message;
    return {
      problem: `${program} is installed but does not work: ${reason}. Allow user namespaces (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0; in a container, a seccomp profile that permits them), or set the sandbox to "off" to run commands without one`,
    };
  }
}

/** Arguments for a minimal test of every kind of namespace and mount that commands need. */
const probe = [
  ["--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"],
  ["--disable-userns", "--cap-drop", "ALL", "--uid", "1000", "--gid", "1000", "--die-with-parent"],
  systemFolders.flatMap((path) => ["--ro-bind-try", path, path]),
  ["--dev", "/dev", "--proc", "/proc", "--remount-ro", "/proc", "--", "/bin/sh", "-c", ":"],
].flat();

function run(program: string, args: readonly string[]): Promise<{ readonly stdout: string }> {
  return promisify(execFile)(program, [...args], { timeout: 10_000, env: {} });
}

/** Returns the real path of a program, or `undefined` if it is not found outside the writable folders. */
function programPath(name: string, writable: readonly string[]): string | undefined {
  const folders = (process.env["PATH"] ?? "").split(delimiter).filter(isAbsolute);
  const candidates = name.includes("/") ? [resolve(name)] : folders.map((folder) => join(folder, name));
  for (const candidate of candidates) {
    try {
      accessSync(candidate, constants.X_OK);
    } catch (error) {
      if (codeOf(error) === undefined) throw error;
      continue;
    }
    const real = realpathSync(candidate);
    if (![candidate, real].some((path) => writable.some((folder) => isInside(path, folder)))) return real;
  }
  return undefined;
}
