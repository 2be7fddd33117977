import { codeOf } from "../files/error-code.ts";
import { readFileSync, readdirSync } from "node:fs";
import { Fault, is, optionTable, type OptionKinds } from "../../kernel/index.ts";
import type { SandboxLimits } from "./sandbox-policy.ts";

/** Linux's O_CLOEXEC, as /proc shows it. */
const closedOnExec = 0o2_000_000;

/**
 * Returns the start of a shell script that closes descriptors which this process inherited from the program that
 * started it. Through an open folder, a command would leave the sandbox. Node closes its own descriptors when it starts
 * a program, but not all inherited ones.
 *
 * Only bash can close descriptors above 9. With another shell, throws `unsupported` if there is one.
 */
function closingScript(shell: string): string {
  if (shell.endsWith("/bash"))
    return `for fd in /proc/self/fd/*; do fd=\${fd##*/}; [ "$fd" -gt 2 ] && eval "exec $fd>&-"; done; `;
  const open = readdirSync("/proc/self/fd").find((name) => Number(name) > 9 && isInherited(name));
  if (open !== undefined)
    throw new Fault(
      "unsupported",
      `the command was not run: this process has inherited descriptor ${open}, which ${shell} cannot close; install bash, or start Reeve without the descriptor`,
    );
  return "exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-; ";
}

/** Whether a started program would inherit the descriptor. */
function isInherited(descriptor: string): boolean {
  try {
    const info = readFileSync(`/proc/self/fdinfo/${descriptor}`, "latin1");
    const flags = Number.parseInt(/^flags:\s*(\d+)/mu.exec(info)?.[1] ?? "0", 8);
    return (flags & closedOnExec) === 0;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return false;
    throw error;
  }
}

const mebibyte = 1024 * 1024;

const knownLimits = optionTable({
  processes: is.integer({ from: 1, default: 1_024 }),
  memoryBytes: is.integer({ from: 1, default: 4_096 * mebibyte }),
  fileBytes: is.integer({ from: 1, default: 2_048 * mebibyte }),
  openFiles: is.integer({ from: 1, default: 4_096 }),
  cpuSeconds: is.integer({ from: 1, default: 600 }),
  tmpBytes: is.integer({ from: 1, default: 1_024 * mebibyte }),
} satisfies OptionKinds<SandboxLimits>);

/** Returns the limits with defaults. Throws `invalid_argument` for an unknown name or a value that is not a positive integer. */
export function sandboxLimits(limits: SandboxLimits = {}): Required<SandboxLimits> {
  return knownLimits.read("the sandbox's limits", limits);
}

/**
 * Returns a command that closes inherited descriptors, sets the limits and then becomes `command`. The shell's own
 * `ulimit` sets them, because `prlimit` is not installed everywhere. `ulimit` fails only if a lower limit already
 * applies, which then stays.
 */
export function limitedCommand(
  shell: string,
  command: readonly string[],
  limits: Required<SandboxLimits>,
): readonly string[] {
  const isBash = shell.endsWith("/bash");
  const settings = [
    "-c 0",
    `${isBash ? "-u" : "-p"} ${limits.processes}`,
    `-d ${blocks(limits.memoryBytes, 1024)}`,
    // POSIX shells count blocks of 512 bytes, and bash counts blocks of 1,024 bytes.
    `-f ${blocks(limits.fileBytes, isBash ? 1024 : 512)}`,
    `-n ${limits.openFiles}`,
    `-t ${limits.cpuSeconds}`,
  ];
  const limiting = settings.map((each) => `ulimit ${each} 2>/dev/null`).join("; ");
  const script = `${closingScript(shell)}${limiting}; exec "$@"`;
  return [shell, "-c", script, shell, ...command];
}

function blocks(bytes: number, size: number): number {
  return Math.max(1, Math.floor(bytes / size));
}
