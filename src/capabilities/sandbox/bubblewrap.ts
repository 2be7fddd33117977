import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { codeOf } from "../files/file-root.ts";
import type { SandboxPolicy } from "./sandbox-policy.ts";

export interface BubbleOptions {
  readonly workspace: string;
  /** Where the command starts; in the workspace. */
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly policy: SandboxPolicy;
}

/** What programs need of a system, where it is there. Home folders are not among it. */
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
 * The arguments of bubblewrap: the system read-only, an empty `/tmp`, no home, the workspace writable, processes of its own that end with
 * it, and no network unless allowed. The environment is the one given and nothing else.
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

/** Why bubblewrap cannot be used here; `undefined` when it can. A program that is there may still be forbidden to do its work. */
export async function bubbleProblem(program: string): Promise<string | undefined> {
  if (process.platform !== "linux") return `bubblewrap works on Linux only, and this is ${process.platform}`;
  const probe = bubbleArguments({ workspace: "/usr", cwd: "/", env: {}, policy: { mode: "enforce" } });
  try {
    await promisify(execFile)(program, [...probe, "true"], {
      timeout: 10_000,
      env: { PATH: process.env["PATH"] ?? "" },
    });
    return undefined;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return `there is no ${program} here: ${howToInstall}`;
    const { stderr = "" } = error as { readonly stderr?: string };
    const said = stderr.trim() || (error as Error).message;
    return `${program} is there but does not work: ${said}. Allow unprivileged user namespaces, or set the sandbox to warn or off`;
  }
}
