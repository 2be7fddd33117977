import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { codeOf } from "../files/file-root.ts";
import type { SandboxPolicy } from "./sandbox-policy.ts";

/** Options of `bubbleArguments()`. */
export interface BubbleOptions {
  /** Folder that the command may write. */
  readonly workspace: string;
  /** Folder in which the command starts. It must be inside the workspace. */
  readonly cwd: string;
  /** The only environment variables that the command sees. */
  readonly env: Readonly<Record<string, string>>;
  /** What the command may read, write and reach. */
  readonly policy: SandboxPolicy;
}

/** System folders that programs need, if they exist. Home folders are not included. */
const system = [
  "/usr",
  "/bin",
  "/sbin",
  "/lib",
  "/lib32",
  "/lib64",
  "/etc",
  "/opt",
  "/nix",
  "/run/current-system",
];

/**
 * Returns the arguments of bubblewrap: system folders read-only, an empty `/tmp`, no home folder, a writable workspace,
 * its own process namespace that ends with the command, and no network unless the policy allows it. The command sees
 * only the variables in `env`.
 */
export function bubbleArguments({ workspace, cwd, env, policy }: BubbleOptions): readonly string[] {
  const { network = false, readable = [], writable = [] } = policy;
  return [
    "--unshare-all",
    ...(network ? ["--share-net"] : []),
    "--die-with-parent",
    "--new-session",
    ...system.flatMap((path) => ["--ro-bind-try", path, path]),
    "--dev",
    "/dev",
    "--proc",
    "/proc",
    "--tmpfs",
    "/tmp",
    ...readable.flatMap((path) => ["--ro-bind", path, path]),
    ...[workspace, ...writable].flatMap((path) => ["--bind", path, path]),
    "--clearenv",
    ...Object.entries(env).flatMap(([name, value]) => ["--setenv", name, value]),
    "--chdir",
    cwd,
    "--",
  ];
}

const howToInstall =
  "install bubblewrap (Debian, Ubuntu: apt install bubblewrap; Fedora: dnf install bubblewrap; Arch: pacman -S bubblewrap), or set the sandbox to warn or off";

/**
 * Returns why bubblewrap cannot be used here, or `undefined` if it can. Runs it once, because an installed program may
 * still lack permissions.
 */
export async function bubbleProblem(program: string): Promise<string | undefined> {
  if (process.platform !== "linux") return `bubblewrap works only on Linux, and this is ${process.platform}`;
  const probe = bubbleArguments({ workspace: "/usr", cwd: "/", env: {}, policy: { mode: "enforce" } });
  try {
    await promisify(execFile)(program, [...probe, "true"], {
      timeout: 10_000,
      env: { PATH: process.env["PATH"] ?? "" },
    });
    return undefined;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return `the program ${program} is not installed: ${howToInstall}`;
    const { stderr = "" } = error as { readonly stderr?: string };
    const reason = stderr.trim() || (error as Error).message;
    return `${program} is installed but does not work: ${reason}. Allow unprivileged user namespaces, or set the sandbox to warn or off`;
  }
}
